"""What a process hangs on, asked of real sockets by a clock of ours."""

from __future__ import annotations

import socket

from slackwater.actors.nodes.cluster_monitor import ClusterMonitor
from tests.actors.nodes.test_hosts import Clock, node
from tests.support.waiting import until

SOON_S = 5.0


def test_who_goes_is_named_after_some_questions_or_at_once_when_it_matters() -> None:
    clock = Clock()
    with (
        socket.create_server(("127.0.0.1", 0)) as head,
        socket.create_server(("127.0.0.1", 0)) as raylet,
    ):
        port, address = raylet.getsockname()[1], f"127.0.0.1:{head.getsockname()[1]}"
        slow, quick = (ClusterMonitor(address, node(port), now_s=clock) for _ in range(2))
        assert (slow.look(), slow.check()) == (None, None)
        raylet.close()

        def lost() -> bool:
            clock.now_s += 1.0
            return slow.look() is not None

        until(lost, within_s=SOON_S, what="the loss of the raylet")
        assert clock.now_s >= 4
        said = "the raylet of node node-1 (host 127.0.0.1), through which this process speaks to"
        assert str(slow.lost).startswith(said)
        assert str(quick.check()).startswith(said)
        head.close()
        gone = ClusterMonitor(address, None)
        assert gone.look() is None, "what never answered is behind a firewall, say"
        for line in (slow, quick, gone):
            line.close()
        third = ClusterMonitor(None, None)
        assert third.broke(BrokenPipeError(32, "Broken pipe")).startswith("the connection of this")


def test_a_head_that_goes_is_named_before_what_goes_with_it() -> None:
    clock = Clock()
    with (
        socket.create_server(("127.0.0.1", 0)) as head,
        socket.create_server(("127.0.0.1", 0)) as raylet,
    ):
        address = f"127.0.0.1:{head.getsockname()[1]}"
        line = ClusterMonitor(address, node(raylet.getsockname()[1]), now_s=clock)
    assert str(line.check()) == (
        f"the head of the Ray cluster (gcs_server at {address}) is gone: it does not answer"
    )
    line.close()
