"""When nothing is under way on channels, by what their two ends say of themselves."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zmq

import slackwater as sw
from slackwater.actors.slot import channel_ends
from slackwater.actors.slot.channel_ends import ChannelEnds, Passed, is_drained
from slackwater.actors.wire.channel import ChannelKeys, Sender, Waker
from slackwater.actors.wire.frames import MAX_BYTES
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import batch_of
from tests.actors.wire.links import PATIENCE_S
from tests.support.told import message_of


def test_a_channel_is_drained_when_both_ends_have_seen_the_same() -> None:
    assert is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(7, 64)}])
    assert not is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(6, 64)}])  # a message
    assert not is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(7, 128)}])  # a grant


def test_a_channel_within_a_slot_has_no_ends_and_nothing_is_under_way_on_it() -> None:
    assert is_drained([{}, {}])


def test_a_row_too_long_for_its_way_is_told_with_its_steps_and_column() -> None:
    flow = sw.Dataflow("long")
    rows = sw.table({"ts": [1], "short": ["a"], "long": ["b"]})
    flow.source("pages", rows, event_time="ts").merge(name="gate").sink("out", sw.collect_sink())
    with sw.Simulation(2) as nodes:
        plan = nodes.plan(flow, placement={"pages": "node-1", "gate": "node-2"})
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    ends = [
        ChannelEnds(keys=ChannelKeys.generate(), context=context, host="127.0.0.1", waker=Waker())
        for _ in range(2)
    ]
    try:
        there = ends[1].bind(plan.stages_of("node-2"), dict.fromkeys(plan.slots))
        ends[0].connect(plan.stages_of("node-1"), there, asks_again=True)
        (channel,) = (one for one in plan.channels if one.name in there)
        times = np.array([1])
        columns = {"ts": times, "short": pa.array(["a"]), "long": pa.array(["é" * MAX_BYTES])}
        message = message_of(batch_of(times, columns), 1, 1)
        with pytest.raises(FrameError) as caught:
            ends[0].send(channel, message, 0)
    finally:
        for end in (*ends[0].all.values(), *ends[1].all.values()):
            end.close(linger_s=0)
        context.term()
    said = str(caught.value)
    assert "step 'pages' gave step 'gate' a row too long" in said
    assert f"its column 'long' has a value of {2 * MAX_BYTES:,} bytes" in said


def test_a_slot_that_goes_back_asks_again_for_a_connection_that_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[Sender]()

    def noted(*given: Any, **named: Any) -> Sender:
        made.append(Sender(*given, **named))
        return made[-1]

    monkeypatch.setattr(channel_ends, "Sender", noted)
    flow = sw.Dataflow("cut")
    rows = sw.table({"ts": [1]})
    flow.source("left", rows, event_time="ts").merge(name="gate").sink("out", sw.collect_sink())
    with sw.Simulation(2) as nodes:
        plan = nodes.plan(flow, placement={"left": "node-1", "gate": "node-2"})
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    own = ChannelEnds(
        keys=ChannelKeys.generate(),
        context=context,
        host="127.0.0.1",
        waker=Waker(),
        lost_ns=1_200_000_000,
    )
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())  # the system drops packets of others from now on
        (channel,) = (one for one in plan.channels if one.source == "left")
        endpoints = {channel.name: f"tcp://127.0.0.1:{full.getsockname()[1]}"}
        own.connect(plan.stages_of("node-1"), endpoints, asks_again=True)
        assert len(made) > 1
        full.accept()[0].close()  # as if the link were there again
        full.settimeout(PATIENCE_S)
        full.accept()[0].close()
    assert own.senders[channel.name] is made[-1]
    own.close()
    context.term()
