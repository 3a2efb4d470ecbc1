"""Compare a slot's clock with the reference's, over the network.

```
ClockSync ── question: number ─────────────▶ ClockServer    on the plan's first slot
          ◀── answer: number, got, left ────                eight times, then once a second
```

`runtime/measure/clock.py` decides what the four times mean. Both ends have their own thread, which
is awake for some 0.2 ms a second. Guarded like a channel: TCP with CURVE.


*Sockets*: ROUTER, because the reference has a peer for each slot, and no lost or silent peer may
block it; DEALER, because it may ask again without an answer, which REQ may not.

Two slots that share a clock exchange nothing: `SlotClock.identity` names the clock.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import zmq
from zmq import zmq_poll

from slackwater.actors.kernel.boot import boot_id
from slackwater.actors.wire.channel_end import HEARTBEAT_TIMEOUT_S, Context
from slackwater.actors.wire.keys import ChannelKeys
from slackwater.actors.wire.listening import listen
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.measure.clock import Exchange, ReferenceClock
from slackwater.runtime.measure.report import ClockReport
from slackwater.runtime.measure.wall_clock import WallClock

__all__ = ["ClockServer", "ClockSync", "SlotClock"]

EXCHANGES = 8
"""Exchanges before the start. The first wake sleepers; of the rest one is usually undisturbed."""
EVERY_S = 1.0
"""Time between exchanges after the start: a drift of 100 ppm is 0.1 ms then, half a round trip."""
WITHIN_S = 10.0
"""How long the exchanges before the start may take; one of them must succeed."""
ANSWER_S = 2.0
"""How long to wait for an answer: a longer exchange would say little."""

_QUESTION = struct.Struct("<4sBBHQ")  # magic, version, kind, 0, number
_ANSWER = struct.Struct("<4sBBHQqq")  # the same, question's arrival, answer's departure
_MAGIC, _VERSION = b"SLKC", 1
_ASKS, _ANSWERS = 1, 2
_LONGEST = 1_024  # bytes: more than CURVE's handshake has; libzmq hangs up on longer ones


class SlotClock:
    """The clock that a slot reads.

    It starts from this host's wall clock, and advances by the steady clock: setting the time of a
    host moves nothing in its slots, and is only reported (`runtime/measure/wall_clock.py`). All
    slots of one host share one start (`keep`). A slot of another host must `follow` the reference's
    clock.

    Args:
        keys: keys of the job.
        context: context of the process.
        host: address of this node, as the other slots can reach it.
        shift: shift for tests: nanoseconds by which this host's clocks are ahead; or a function
            that returns the shift of its wall clock alone, now.

    Attributes:
        now_ns: returns the reference's time. The loop calls it for every message.
    """

    def __init__(
        self, *, keys: ChannelKeys, context: Context, host: str, shift: int | Callable[[], int] = 0
    ) -> None:
        self._keys, self._context, self._host = keys, context, host
        self._shift_ns = 0 if callable(shift) else shift
        self._wall_ns: Callable[[], int] = time.time_ns
        self._steady_ns: Callable[[], int] = time.monotonic_ns
        if callable(shift):
            self._wall_ns = lambda: time.time_ns() + shift()
        elif shift:
            self._wall_ns = lambda: time.time_ns() + shift
            self._steady_ns = lambda: time.monotonic_ns() + shift
        self.ahead_ns = self._ahead()[0]
        """Wall clock − steady clock, at the start."""
        self._wall = WallClock(self.ahead_ns)
        self._compared_ns = 0  # our clock − the compared clock
        self._end: ClockServer | ClockSync | None = None
        self.now_ns: Callable[[], int]
        self.keep(self.ahead_ns)

    @property
    def identity(self) -> str | None:
        """Id that two slots share exactly if they have one clock; None if not known.

        It holds the boot of a kernel, hence its clock, and the clock's shift. Copies of a virtual
        machine, woken from one image, have clocks of their own, but share the id.
        """
        boot, offsets = boot_id(), _time_namespace()
        return boot and f"{boot} {offsets} {self._shift_ns:+d} ns"

    def keep(self, ahead_ns: int) -> None:
        """Use the start of the other slots of this host: they then share a clock."""
        steady_ns = self._steady_ns
        self.now_ns = lambda: steady_ns() + ahead_ns
        self._clock = ReferenceClock(self.now_ns)

    def serve(self) -> str:
        """Make this clock the reference; return the endpoint where it answers from now on.

        Raises:
            ClusterError: the clock cannot listen there.
        """
        if isinstance(self._end, ClockServer):
            return self._end.endpoint
        self._end = ClockServer(
            self.now_ns, keys=self._keys, context=self._context, bind_host=self._host
        )
        return self._end.endpoint

    def follow(self, endpoint: str) -> None:
        """Set this clock to the reference's, and keep it there.

        Raises:
            ClusterError: the reference does not answer.
        """
        self._compared_ns = self._ahead()[0]
        self._clock = ReferenceClock(self._steady_ns)
        self._end = sync = ClockSync(
            self._clock, self._steady_ns, endpoint, keys=self._keys, context=self._context
        )
        sync.start()
        self.now_ns = self._clock.now_ns

    @property
    def refused_peers(self) -> int:
        """Connections refused so far, where this clock is the reference."""
        return self._end.refused_peers if isinstance(self._end, ClockServer) else 0

    def report(self, node: str) -> ClockReport:
        """Return the report of this clock."""
        ahead_ns, error_ns = self._ahead()
        self._wall.look(ahead_ns, error_ns=error_ns)
        report = self._clock.report(node, refused=0 if self._end is None else self._end.refused)
        return replace(
            report,
            offset_ns=report.offset_ns - self._compared_ns,
            steps=self._wall.steps,
            stepped_ns=self._wall.stepped_ns,
        )

    def _ahead(self) -> tuple[int, int]:
        """Return wall clock − steady clock, and its largest error."""
        before_ns, wall_ns, after_ns = self._steady_ns(), self._wall_ns(), self._steady_ns()
        return wall_ns - (before_ns + after_ns) // 2, after_ns - before_ns


class ClockServer:
    """Answers every slot of the job with the reference's time.

    It ends when its context is terminated.

    Args:
        clock_ns: clock of the reference.
        keys: keys of the job.
        context: context of the process.
        bind_host: address of this node, as the other slots can reach it; it listens on a free port.

    Attributes:
        endpoint: endpoint for `ClockSync` to connect to.
        refused: messages that were not questions.

    Raises:
        ClusterError: the address is not one of this node.
    """

    def __init__(
        self, clock_ns: Callable[[], int], *, keys: ChannelKeys, context: Context, bind_host: str
    ) -> None:
        self.refused = 0
        self._clock_ns = clock_ns
        self._socket = _socket(context, zmq.ROUTER)
        keys.guard_reference(self._socket)
        try:
            self._refused_peers = listen(self._socket, bind_host, what="answer for the clock")
        except ClusterError:
            self._socket.close()
            raise
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        threading.Thread(target=self._serve, name="clock-server", daemon=True).start()

    @property
    def refused_peers(self) -> int:
        """Connections refused so far."""
        return self._refused_peers.refused

    def _serve(self) -> None:
        try:
            while True:
                peer, *parts = self._socket.recv_multipart()
                got_ns = self._clock_ns()
                number = _question(parts)
                if number is None:
                    self.refused += 1
                    continue
                head = (_MAGIC, _VERSION, _ANSWERS, 0, number)
                answer = _ANSWER.pack(*head, got_ns, self._clock_ns())
                # A lost peer is not an error of a ROUTER: the answer is dropped.
                self._socket.send_multipart([peer, answer])
        except zmq.ContextTerminated:
            pass  # the way a context tells its sockets to close
        finally:
            self._socket.close()


class ClockSync:
    """Keeps a slot's clock at the reference's.

    Args:
        clock: clock of this slot; it learns only from here.
        local_ns: the clock on which it is based.
        endpoint: endpoint of the `ClockServer`.
        keys: keys of the job.
        context: context of the process; terminating it ends the exchanges.

    Attributes:
        refused: messages that were not an answer, or an impossible one.

    Raises:
        ClusterError: no such endpoint.
    """

    def __init__(
        self,
        clock: ReferenceClock,
        local_ns: Callable[[], int],
        endpoint: str,
        *,
        keys: ChannelKeys,
        context: Context,
    ) -> None:
        self.refused = 0
        self._clock, self._local_ns, self._endpoint = clock, local_ns, endpoint
        self._number = 0
        self._socket = _socket(context, zmq.DEALER)
        self._socket.setsockopt(zmq.IMMEDIATE, 1)  # no question waits for a connection
        keys.guard_sender(self._socket)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as problem:
            self._socket.close()
            raise ClusterError(
                f"clock cannot be compared with {endpoint!r}: {problem}; give the endpoint of the "
                "reference, tcp://host:port"
            ) from problem

    def start(self, *, within_s: float = WITHIN_S) -> None:
        """Set the clock by eight exchanges; then run one each second, in a thread.

        Raises:
            ClusterError: no exchange succeeded in time.
        """
        done, until_s = 0, time.monotonic() + within_s
        for _ in range(EXCHANGES):
            left_s = until_s - time.monotonic()
            exchange = self._ask(min(ANSWER_S, left_s)) if left_s > 0 else None
            if exchange is not None:
                self._clock.learn(exchange, at_once=True)
                done += 1
        if not done:
            self.close()
            raise ClusterError(
                f"this slot cannot compare its clock with the reference at {self._endpoint}: no "
                f"answer within {within_s:g} s; latencies between hosts would be wrong by as "
                "much as their clocks are; let the nodes reach each other on every port"
            )
        threading.Thread(target=self._go_on, name="clock-sync", daemon=True).start()

    def close(self) -> None:
        """Close a sync that has not started; a started one ends with its context."""
        self._socket.close()

    def _go_on(self) -> None:
        try:
            while True:
                self._listen(EVERY_S, self._number + 1)
                exchange = self._ask(ANSWER_S)
                if exchange is not None:
                    self._clock.learn(exchange)
        except zmq.ContextTerminated:
            pass  # the way a context tells its sockets to close
        finally:
            self._socket.close()

    def _ask(self, within_s: float) -> Exchange | None:
        """Return one exchange; None if it failed: the clock's error grows until the next."""
        if not zmq_poll([(self._socket, zmq.POLLOUT)], round(within_s * 1_000)):
            return None
        self._number += 1
        question = _QUESTION.pack(_MAGIC, _VERSION, _ASKS, 0, self._number)
        sent_ns = self._local_ns()
        try:
            self._socket.send(question, zmq.NOBLOCK)
        except zmq.Again:  # the connection broke meanwhile
            return None
        answer = self._listen(within_s, self._number)
        if answer is None:
            return None
        exchange = Exchange(sent_ns, *answer)
        if exchange.is_sound:
            return exchange
        self.refused += 1
        return None

    def _listen(self, for_s: float, number: int) -> tuple[int, int, int] | None:
        """Return the question's arrival, its answer's departure and arrival; None if time is over.

        Late answers to earlier questions are skipped.
        """
        until_s = time.monotonic() + for_s  # wall clocks may be set meanwhile
        while (left_s := until_s - time.monotonic()) > 0:
            if not zmq_poll([(self._socket, zmq.POLLIN)], max(1, round(left_s * 1_000))):
                return None
            parts = self._socket.recv_multipart()
            now_ns = self._local_ns()
            answer = _answer(parts)
            if answer is None or not 0 < answer[0] <= self._number:
                self.refused += 1
            elif answer[0] == number:
                return answer[1], answer[2], now_ns
        return None


def _time_namespace() -> str:
    """Return an id that processes share exactly if they have one steady clock."""
    try:
        return os.readlink("/proc/self/ns/time")
    except OSError:  # a kernel without time namespaces has one clock
        return ""


def _socket(context: Context, kind: int) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    timeout_ms = round(HEARTBEAT_TIMEOUT_S * 1_000)
    for option, value in (
        (zmq.LINGER, 0),
        (zmq.HEARTBEAT_IVL, timeout_ms // 5),
        (zmq.HEARTBEAT_TIMEOUT, timeout_ms),
        (zmq.MAXMSGSIZE, _LONGEST),
    ):
        socket.setsockopt(option, value)
    return socket


def _question(parts: list[bytes]) -> int | None:
    if len(parts) != 1 or len(parts[0]) != _QUESTION.size:
        return None
    magic, version, kind, zero, number = _QUESTION.unpack(parts[0])
    is_ours = (magic, version, kind, zero) == (_MAGIC, _VERSION, _ASKS, 0)
    return int(number) if is_ours else None


def _answer(parts: list[bytes]) -> tuple[int, int, int] | None:
    """Return an answer's number, its question's arrival, and its departure; None if no answer."""
    if len(parts) != 1 or len(parts[0]) != _ANSWER.size:
        return None
    magic, version, kind, zero, number, got_ns, left_ns = _ANSWER.unpack(parts[0])
    is_ours = (magic, version, kind, zero) == (_MAGIC, _VERSION, _ANSWERS, 0)
    return (number, got_ns, left_ns) if is_ours else None
