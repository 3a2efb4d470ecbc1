"""Windows that close in time and the tuned gates on their way share one deadline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.prepare.prepare import prepare

MS = 1_000_000
SLOTS = [SlotPlace("node-1", "node-1", 0)]


def events(seed: int, rows: int = 3_000) -> pa.Table:
    """Rows of thirty seconds, now and then up to two seconds late."""
    chance = np.random.default_rng(seed)
    ts = np.sort(chance.integers(0, 30_000, rows))
    late = chance.integers(0, 2_000, rows) * (chance.random(rows) < 0.2)
    order = (ts + late).argsort(kind="stable")
    return pa.table({"ts": ts[order] * MS, "at": (ts + late)[order] * MS, "key": ts % 5})


def flow_of(
    close: Any, *, gates: int = 0, deadline: str | None = "1s", speed: float | None = 1.0
) -> sw.Dataflow:
    flow = sw.Dataflow("shared", deadline=deadline)
    rows = flow.source(
        "rows",
        sw.table(events(1)),
        event_time="ts",
        arrival="at",
        time_unit="ns",
        speed=speed,
        out_of_order="late",
        disorder="2s",
    )
    counts = rows.aggregate(
        by="key", window=sw.tumbling("500ms"), n=sw.count(), close=close, name="counts"
    )
    for _ in range(gates):
        counts = counts.merge(counts)
    counts.sink("out", sw.collect_sink())
    return flow


def prepared(flow: sw.Dataflow) -> tuple[Plan, Any]:
    plan = prepare(flow, SLOTS)
    (close,) = [stage.step.close for stage in plan.stages if stage.name == "counts"]  # type: ignore[attr-defined]
    return plan, close.policy


def test_without_a_gate_a_window_may_wait_for_all_that_is_not_kept_back() -> None:
    plan, policy = prepared(flow_of(sw.closing.probslack(0.1)))
    assert isinstance(policy, ProbSlack)
    assert policy.at_most_ns is not None
    # 2.5 % are kept back, and a twentieth is for the next word of how far arrivals are.
    assert 921 * MS <= policy.at_most_ns <= 927 * MS
    (note,) = plan.verdict.notes
    assert "windows of 'counts' close at most 97" in note


@pytest.mark.parametrize("gates", [1, 2])
def test_gates_behind_it_have_like_shares(gates: int) -> None:
    alone = prepared(flow_of(sw.closing.probslack(0.1)))[1].at_most_ns
    shared = prepared(flow_of(sw.closing.probslack(0.1), gates=gates))[1].at_most_ns
    assert shared == pytest.approx(alone / (gates + 1), rel=0.01)


def test_arrivals_that_go_faster_than_the_clock_may_go_further() -> None:
    slow, fast = (
        prepared(flow_of(sw.closing.probslack(0.1), speed=s))[1].at_most_ns for s in (1.0, 4.0)
    )
    # But for what is kept for the next word: a tenth of a slide there, a twentieth of a share.
    assert 4 * slow <= fast <= 4 * slow * 1.05


def test_a_lower_bound_of_ones_own_stays_and_types_are_no_matter() -> None:
    _, policy = prepared(flow_of(sw.closing.probslack(0.1, at_most="50ms", type="key")))
    assert (policy.type, policy.policy.at_most_ns) == ("key", 50 * MS)


def test_a_window_leaves_within_a_deadline_far_shorter_than_a_slide_though_no_row_comes() -> None:
    flow = sw.Dataflow("quiet", deadline="50ms")
    times = [200, 400, 2_400, 5_000]
    rows = pa.table({"ts": times, "at": times, "key": [7] * 4})
    stream = flow.source(
        "rows", sw.table(rows), event_time="ts", arrival="at", time_unit="ms", speed=1.0
    )
    stream.aggregate(window=sw.tumbling("2s"), n=sw.count(), close=sw.closing.probslack(0.1)).sink(
        "out", sw.collect_sink()
    )
    with sw.Simulation(nodes=1) as nodes:
        report = nodes.submit(flow).wait()
    # A tenth of a slide is 200 ms: so long the next word of the source took.
    assert report.sinks[0].latency.quantile(1.0) <= 50 * MS


def test_what_a_deadline_cannot_bound_is_said() -> None:
    plan, policy = prepared(flow_of(sw.closing.event_driven()))
    assert policy == sw.closing.event_driven()
    assert "however long that takes" in plan.verdict.notes[0]
    plan, _ = prepared(flow_of(sw.closing.probslack(0.1), speed=None))
    assert any("not replayed at one speed" in note for note in plan.verdict.notes)
    assert prepared(flow_of(sw.closing.probslack(0.1), deadline=None))[0].verdict.notes == ()


def test_windows_keep_their_share_and_the_tuner_counts_what_they_wait() -> None:
    flow = flow_of(sw.closing.probslack(0.01, ordered=False, first_rows=64), gates=1)
    with sw.Simulation(nodes=1) as nodes:
        job = nodes.submit(flow)
        report = job.wait()
    assert report.state == "done", report.error
    (closing,) = [stage.closing for stage in report.stages if stage.closing is not None]
    share_ns = prepared(flow)[1].at_most_ns
    assert 0 < closing.mean_slack_ns <= share_ns
    assert report.tuning is not None
    # The latency of a second is that of its worst path: what windows waited is in it.
    assert closing.mean_slack_ns < report.tuning.latency.quantile(1.0) <= 1e9
    kept = report.results_in_time
    assert kept is not None
    assert kept[0] == kept[1]  # all results within the deadline, their waits included
