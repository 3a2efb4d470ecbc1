"""What becomes of promises on their way: summaries of steps, put together from the sources on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.plan.plan import Channel, plan_stages
from slackwater.runtime.plan.promises import (
    PASSES,
    IdleTime,
    OutputTraits,
    Summary,
    after_gate,
    without_gate,
)

S = 10**9
ROWS = sw.table(pa.table({"ts": [1], "key": [1], "p": [1]}))
NEVER = OutputTraits(None, may_be_late=False, is_disordered=False)


def idle(idle_ns: int, speed: float = 1) -> OutputTraits:
    return OutputTraits(IdleTime(idle_ns, idle_ns, speed), may_be_late=True, is_disordered=False)


@pytest.mark.parametrize(
    ("promised", "goes_out"),
    [(START_NS, START_NS), (-1, -1), (0, 4), (9, 9), (10, 14), (14, 14), (END_NS, END_NS)],
)
def test_windows_promise_the_last_moment_in_the_first_open_one(
    promised: int, goes_out: int
) -> None:
    every_5_of_10 = Summary(5, 9)
    assert every_5_of_10.promise_ns(promised) == goes_out
    assert PASSES.promise_ns(promised) == promised


def test_a_promise_never_comes_out_smaller() -> None:
    for every in (1, 3, 7):
        for begins in (0, 2):
            ends = [Summary(every, begins).promise_ns(at) for at in range(-20, 20)]
            assert ends == sorted(ends)
            assert all(at <= end < at + every for at, end in zip(range(-20, 20), ends, strict=True))


def test_behind_a_gate_silence_is_the_longest_and_as_long_again_as_a_source_may_keep_it() -> None:
    found = after_gate([idle(4 * S), idle(7 * S)], [PASSES], has_slack=False)
    assert found.idle_ns == 14 * S
    assert after_gate([found], [Summary(3 * S, 9 * S)], has_slack=False).idle_ns == 24 * S
    slow = after_gate([idle(4 * S, 0.5)], [Summary(3 * S, 9 * S)], has_slack=False)
    assert slow.idle_ns == 14 * S


def test_one_input_that_is_never_idle_keeps_a_gate_for_ever() -> None:
    assert after_gate([idle(4 * S), NEVER], [PASSES], has_slack=False).idle_ns is None


def test_what_passes_without_a_gate_stays_as_it_was_but_for_writers_of_several_stages() -> None:
    came = idle(4 * S)
    assert without_gate(came, is_disordered=False) == came


def channels(flow: sw.Dataflow) -> dict[str, Channel]:
    return {channel.name: channel for stage in plan_stages(flow.graph) for channel in stage.inputs}


def test_channels_know_what_to_expect_of_all_that_is_before_them() -> None:
    flow = sw.Dataflow("paths")
    one = flow.source("one", ROWS, event_time="ts", idle="4s")
    other = flow.source("other", ROWS, event_time="ts", promise=sw.col("p"))
    counts = one.aggregate(by="key", window=sw.sliding("9s", "3s"), n=sw.count(), name="counts")
    pairs = counts.join(other, on="key", within="1s", name="pairs")
    first = pairs.dedupe("key", within="2s", name="first")
    first.sink("out", sw.collect_sink())
    found = channels(flow)
    assert found["one→counts"].idle_ns == 4 * S
    assert found["counts→pairs"].idle_ns == 11 * S
    assert found["pairs→first"].idle_ns is None
    assert found["other→pairs"].is_mixed
    assert found["pairs→first"].may_be_late
    assert [found[name].port for name in ("counts→pairs", "other→pairs")] == [0, 1]


def test_a_source_that_may_be_out_of_order_within_a_bound_says_that_its_rows_are_mixed() -> None:
    options: list[tuple[dict[str, Any], bool]] = [({"disorder": "5ms"}, True), ({}, False)]
    for disorder, mixed in options:
        flow = sw.Dataflow("mixed")
        rows = sw.table({"ts": [1, 2]})
        numbers = flow.source("numbers", rows, event_time="ts", **disorder)
        numbers.merge(name="gate").sink("out", sw.collect_sink())
        stages = {stage.name: stage for stage in sw.Simulation(nodes=1).plan(flow).stages}
        assert [channel.is_mixed for channel in stages["gate"].inputs] == [mixed]


def test_a_promise_that_waits_for_rows_is_older_by_the_delay_and_never_before_the_start() -> None:
    waits = Summary(delay_ns=5)
    assert [waits.promise_ns(at) for at in (12, 5, END_NS, START_NS)] == [7, 0, END_NS, START_NS]
    assert waits.promise_ns(START_NS + 2) == START_NS
    found = after_gate([idle(4 * S)], [Summary(delay_ns=3 * S)], has_slack=False)
    assert found.idle_ns == after_gate([idle(4 * S)], [PASSES], has_slack=False).idle_ns + 3 * S
