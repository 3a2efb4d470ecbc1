"""What is predicted of a step that sheds, held against what the simulator then does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.foresight.chosen.admission import admitted_plan
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.predicted.shed_outlook import ShedOutlook
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.sampling import sample_flow

MS = 1_000_000
BOUND_S = 0.4
ROWS, SAMPLE, RATE = 4_000, 2_700, 500
WINDOWS = 4
EVENT_NS = 1e9 / RATE


def shedding(
    *,
    keys: int = 1,
    replicas: int = 1,
    held: str | None = None,
    deadline: str | None = None,
    drops: Any = "pairs",
) -> sw.Dataflow:
    """In windows of 200 events, four over each; types 0, 1, 2 come first in a window, by turns."""
    at = np.arange(ROWS) // keys % 50
    columns = {
        "ts": np.arange(ROWS) * 2 * MS,
        "kind": np.where(at < 6, at // 2, 3 + at % 3),
        "key": np.arange(ROWS) % keys,
    }
    made = sw.Dataflow("bound", deadline=deadline)
    order: Any = {} if held is None else {"disorder": held, "out_of_order": "sort"}
    table = sw.table(pa.table(columns))
    events = made.source("events", table, event_time="ts", time_unit="ns", speed=1.0, **order)
    events.pattern(
        sw.patterns.seq(*[sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(3)]),
        by="key" if keys > 1 else (),
        type="kind",
        window=sw.patterns.count_window(200, every=200 // WINDOWS),
        matches=1,
        shed=sw.shedding.espice(f"{BOUND_S}s", f=0.8, drops=drops),
        replicas=replicas,
        name="found",
    ).sink("out", sw.collect_sink())
    return made


def costs(load: float, *, fixed: float = 0.0) -> CostModel:
    """Events take so much of a core, and that share of it whether they are dropped or not."""
    return CostModel(
        per_row_ns=0,
        per_slice_ns=0,
        stages={"found": load * fixed * EVENT_NS},
        per_comparison_ns=load * (1 - fixed) * EVENT_NS / WINDOWS,
    )


def sampled(flow: sw.Dataflow, cost: CostModel) -> FlowSample:
    return sample_flow(flow, rows=SAMPLE, cost=cost)


def predicted(
    cost: CostModel, flow: sw.Dataflow | None = None, *, nodes: int = 1, **how: Any
) -> tuple[Prediction, ShedOutlook]:
    flow = shedding() if flow is None else flow
    made = sw.Simulation(nodes, cost=cost).predict(
        flow, RATE, sample=sampled(flow, cost), horizon=ROWS / RATE, **how
    )
    (found,) = made.shedding
    return made, found


@pytest.mark.parametrize(
    ("load", "fixed"), [(0.8, 0.0), (1.2, 0.3), (2.0, 0.0), (2.0, 0.6)], ids=str
)
def test_a_run_drops_what_was_predicted_and_keeps_its_bound_where_that_was(
    load: float, fixed: float
) -> None:
    """Within 0.03 of the pairs, a seventh of the bound, and 0.7 s until windows are all there."""
    cost = costs(load, fixed=fixed)
    _, found = predicted(cost)
    report = sw.Simulation(1, cost=cost).submit(shedding()).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    (sink,) = report.sinks
    # Where all that can be dropped is, there are no results: events tell that the bound is broken.
    worst_s = max(sink.latency.max_ns, counts.slowest_ns) / 1e9
    assert found.course.dropped == pytest.approx(counts.dropped / counts.pairs, abs=0.03)
    assert found.helps is (worst_s <= BOUND_S) is (fixed < 0.5)
    if found.helps:
        assert found.course.worst_s == pytest.approx(worst_s, abs=0.15 * BOUND_S)
    else:  # it grows to the end, when there are few results
        assert 2 * BOUND_S < worst_s < found.course.worst_s
        assert "dropping all saves" in counts.reason
    assert found.sheds is (counts.began_ns is not None)
    if counts.began_ns is not None:
        assert found.course.from_s is not None
        assert 0 <= counts.began_ns / 1e9 - found.course.from_s <= 0.7


@pytest.mark.parametrize(("load", "fixed"), [(0.8, 0.0), (1.5, 0.3)], ids=str)
def test_where_events_are_dropped_whole_it_is_said_too(load: float, fixed: float) -> None:
    """An event costs something while a window waits for it: of these a tenth."""
    cost = CostModel(
        per_row_ns=0,
        per_slice_ns=0,
        stages={"found": load * fixed * EVENT_NS},
        per_comparison_ns=load * (1 - fixed) * EVENT_NS * 10,
    )
    _, found = predicted(cost, shedding(drops="events"))
    report = sw.Simulation(1, cost=cost).submit(shedding(drops="events")).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert found.helps
    assert report.sinks[0].latency.max_ns / 1e9 <= BOUND_S
    assert found.sheds is (counts.shed > 0) is (load > 1)
    assert ("of the events that its windows wait for" in found.text) is found.sheds


def test_below_what_can_be_done_the_bound_is_kept_with_nothing_dropped() -> None:
    made, found = predicted(costs(0.8))
    assert (found.keeps_unshed, found.sheds, found.helps) == (True, False, True)
    assert "shedding    found keeps 400 ms with nothing dropped" in made.text()
    (plain,) = made.to_json()["shedding"]
    assert (plain["sheds"], plain["dropped"], plain["keeps_without"]) == (False, 0.0, True)


def test_above_it_the_prediction_says_from_when_on_how_much_and_what_would_do_instead() -> None:
    made, found = predicted(costs(2.0), shedding(keys=2), nodes=3)
    assert found.course.dropped_since == pytest.approx(0.5, abs=0.05)
    assert found.course.worst_s <= BOUND_S
    assert "about 4" in found.text or "about 5" in found.text
    assert "For nothing to be dropped: replicas=3, or 0.5" in found.text
    (plain,) = made.to_json()["shedding"]
    assert plain["worst_without_s"] is None
    assert plain["saved"] == pytest.approx(1.0)


def test_where_dropping_saves_nothing_replicas_are_named_and_no_share_that_would_do() -> None:
    _, found = predicted(costs(1.5, fixed=1.0), shedding(keys=2), nodes=3)
    assert (found.sheds, found.helps) == (True, False)
    assert found.saved == pytest.approx(0.0, abs=1e-6)
    assert "1.50 s a second, of which dropping all saves 0.00 s" in found.text
    assert "replicas=2" in found.text


def test_a_bound_broken_by_what_lies_behind_is_said_to_be_and_the_run_says_the_same() -> None:
    cost, link = costs(0.5), LinkModel(delay_ns=450 * MS)
    host = sw.Simulation(2, cost=cost, link=link)
    flow, where = shedding(), {"*": "node-1", "out": "node-2"}
    made = host.predict(flow, RATE, sample=sampled(flow, cost), placement=where)
    (found,) = made.shedding
    assert (found.is_elsewhere, found.sheds, found.helps) == (True, False, False)
    assert "450 ms is lost elsewhere, most of it on the way from node to node" in found.text
    assert 'latency="570ms"' in found.text
    report = host.submit(shedding(), placement=where).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert counts.dropped == 0
    assert "elsewhere" in counts.reason


def test_time_in_which_a_source_puts_rows_in_order_is_not_won_back_by_dropping() -> None:
    _, found = predicted(costs(0.5), shedding(held="1s"))
    assert (found.is_elsewhere, found.sheds) == (True, False)
    assert found.elsewhere_s == pytest.approx(1.0, abs=0.02)
    assert "sources that put their rows in order" in found.text


def test_where_another_step_is_too_slow_dropping_is_said_not_to_help() -> None:
    cost = CostModel(per_row_ns=0, per_slice_ns=0, stages={"events": 1.5 * EVENT_NS})
    made, found = predicted(cost, nodes=3)
    assert (found.is_elsewhere, found.helps) == (True, False)
    assert "most of it in the queues of node-1 (events)" in found.text
    assert not made.keeps_by_dropping


def test_a_gate_that_holds_rows_for_longer_than_the_bound_is_named() -> None:
    """Two streams, one of them later and later, by a second at the end: the union waits for it."""
    flow = sw.Dataflow("late")
    sides = []
    for name, late_ns in (("now", 0), ("late", 1_000 * MS)):
        at = np.arange(2_000) * 4 * MS
        lag = late_ns * np.arange(2_000) // 2_000
        table = pa.table({"ts": at, "came": at + lag, "kind": np.arange(2_000) % 3})
        sides.append(
            flow.source(
                name, sw.table(table), event_time="ts", arrival="came", time_unit="ns", speed=1.0
            )
        )
    sides[0].merge(sides[1]).pattern(
        sw.patterns.seq(*[sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(3)]),
        type="kind",
        window=sw.patterns.count_window(200, every=50),
        shed=sw.shedding.espice("400ms", drops="pairs"),
        name="found",
    ).sink("out", sw.collect_sink())
    cost = CostModel(per_row_ns=1_000, per_slice_ns=0)
    made = sw.Simulation(1).predict(
        flow, 500, sample=sample_flow(flow, rows=2_000, cost=cost), horizon="8s"
    )
    (found,) = made.shedding
    assert found.is_elsewhere
    assert "most of it in the gate of" in found.text


def test_nodes_are_counted_for_nothing_dropped_and_fewer_say_what_they_would_drop() -> None:
    flow, cost = shedding(keys=4, replicas=4), costs(1.2)
    answer = fewest_nodes(flow, RATE, deadline_s=1.0, sample=sampled(flow, cost), horizon="12s")
    assert answer.nodes == 2
    assert answer.text().startswith("2 nodes keep 1.00 s with nothing dropped")
    assert "found keeps 400 ms by dropping" in answer.text()
    assert answer.to_json()["one_fewer"]["shedding"][0]["dropped_since"] > 0.1
    alone = shedding(keys=4)
    none = fewest_nodes(alone, RATE, deadline_s=1.0, sample=sampled(alone, cost), horizon="12s")
    assert none.nodes is None
    assert "keeps 1.00 s with nothing dropped: stage found alone needs" in none.text()


def test_a_flow_that_keeps_its_deadline_by_dropping_is_let_in_and_told_so() -> None:
    flow = shedding(keys=2, deadline="1s")
    made, _ = predicted(costs(1.2), flow)
    assert made.keeps_deadline is False
    assert "deadline    1.00 s is kept by dropping alone" in made.text()
    verdict = admitted_plan(made, "reject").verdict
    assert verdict.refusal is None
    assert any("found keeps 400 ms by dropping" in note for note in verdict.notes)
    made, _ = predicted(costs(2.0, fixed=0.6), flow)
    refusal = admitted_plan(made, "reject").verdict.refusal
    assert refusal is not None
    assert "its backlog grows for ever" in refusal


def test_what_an_event_costs_and_what_dropping_saves_are_known_from_two_passes() -> None:
    flow = shedding()
    sample = sampled(flow, costs(1.2, fixed=0.25))
    (cost_s,) = [one.cost_s[0] for one in sample.graph.operators if one.name == "found"]
    assert cost_s == pytest.approx(1.2 / RATE, rel=0.02)
    assert sample.saved == {"found": pytest.approx(0.75, abs=0.01)}


def test_a_sample_that_takes_longer_than_the_bound_drops_nothing() -> None:
    """Its events come as quickly as they can be read, which is no overload."""
    flow = shedding()
    sample = sampled(flow, costs(50.0))
    (found,) = [one for one in sample.stages if one.name == "found"]
    assert sum(found.pairs) > 3.9 * (SAMPLE - 200)


@pytest.mark.parametrize("load", [0.8, 1.5, 2.0])
def test_where_stretches_are_passed_over_it_is_said_too(load: float) -> None:
    """Rows cost something whatever windows wait for; one that is passed over costs a tenth."""
    cost = CostModel(per_row_ns=0, per_slice_ns=0, stages={"found": load * EVENT_NS})
    _, found = predicted(cost, shedding(drops="stretches"))
    report = sw.Simulation(1, cost=cost).submit(shedding(drops="stretches")).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert found.helps
    assert found.saved == pytest.approx(0.9, abs=0.02)
    assert report.sinks[0].latency.max_ns / 1e9 <= BOUND_S
    assert counts.slowest_ns / 1e9 <= BOUND_S
    assert found.sheds is (counts.passed_over > 0) is (load > 1)
    assert counts.shed == counts.passed_over
    assert counts.shed / ROWS == pytest.approx(found.course.dropped, abs=0.04)
    assert ("of its rows, in stretches" in found.text) is found.sheds
