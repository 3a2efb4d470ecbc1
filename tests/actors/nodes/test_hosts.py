"""Whether hosts are there, asked of real sockets by a clock of ours."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from slackwater.actors.nodes.host_monitor import (
    ANSWER_S,
    GOING_ON_S,
    GREETING,
    LOST_AFTER,
    HostMonitor,
    answering,
    serving,
)
from slackwater.actors.nodes.placement import NodeInfo
from tests.support.waiting import until

SOON_S = 5.0


def node(port: int, name: str = "node-1") -> NodeInfo:
    return NodeInfo(name, f"id of {name}", "127.0.0.1", 4, 4, 0, is_head=False, port=port)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def deaf() -> Iterator[int]:
    """The port of a listener whose queue is full: who calls it hears nothing."""
    with ExitStack() as all_of_them:
        listener = all_of_them.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            caller = all_of_them.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def ask(watch: HostMonitor, clock: Clock, *, times: int) -> dict[str, str]:
    """Let so many questions be asked, and be answered or not."""
    lost: dict[str, str] = {}
    for _ in range(times):
        watch.look()
        clock.now_s += ANSWER_S
        lost = watch.look()
    return lost


def has_answered(watch: HostMonitor) -> Callable[[], bool]:
    def look() -> bool:
        watch.look()
        return all(host.has_answered for host in watch._hosts.values())

    return look


def test_a_host_whose_listener_goes_is_lost_after_some_questions_and_not_before() -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = HostMonitor([node(server.getsockname()[1])], now_s=clock)
        until(has_answered(watch), within_s=SOON_S, what="an answer")
        assert ask(watch, clock, times=3) == {}
    assert ask(watch, clock, times=LOST_AFTER - 1) == {}
    lost = ask(watch, clock, times=2)
    assert lost == {"id of node-1": "its host 127.0.0.1 does not answer (ECONNREFUSED)"}
    watch.close()


def test_a_host_that_comes_back_was_never_lost() -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        watch = HostMonitor([node(port)], now_s=clock)
        until(has_answered(watch), within_s=SOON_S, what="an answer")
    ask(watch, clock, times=LOST_AFTER - 1)
    with socket.create_server(("127.0.0.1", port)):
        for _ in range(2 * LOST_AFTER):
            assert ask(watch, clock, times=1) == {}
    watch.close()


def test_a_host_that_never_answered_is_not_called_lost(deaf: int) -> None:
    clock = Clock()
    watch = HostMonitor([node(deaf)], now_s=clock)
    assert ask(watch, clock, times=3 * LOST_AFTER) == {}
    watch.close()


def test_silence_is_no_answer(deaf: int) -> None:
    clock = Clock()
    watch = HostMonitor([node(deaf)], now_s=clock, hosts_have_answered=True)
    watch.begin()
    lost = ask(watch, clock, times=LOST_AFTER)
    assert lost == {"id of node-1": "its host 127.0.0.1 does not answer (silence)"}
    watch.close()


def test_a_job_that_goes_on_waits_for_less(deaf: int) -> None:
    clock = Clock()
    watch = HostMonitor([node(deaf)], now_s=clock, every_s=GOING_ON_S, hosts_have_answered=True)
    while not watch.look():
        clock.now_s += GOING_ON_S / 4
    assert clock.now_s == pytest.approx(LOST_AFTER * GOING_ON_S, abs=GOING_ON_S / 2)
    assert list(watch.lost) == ["id of node-1"]
    assert watch.lost_names == ["node-1"]
    watch.close()


def test_a_host_that_answered_in_the_beginning_can_be_lost_though_nobody_looked_since() -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = HostMonitor([node(server.getsockname()[1])], now_s=clock)
        watch.begin()
    clock.now_s += 3_600
    assert list(ask(watch, clock, times=LOST_AFTER)) == ["id of node-1"]
    watch.close()


def test_a_node_without_a_port_is_not_asked() -> None:
    assert HostMonitor([node(0)]).look() == {}
    assert answering([node(0)]) == [node(0)]


def test_the_nodes_that_answer_are_told_from_those_that_refuse_or_are_silent(deaf: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        there, gone = node(server.getsockname()[1], "a"), node(free.getsockname()[1], "b")
        assert answering([gone, there, node(deaf, "c")], within_s=0.2) == [there]


def test_a_process_that_hangs_is_answered_for_by_its_kernel_and_serves_nobody() -> None:
    with ExitStack() as opened:
        names = ["speaks", "hangs up", "hangs", "is gone"]
        servers = {
            name: opened.enter_context(socket.create_server(("127.0.0.1", 0))) for name in names
        }
        nodes = [node(server.getsockname()[1], name) for name, server in servers.items()]
        servers["is gone"].close()
        heard: list[bytes] = []

        def serve() -> None:
            with servers["speaks"].accept()[0] as call:
                heard.append(call.recv(100))
                call.sendall(b"settings")
            servers["hangs up"].accept()[0].close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        there = [*nodes, node(0, "port not known")]
        told = [one.name for one in serving(there, within_s=0.3)]
        assert told == ["speaks", "hangs up", "port not known"]
        assert [one.name for one in answering([nodes[2]])] == ["hangs"]
        thread.join(SOON_S)
        assert heard == [GREETING]
