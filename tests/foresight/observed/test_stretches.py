"""A sample across its input, and rates that come as the source's rows came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.observations import StageCost
from slackwater.runtime.foresight.observed import source_times
from slackwater.runtime.foresight.observed.slices import work_spread
from slackwater.runtime.foresight.observed.some_rows import BLOCKS
from slackwater.runtime.foresight.observed.stretches import Stretched, stretched
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.rates import OwnTimes
from slackwater.runtime.simulate import MeasuredSlice
from slackwater.sampling import sample_flow
from tests.support.known_work import MS, bursts, counts_of, sampled, times, working


@pytest.fixture(autouse=True)
def time_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a machine that has much else to do look at as many rows as a calm one."""
    monkeypatch.setattr(source_times, "LOOK_S", 60.0)


def every(step_s: float, until_s: float = 100.0) -> SourceTimes:
    at_s = np.arange(0.0, until_s, step_s)
    return SourceTimes.in_order(at_s, at_s)


def of(rows: int = 500, **how: Any) -> Stretched:
    by: dict[str, Any] = {"reach_s": 0.0, "slide_s": 0.0, "is_whole": False} | how
    return stretched({"a": every(0.01), "b": every(0.1)}, rows, **by)


def test_all_sources_are_sampled_in_the_same_stretches_of_time() -> None:
    found = of()
    assert len(found.from_s) == 5
    assert found.covers_s == pytest.approx(100 * 1_000 / 11_000, rel=0.01)
    for name, step_s in (("a", 0.01), ("b", 0.1)):
        began_s = [begin * step_s for begin, _ in found.rows[name]]
        assert began_s == pytest.approx(found.from_s, abs=0.2)
    assert sum(b - a for each in found.rows.values() for a, b in each) == pytest.approx(1_000, 0.02)


@pytest.mark.parametrize(
    ("how", "count"),
    [({"reach_s": 2.0}, 2), ({"reach_s": 5.0}, 1), ({"is_whole": True}, 1), ({"rows": 6_000}, 1)],
    ids=str,
)
def test_stretches_are_long_beside_what_the_flow_looks_back(how: Any, count: int) -> None:
    found = of(**how)
    assert len(found.from_s) == count
    if count == 1:
        assert found.rows["a"][0][0] == 0


def test_one_row_that_is_far_ahead_does_not_move_the_sample() -> None:
    odd = every(0.01)
    odd.event_s[50] = 1e9
    found = stretched({"a": odd}, 500, reach_s=0.0, slide_s=0.0, is_whole=False)
    assert found.rows == {"a": ((0, 500),)}


class Dearer:
    """A clock of work whose rows take longer from one on."""

    def __init__(self, first: int) -> None:
        self.now_ns, self._first = 0, first

    def __call__(self) -> int:
        return self.now_ns

    def work(self, columns: Any) -> Any:
        late = int(np.count_nonzero(np.asarray(columns["n"]) >= self._first))
        self.now_ns += MS * (len(columns["n"]) + 4 * late)
        return {"n": columns["n"]}


def test_first_rows_unlike_the_rest_do_not_stand_for_all() -> None:
    clock = Dearer(1_000)  # 1 ms each, and 5 ms from then on
    flow = working(clock.work, times(10_000))
    sample = sample_flow(flow, clock_ns=clock)
    cost_s = max(one.cost_s[0] for one in sample.graph.operators)
    assert cost_s == pytest.approx(0.0046, rel=0.15)
    assert (sample.stretches, sample.looked_s) == (5, pytest.approx(10.0, abs=0.1))
    made = sw.Simulation(nodes=1).predict(flow, 100, sample=sample)
    assert made.bounds_s[1] > made.estimate.bounds_s[1]
    assert "5 stretches, 1.00 s together, evenly over 10.00 s" in made.text()
    assert made.to_json()["latency"]["most_s"] == made.bounds_s[1]


def test_one_stretch_leaves_room_for_how_far_its_rows_differ() -> None:
    """A flow that looks back for 6 s is sampled from its start, of which the rest may be unlike."""
    found = []
    for first in (100, 10_000):  # 1 ms each, and 5 ms from there on; or all alike
        clock = Dearer(first)
        flow = sw.Dataflow("whole")
        rows = flow.source("numbers", sw.table(times(10_000)), event_time="ts", speed=1)
        done = rows.map_batches(clock.work, schema={"n": "int64"}, name="work")
        done.dedupe(on="n", within="6s").sink("out", sw.collect_sink())
        sample = sample_flow(flow, clock_ns=clock)
        made = sw.Simulation(nodes=1).predict(flow, 300, sample=sample, horizon="5s")
        assert (sample.stretches, sample.covers_s) == (1, pytest.approx(1.0, abs=0.1))
        found.append((made, sample))
    (drifts, sample), (even, alike) = found
    assert drifts.bounds_s[1] > 1.2 * drifts.estimate.bounds_s[1]
    assert sample.spread > 0.15
    assert alike.spread == pytest.approx(0.0, abs=0.01)
    assert even.bounds_s[1] == pytest.approx(even.estimate.bounds_s[1], rel=0.05)
    assert "of event time; when rows come, of 10.00 s: work may be off by " in drifts.text()


def test_how_often_work_is_cut_is_no_spread_of_it() -> None:
    """Parts of a sample have as many rows, and more or fewer slices: chance of the blocks."""
    part = Stretched(rows={"a": ((0, 1_000),)}, lengths_s=(1.0,), looked_s=10.0)
    slices = [MeasuredSlice("a", n, 100_000 + 1_000 * n, n, n) for n in (*BLOCKS, 161)]
    costs = {"a": (StageCost(1e-4, 1e-6), StageCost(0.0, 1.05e-6))}
    assert work_spread(slices, part, costs) == pytest.approx(0.0, abs=1e-9)


def test_what_the_first_rows_alone_give_is_not_missed() -> None:
    flow = sw.Dataflow("rare")
    rows = flow.source("numbers", sw.table(times(10_000)), event_time="ts")
    rows.filter(sw.col("n") < 20).sink("out", sw.collect_sink())
    sample = sample_flow(flow)
    assert sample.stretches == 1
    assert [one.rows_in for one in sample.stages if one.name == "out"] == [20]


def test_patterns_and_steps_one_after_the_other_are_looked_back_over_in_whole() -> None:
    flow = sw.Dataflow("long")
    rows = flow.source("numbers", sw.table(times(10_000)), event_time="ts")
    some = rows.dedupe(on="n", within="150ms").dedupe(on="n", within="150ms", name="again")
    some.sink("out", sw.collect_sink())
    a, b = (
        sw.patterns.event(name, where=sw.col("n") % 500 == n) for name, n in (("a", 0), ("b", 499))
    )
    within = rows.pattern(sw.patterns.seq(a, b), within="600ms", name="pairs")
    within.sink("pairs-out", sw.collect_sink())
    sample = sample_flow(flow)
    assert sample.stretches == 1
    assert {one.name: one.rows_out for one in sample.stages}["pairs"] == 2


def test_a_lag_that_grows_after_the_first_rows_is_waited_for() -> None:
    """The other side waits in the gate for a source that falls behind, long after the sample."""
    at_s = np.arange(0.0, 40.0, 0.01)
    lag_s = np.interp(at_s, [0, 10, 20, 30, 40], [0, 0, 4, 0, 0])
    flow, keys = sw.Dataflow("lags"), np.arange(len(at_s))
    both = [
        flow.source(
            name,
            sw.table(pa.table({"ts": _stamps(at_s), "came": _stamps(at_s + lag), "k": keys})),
            event_time="ts",
            arrival="came",
            speed=1.0,
        )
        for name, lag in (("slow", lag_s), ("quick", 0 * lag_s))
    ]
    both[0].join(both[1], on="k", within="100ms").sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=2).predict(flow, 200, sample=200, horizon="40s")
    assert made.gates is not None
    assert made.gates.longest.longest_s == pytest.approx(4.0, rel=0.1)


def _stamps(at_s: FloatArray) -> pa.Array:
    return pa.array((at_s * 1e9).astype("int64"), pa.timestamp("ns"))


def test_a_rate_is_spread_as_the_sources_own_rows_came() -> None:
    table = bursts(1)
    flow, sample = sampled(int(0.7 * 60e9 / len(table)), table, rows=len(table))
    host = sw.Simulation(nodes=1)
    by_trace = host.predict(flow, {"numbers": counts_of(table)}, sample=sample)
    by_rate = host.predict(flow, len(table) / 60, sample=sample)
    assert by_trace.worst_s > 0.5
    assert by_rate.worst_s == pytest.approx(by_trace.worst_s, rel=0.1)


@given(
    gaps=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30).filter(lambda one: sum(one) > 0.5),
    d=st.integers(1, 200),
)
def test_as_many_rows_come_as_at_a_constant_rate(gaps: list[float], d: int) -> None:
    even = np.full(d, 3.0)
    found = OwnTimes(np.cumsum([0.0, *gaps])).spread(even, width_s=0.1)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(even.sum())


def test_rows_that_came_evenly_come_evenly() -> None:
    even = np.full(100, 5.0)
    assert OwnTimes(np.arange(700) / 70).spread(even, width_s=0.1) == pytest.approx(even)


def test_what_a_prediction_is_not_of_is_said() -> None:
    flow = sw.Dataflow("unpaced")
    rows = flow.source("numbers", sw.table(times(2_000)), event_time="ts", arrival="ts")
    rows.sink("out", sw.collect_sink())
    host = sw.Simulation(nodes=1)
    made = host.predict(flow, 100, limits=sw.Limits(order=_Any()))
    assert "holds not   numbers without speed=: a run reads that as fast as it goes" in made.text()
    assert "order= of the limits is another order of work" in made.text()
    notes = host.plan(flow, rates=100).verdict.notes
    assert any("numbers without speed=" in note for note in notes)


class _Any:
    def first(self, stages: Any, now_ns: int) -> Any:
        assert now_ns >= 0
        return next(iter(stages))
