"""What waits in gates, and how long: cases whose answer is known, and the parts of the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import QueryGraph, QueryOperator, estimate_latency
from slackwater.runtime.foresight.gates import (
    GatedEstimate,
    GatedFlow,
    GatedOperator,
    Rows,
    SourceTimes,
    estimate_gated,
)
from slackwater.runtime.foresight.gates.passage import passage
from slackwater.runtime.foresight.gates.release import gate_times
from slackwater.runtime.foresight.gates.results import pairs_of, waiting
from slackwater.runtime.foresight.gates.streams import Promises, Series, thinned, whole
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.model import READY_ONLY, ReleaseRule

WIDTH_S = 0.1
SECOND_NS = 1_000_000_000


def operator(name: str, *inputs: str, cost_s: float = 0.0) -> QueryOperator:
    fed = inputs or (arrivals_of(name),)
    count = len(fed)
    return QueryOperator(
        name=name, inputs=fed, cost_s=(cost_s,) * count, selectivity=(1.0,) * count
    )


def merged(
    late: np.ndarray,
    rule: ReleaseRule = READY_ONLY,
    *,
    row_s: float = 0.0,
    ends: bool = True,
    nodes: int = 1,
) -> GatedEstimate:
    """Two sources of 20 rows a second, one of which is late by so much; merged, to a sink."""
    prompt_s = np.arange(len(late)) * 0.05
    graph = QueryGraph(
        (arrivals_of("prompt"), arrivals_of("late")),
        (
            operator("prompt"),
            operator("late"),
            operator("both", "prompt", "late"),
            operator("out", "both", cost_s=row_s),
        ),
    )
    came_s = np.maximum.accumulate(prompt_s + late)
    flow = GatedFlow(
        graph=graph,
        gated={"both": GatedOperator(name="both", feeds=(("prompt", 0), ("late", 0)), rule=rule)},
        sources={
            "prompt": SourceTimes.in_order(prompt_s, prompt_s, ends=ends).series(),
            "late": SourceTimes.in_order(came_s, prompt_s, ends=ends).series(),
        },
    )
    placement = {one.name: f"n{min(j, nodes - 1)}" for j, one in enumerate(graph.operators)}
    capacity = {f"n{j}": 1.0 for j in range(nodes)}
    return estimate_gated(flow, placement, capacity, d=len(late) // 2, width_s=WIDTH_S)


@pytest.mark.parametrize(("delay_s", "leaves_s"), [(1.0, 2.0), (np.inf, 10.0)])
def test_an_interval_leaves_by_the_promise_that_passes_its_delay(
    delay_s: float, leaves_s: float
) -> None:
    times_s = np.arange(100) * 0.1
    rows = SourceTimes.in_order(times_s, times_s, ends=True).series()
    graph = QueryGraph((arrivals_of("rows"),), (operator("rows"), operator("visits", "rows")))
    visits = GatedOperator(
        name="visits", feeds=(("rows", 0),), makes="on its time", result_delay_s=delay_s
    )
    left = passage(graph, {"visits": visits}, {"rows": rows}, width_s=WIDTH_S).leaves["visits"].rows
    assert left.left_s[9] == pytest.approx(leaves_s, abs=0.15)
    assert left.stimulus_s[9] == pytest.approx(left.left_s[9])
    assert left.left_s.max() == pytest.approx(10.0, abs=0.15)
    assert left.count.sum() == pytest.approx(100)


def test_ready_only_a_row_waits_as_long_as_the_other_source_is_late() -> None:
    found = merged(np.full(400, 3.0))
    assert found.latency.worst_s == pytest.approx(3.0, abs=0.051)
    assert found.gate_s.max() == pytest.approx(3.0, abs=0.051)
    assert found.work_s.max() == 0
    (gate,) = found.gates
    assert (gate.name, gate.waits_for, gate.late) == ("both", "late", 0.0)
    assert gate.mean_s == pytest.approx(3.0 * 20 / 37, abs=0.05)  # 20 s of rows wait, 17 do not


def test_a_slack_bounds_the_wait_and_makes_the_late_rows_late() -> None:
    found = merged(np.full(400, 3.0), ReleaseRule.slack(SECOND_NS))
    # At the end nobody is ahead any more, and the slack is of no use.
    assert found.latency.held_up_s[:180].max() == pytest.approx(1.05, abs=0.06)
    assert found.latency.worst_s == pytest.approx(3.0, abs=0.051)
    assert found.gates[0].late == pytest.approx(0.5, abs=0.05)


def test_in_time_nobody_waits() -> None:
    found = merged(np.zeros(400))
    assert found.latency.worst_s <= 0.051


def test_work_behind_a_gate_comes_on_top_as_a_burst() -> None:
    """For 4 s nothing of one source comes; then all of it at once, and 8 s of rows are let go."""
    late = np.zeros(600)
    late[200:280] = 4.0 - np.arange(80) * 0.05  # rows of seconds 10 to 14 all come at 14
    found = merged(late, row_s=0.02, nodes=4)  # the sink: 0.8 of a node
    # 160 rows leave at 14, 3.2 s of work; the oldest has waited 4 s, the newest not at all.
    assert found.gate_s.max() == pytest.approx(4.0, abs=0.06)
    at_14 = found.latency.held_up_s[138:141].max()
    assert at_14 == pytest.approx(3.2, abs=0.15)
    assert found.latency.worst_s == pytest.approx(4.0, abs=0.15)  # the oldest leave first
    one_added = found.latency.mace_s + found.gate_s
    assert one_added[138:141].max() < at_14 + 0.1


@pytest.mark.parametrize("waits_s", [0, 20])
def test_where_ways_come_back_the_bound_is_that_of_work_alone_or_the_worst_with_gates(
    waits_s: int,
) -> None:
    """Work is laid out in finer parts only without gates: its spread is above its own worst."""
    costs_s = {"s": 0.0, "a": 0.09, "b": 0.07, "c": 0.16, "d": 0.095}
    names = list(costs_s)
    graph = QueryGraph(
        (arrivals_of("s"),),
        tuple(
            operator(name, *names[max(j - 1, 0) : j], cost_s=costs_s[name])
            for j, name in enumerate(names)
        ),
    )
    placement = {"s": "n0", "a": "n0", "b": "n1", "c": "n0", "d": "n1"}
    capacity, hop_s = {"n0": 1.0, "n1": 1.0}, {("n0", "n1"): 1.95, ("n1", "n0"): 0.1}
    came_s = np.arange(78 * 6) / 6
    rule = ReleaseRule.in_full(waits_s * SECOND_NS)
    flow = GatedFlow(
        graph=graph,
        gated={"a": GatedOperator(name="a", feeds=(("s", 0),), rule=rule)},
        sources={"s": SourceTimes.in_order(came_s, came_s, ends=True).series()},
    )
    found = estimate_gated(flow, placement, capacity, d=150, width_s=1.0, hop_s=hop_s)
    alone = estimate_latency(graph, found.work, placement, capacity, hop_s=hop_s)
    assert alone.spread_s > 0
    upper_s = found.latency.worst_s + found.latency.spread_s
    assert upper_s == pytest.approx(max(found.latency.worst_s, alone.worst_s + alone.spread_s))


def test_a_source_that_never_promises_holds_rows_for_ever_and_is_named() -> None:
    prompt_s = np.arange(100) * 0.05
    dumb = SourceTimes(
        stimulus_s=prompt_s,
        event_s=prompt_s,
        at_s=prompt_s,
        promise_s=np.full(100, -np.inf),
        promise_stimulus_s=prompt_s,
    )
    graph = QueryGraph(
        (arrivals_of("prompt"), arrivals_of("dumb")),
        (operator("prompt"), operator("dumb"), operator("both", "prompt", "dumb")),
    )
    flow = GatedFlow(
        graph=graph,
        gated={"both": GatedOperator(name="both", feeds=(("prompt", 0), ("dumb", 0)))},
        sources={
            "prompt": SourceTimes.in_order(prompt_s, prompt_s).series(),
            "dumb": dumb.series(),
        },
    )
    found = estimate_gated(flow, dict.fromkeys(graph.names, "n"), {"n": 1.0}, d=50, width_s=WIDTH_S)
    assert found.gates[0].longest_s == np.inf
    assert found.gates[0].waits_for == "dumb"


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_those_that_are_near_enough_with_the_later_times(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def rows(count: int) -> Rows:
        event_s = np.sort(rng.uniform(0, 10, count))
        stimulus_s = event_s + rng.uniform(0, 2, count)
        at_s = stimulus_s + rng.uniform(0, 2, count)
        return Rows(event_s, stimulus_s, at_s, at_s, np.ones(count))

    left, right = rows(30), rows(20)
    found = pairs_of(left, right, 1.5)
    near = np.abs(left.event_s[:, None] - right.event_s) <= 1.5
    assert found.count.sum() == pytest.approx(near.sum())
    leaves = np.maximum(left.at_s[:, None], right.at_s)
    waited = leaves - np.maximum(left.stimulus_s[:, None], right.stimulus_s)
    assert (found.at_s - found.stimulus_s).max() == pytest.approx(waited[near].max())


@pytest.mark.parametrize("seed", range(5))
def test_fewer_rows_stand_for_as_many_and_keep_who_waited_longest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stimulus_s = rng.uniform(0, 3, 900)
    at_s = stimulus_s + rng.exponential(1.0, 900)
    rows = Rows(stimulus_s, stimulus_s, at_s, at_s, rng.uniform(0.5, 2, 900))
    few = thinned(rows, 0.5, 10)
    assert len(few.count) <= 6 * 12
    for cell in range(6):
        mine, all_of = few.stimulus_s // 0.5 == cell, stimulus_s // 0.5 == cell
        assert few.count[mine].sum() == pytest.approx(rows.count[all_of].sum())
        longest = (few.at_s - few.stimulus_s)[mine].max()
        assert longest == (at_s - stimulus_s)[all_of].max()
    sparse = Rows(stimulus_s, stimulus_s, at_s, at_s, np.full(900, 0.1))
    drawn = whole(sparse, np.random.default_rng(seed))
    assert drawn.count.sum() == pytest.approx(90)
    assert len(drawn.count) < 150


def test_of_rows_that_stand_for_many_and_for_few_each_kind_keeps_its_share() -> None:
    """A burst of 100 rows, told by ten, beside ten that have waited."""
    at_s = np.concatenate([np.zeros(10), np.linspace(1, 2, 10)])
    stimulus_s = np.zeros(20)
    count = np.concatenate([np.full(10, 10.0), np.ones(10)])
    few = thinned(Rows(stimulus_s, stimulus_s, at_s, at_s, count), 1.0, 12)
    assert len(few.count) < 20
    assert few.count[few.at_s == 0].sum() == pytest.approx(100, abs=10)
    assert few.count.sum() == pytest.approx(110)


def test_lags_go_on_over_and_over_under_the_rates_that_are_asked_for() -> None:
    at_s = np.arange(200) * 0.05
    times = SourceTimes.in_order(at_s, at_s - np.where(at_s < 5, at_s * 0.4, 2.0))
    ahead = times.ahead(np.full(300, 7.0), WIDTH_S, beyond=20)
    rows = ahead.rows
    within = rows.stimulus_s < 30
    assert rows.count[within].sum() == pytest.approx(2_100, abs=7)
    assert rows.stimulus_s.max() == pytest.approx(32, abs=0.1)
    lag_s = rows.stimulus_s - rows.event_s
    assert lag_s[(rows.stimulus_s > 6) & (rows.stimulus_s < 9)] == pytest.approx(2.0, abs=0.01)
    assert (np.diff(rows.event_s) >= 0).all()
    rare = times.ahead(np.full(300, 0.02), WIDTH_S).rows  # a row in five seconds
    assert rare.count.tolist() == [1.0] * 6
    assert np.diff(rare.stimulus_s) == pytest.approx(5.0)


def test_times_of_other_lengths_are_refused() -> None:
    with pytest.raises(SettingError, match="equally many times of each kind"):
        SourceTimes.in_order(np.zeros(3), np.zeros(2))


def test_results_that_wait_for_rows_without_a_partner_leave_after_the_promise() -> None:
    event_s = np.arange(10.0)
    rows = Rows(event_s, event_s, event_s, event_s, np.ones(10))
    came = Series(rows, Promises(event_s, event_s, event_s, event_s))
    gate = gate_times([came], READY_ONLY)
    waited = waiting(rows, gate, delay_s=2.5)
    known = np.isfinite(waited.at_s)
    assert waited.at_s[known].tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert waited.stimulus_s[known].tolist() == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("makes", ["pairs", "on its time"])
def test_results_and_promises_after_a_step_that_waits_are_later_by_its_delay(makes: Any) -> None:
    times_s = np.arange(100) * 0.1
    rows = SourceTimes.in_order(times_s, times_s, ends=False).series()
    graph = QueryGraph(
        (arrivals_of("a"), arrivals_of("b")),
        (operator("a"), operator("b"), operator("joined", "a", "b")),
    )
    joined = GatedOperator(
        name="joined", feeds=(("a", 0), ("b", 1)), makes=makes, within_s=0.01, delay_s=2.0
    )
    passed = passage(graph, {"joined": joined}, {"a": rows, "b": rows}, width_s=WIDTH_S)
    left = passed.leaves["joined"]
    known = np.isfinite(left.rows.at_s)
    waited_s = (left.rows.at_s - left.rows.event_s)[known]
    assert waited_s.min() >= 2.0
    assert waited_s.max() == pytest.approx(2.1, abs=0.15)
    assert left.promises.event_s.max() == pytest.approx(times_s.max() - 2.0, abs=0.15)
