"""Ask kernels whether their hosts answer, so that a lost host is known within seconds.

Ray needs 15 to 30 s to report a dead node whose host falls silent (no power, a cut cable).
ZeroMQ's heartbeats cover only slots with a channel to another host. So every job opens a TCP
connection to each of its hosts' raylets about once a second, and sends nothing. The kernel answers
it, however busy the processes there are.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence

from slackwater.actors.nodes.placement import NodeInfo

__all__ = ["HostMonitor", "answering", "serving"]

ASK_EVERY_S = 1.0
"""Time between two questions, and for an answer: a silent host is lost after 4 to 5 s."""
GOING_ON_S = 0.6
"""The same of a job that goes on after a failure: after 2.4 to 3 s."""
ANSWER_S = 1.0
SERVE_S = 3.0
"""How long a raylet may take to greet: a millisecond, unless it hangs or has no core."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Start of a gRPC connection (RFC 9113, 3.4): the preface, and SETTINGS without settings."""
LOST_AFTER = 4
"""Questions in a row without an answer after which a host is lost: packets may be lost, too."""


class HostMonitor:
    """Asks hosts whether they answer, each time `look` is called; only `begin` waits.

    Args:
        nodes: nodes to ask; nodes of unknown port (0) are not asked.
        now_s: a clock, in seconds.
        every_s: time between two questions, and for an answer, in seconds; `ASK_EVERY_S` if None.
        hosts_have_answered: whether all have answered a moment ago: each can be lost at once.
    """

    def __init__(
        self,
        nodes: Iterable[NodeInfo],
        *,
        now_s: Callable[[], float] = time.monotonic,
        every_s: float | None = None,
        hosts_have_answered: bool = False,
    ) -> None:
        self._every_s = ASK_EVERY_S if every_s is None else every_s
        self._hosts = {
            node.node_id: _Host(node, hosts_have_answered) for node in nodes if node.port
        }
        self._now_s = now_s

    def begin(self) -> None:
        """Find the hosts that answer now, within a second: only these can be lost later."""
        unknown = [host.node for host in self._hosts.values() if not host.has_answered]
        for node in answering(unknown):
            self._hosts[node.node_id].has_answered = True

    def ask_too(self, nodes: Iterable[NodeInfo]) -> None:
        """Ask these nodes, too; each can be lost once it has answered."""
        for node in nodes:
            if node.port:
                self._hosts.setdefault(node.node_id, _Host(node))

    def look(self) -> dict[str, str]:
        """Read answers and ask again; return {id of a lost node: its problem}."""
        now_s = self._now_s()
        for host in self._hosts.values():
            host.look(now_s, self._every_s)
        return self.lost

    @property
    def lost(self) -> dict[str, str]:
        """{id of a lost node: its problem}, as of the last look."""
        return {
            node_id: f"its host {host.node.ip} {host.problem}"
            for node_id, host in self._hosts.items()
            if host.has_answered and host.failures >= LOST_AFTER
        }

    @property
    def lost_names(self) -> list[str]:
        """Names of the lost nodes, as of the last look."""
        return [self._hosts[node_id].node.name for node_id in self.lost]

    def close(self) -> None:
        """Stop asking."""
        for host in self._hosts.values():
            host.hang_up()


class _Host:
    def __init__(self, node: NodeInfo, has_answered: bool = False) -> None:
        self.node = node
        self.failures = 0
        self.has_answered = has_answered  # else a firewall would look like a loss
        self.problem = ""
        self._socket: socket.socket | None = None
        self._question_s = float("-inf")

    def look(self, now_s: float, every_s: float) -> None:
        if self._socket is not None:
            self._take_answer(now_s, every_s)
        if self._socket is None and now_s >= self._question_s + every_s:
            self._question_s = now_s
            self._socket = _call(self.node)

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _take_answer(self, now_s: float, within_s: float) -> None:
        assert self._socket is not None
        problem = _answer(self._socket)
        if problem is None and now_s < self._question_s + within_s:
            return
        self.hang_up()
        if problem == "":
            self.failures, self.has_answered = 0, True
        else:
            self.failures += 1
            self.problem = f"does not answer ({problem or 'silence'})"


def answering(nodes: Sequence[NodeInfo], *, within_s: float = ANSWER_S) -> list[NodeInfo]:
    """Return the nodes whose hosts answer, in their order; waits `within_s` at most."""
    calls = {node.node_id: _call(node) for node in nodes if node.port}
    answers: dict[str, str] = {}
    deadline_s = time.monotonic() + within_s
    while True:
        waiting = select.poll()
        for node_id, call in calls.items():
            if node_id in answers:
                continue
            answer = _answer(call)
            if answer is not None:
                answers[node_id] = answer
            else:
                waiting.register(call, select.POLLOUT)
        left_s = deadline_s - time.monotonic()
        if len(answers) == len(calls) or left_s <= 0:
            break
        waiting.poll(left_s * 1_000)
    for call in calls.values():
        call.close()
    return [node for node in nodes if not node.port or answers.get(node.node_id) == ""]


def serving(nodes: Sequence[NodeInfo], *, within_s: float = SERVE_S) -> list[NodeInfo]:
    """Return the nodes whose raylets are at work, in their order; waits `within_s` at most.

    The kernel also answers for a process that hangs (SIGSTOP, a debugger, no core). So each raylet
    is greeted, and must send something: gRPC sends its own settings, TLS an alert.
    """
    calls = {node.node_id: _call(node) for node in nodes if node.port}
    greeted: set[str] = set()
    spoke: set[str] = set()
    failed: set[str] = set()
    deadline_s = time.monotonic() + within_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        waiting = select.poll()
        for node_id, call in calls.items():
            if node_id in spoke | failed:
                continue
            waiting.register(call, select.POLLIN if node_id in greeted else select.POLLOUT)
        if len(spoke | failed) == len(calls):
            break
        ready = {fd for fd, _ in waiting.poll(left_s * 1_000)}
        for node_id, call in calls.items():
            if call.fileno() not in ready or node_id in spoke | failed:
                continue
            if node_id in greeted:
                spoke.add(node_id)  # any bytes: a process sent them, or hung up
            elif _answer(call) == "" and _is_greeted(call):
                greeted.add(node_id)
            else:
                failed.add(node_id)
    for call in calls.values():
        call.close()
    return [node for node in nodes if not node.port or node.node_id in spoke]


def _is_greeted(call: socket.socket) -> bool:
    try:
        call.send(GREETING)
    except OSError:
        return False
    return True


def _call(node: NodeInfo) -> socket.socket:
    # A failure to connect is the socket's to report, later.
    family = socket.AF_INET6 if ":" in node.ip else socket.AF_INET
    call = socket.socket(family, socket.SOCK_STREAM)
    call.setblocking(False)
    call.connect_ex((node.ip, node.port))
    return call


def _answer(call: socket.socket) -> str | None:
    """Return the call's problem, "" if it was answered, None if still open."""
    ready = select.poll()
    ready.register(call, select.POLLOUT)
    if not ready.poll(0):
        return None
    problem = call.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if problem == 0:
        try:
            call.getpeername()
        except OSError as not_connected:  # connect_ex failed at once: no route
            problem = not_connected.errno or errno.ENOTCONN
    return "" if problem == 0 else errno.errorcode.get(problem, str(problem))
