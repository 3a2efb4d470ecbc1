"""A sample, and what is predicted from it: the cost of work is known exactly here."""

from __future__ import annotations

import json
import re
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.foresight.rates import series_of
from slackwater.runtime.simulate import CostModel
from slackwater.sampling import sample_flow
from tests.support.endless import EndlessInput
from tests.support.keyed import keyed_pair
from tests.support.known_work import MS, WorkClock, bursts, counts_of, sampled, times, working
from tests.support.typed import FLOW, said


def test_a_sample_finds_what_a_row_costs_and_how_many_come_of_it() -> None:
    _, sample = sampled(3 * MS, times(5_000))
    assert sample.rows == {"numbers": 1_000}
    costs = {one.name: one.cost_s[0] for one in sample.graph.operators}
    assert costs["gate"] == pytest.approx(0.003, rel=0.001)  # the stage that `work` is fused to
    assert costs["numbers"] == pytest.approx(0, abs=1e-9)
    assert costs["out"] == pytest.approx(0, abs=1e-6)
    assert [one.selectivity for one in sample.graph.operators] == [(1.0,), (1.0,), (1.0,)]


def test_code_that_waits_costs_as_long_as_it_waits() -> None:
    def asks(columns: Any) -> Any:
        select.select([], [], [], 0.001 * len(columns["n"]))  # a service that answers in 1 ms
        return {"n": columns["n"]}

    sample = sample_flow(working(asks, times(40)))
    assert 0.001 <= max(one.cost_s[0] for one in sample.graph.operators) < 0.003


def test_a_sample_calls_no_sink_and_writes_nothing(tmp_path: Path) -> None:
    called: list[int] = []
    clock = WorkClock(MS)
    for out in (sw.callback_sink(called.append), sw.parquet_sink(tmp_path / "out")):
        sample_flow(working(clock.work, times(100), out), rows=50, clock_ns=clock)
    assert clock.now_ns == 2 * 50 * MS
    assert called == []
    assert list(tmp_path.iterdir()) == []


def test_a_live_source_is_not_read_for_a_sample() -> None:
    flow = sw.Dataflow("live")
    flow.source("feed", EndlessInput(), event_time="ts").sink("out", sw.collect_sink())
    with pytest.raises(SettingError, match=r"'feed' reads numbers without end, which is live"):
        sample_flow(flow)


def test_a_sample_that_shows_nothing_says_so() -> None:
    with pytest.raises(SettingError, match="the sample has no rows: sources numbers are empty"):
        sample_flow(working(WorkClock(MS).work, times(0)))
    nothing = sw.Dataflow("nothing")
    rows = nothing.source("a", sw.table(times(100)), event_time="ts").filter(sw.col("n") < 0)
    rows.sink("out", sw.collect_sink())
    with pytest.raises(SettingError, match=r"gave no result at out.*data that have results"):
        sample_flow(nothing)
    with pytest.raises(SettingError, match="a sample of 0 rows"):
        sample_flow(nothing, rows=0)


def test_a_flow_whose_sample_gives_no_result_runs_all_the_same_and_says_so() -> None:
    flow = sw.Dataflow("rare", deadline="5s")
    rows = flow.source("a", sw.table(times(3_000)), event_time="ts", speed=1)
    rows.filter(sw.col("n") == 2_900).sink("out", sw.collect_sink())
    host = sw.Simulation(nodes=1)
    for admission in (None, "warn"):
        plan = host.plan(flow, rates=80, sample=100, admission=admission)
        (note,) = plan.verdict.notes
        assert note.startswith("nothing is predicted: the sample of 100 rows gave no result at out")
        assert note.endswith("give a larger sample")
    with pytest.raises(SettingError, match=r"admission='reject' needs a prediction.*warn"):
        host.plan(flow, rates=80, sample=100, admission="reject")
    (sink,) = host.submit(flow, rates=80, sample=100).wait().sinks
    assert sink.rows == 1
    said = host.explain(flow, rates=80, sample=100)
    assert "nothing is predicted: the sample of 100 rows gave no result at out" in said


def test_a_sample_of_all_rows_without_results_is_not_told_to_be_larger() -> None:
    flow = sw.Dataflow("none")
    rows = flow.source("a", sw.table(times(100)), event_time="ts", speed=1)
    rows.filter(sw.col("n") < 0).sink("out", sw.collect_sink())
    with pytest.raises(SettingError, match="these are all rows of its sources") as caught:
        sample_flow(flow, rows=1_000)
    assert "larger" not in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_bursts_are_predicted_as_the_simulator_then_measures_them(seed: int) -> None:
    """From 1,000 of some 6,000 rows: worst latency within 3 %, two ways apart."""
    table = bursts(seed)
    row_ns = int(0.7 * 60e9 / len(table))  # a mean load of 0.7
    flow, sample = sampled(row_ns, table)
    cost = CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": row_ns})
    simulation = sw.Simulation(nodes=1, cost=cost)
    predicted = simulation.predict(flow, {"numbers": counts_of(table)}, sample=sample)
    report = simulation.submit(flow).wait()
    (sink,) = report.sinks
    measured_s = sink.latency.max_ns / 1e9
    assert predicted.estimate.worst_s > 5 * 0.1  # a backlog of several subintervals
    assert predicted.estimate.worst_s == pytest.approx(measured_s, rel=0.03)
    assert predicted.estimate.mace_worst_s == pytest.approx(measured_s, rel=0.03)
    assert predicted.keeps_deadline is (measured_s <= 5) or abs(measured_s - 5) < 0.2


def test_the_simulator_runs_at_the_costs_that_it_predicts_with() -> None:
    """Those of the sample, or those that it was given."""
    table = bursts(1)
    row_ns = int(0.7 * 60e9 / len(table))
    flow, sample = sampled(row_ns, table)
    rates = {"numbers": counts_of(table)}
    given = CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": row_ns})
    for host, by in (
        (sw.Simulation(nodes=1), sample),
        (sw.Simulation(nodes=1, cost=given), 1_000),
    ):
        made = host.predict(flow, rates, sample=by)
        (sink,) = host.submit(flow, rates=rates, sample=by).wait().sinks
        assert made.worst_s > 0.5
        assert sink.latency.max_ns / 1e9 == pytest.approx(made.worst_s, rel=0.03)


def test_the_fixed_part_of_a_slice_is_predicted_as_it_runs() -> None:
    """Its slices have seven rows, so 8,000 in 2 s take 3.0 s, not 2.4 or 4.8."""
    gate = {"gate": 0.5 * MS}
    cost = CostModel(per_slice_ns=0, per_row_ns=0, slices=gate, stages={"gate": 0.3 * MS})
    flow = working(lambda columns: {"n": columns["n"]}, times(8_000, MS // 4))
    made = {}
    for name, by in (("given", cost), ("sampled", None)):
        sample = sample_flow(flow, cost=cost)
        host = sw.Simulation(nodes=1, cost=by)
        made[name] = host.predict(flow, {"numbers": [400] * 20}, sample=sample, horizon="2s")
        (sink,) = host.submit(flow, rates=4_000, sample=sample).wait().sinks
        assert sink.latency.max_ns / 1e9 == pytest.approx(1.0, rel=0.05), name
        assert made[name].worst_s == pytest.approx(1.0, rel=0.05), name


def pairs_of(work: Callable[[Any], Any], at_s: Any, keys: Any) -> sw.Dataflow:
    """Two streams with rows at these times, their pairs within a second, and work on each pair."""
    flow = sw.Dataflow("pairs")
    sides = keyed_pair(flow, at_s, keys)
    joined = sides[0].join(sides[1], on="key", within="1s", name="joined", slack="0s")
    each = joined.with_columns(n=sw.col("a_n")).select("n").merge(name="gate", slack="0s")
    each.map_batches(work, schema={"n": "int64"}, name="work").sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("seed", range(3))
def test_a_join_is_predicted_to_find_more_partners_in_a_stream_that_becomes_denser(
    seed: int,
) -> None:
    """Sampled at 20 rows/s a side, run with a burst of 80/s: sixteen times the pairs, not four."""
    rng = np.random.default_rng(seed)
    calm, burst, after = (
        np.sort(rng.uniform(a, b, n)) for a, b, n in ((0, 25, 500), (25, 30, 400), (30, 60, 600))
    )
    at_s = np.concatenate([calm, burst, after])
    keys = rng.integers(0, 10, (2, len(at_s)))
    row_ns = 5 * MS
    clock = WorkClock(row_ns)
    flow = pairs_of(clock.work, at_s, keys)
    sample = sample_flow(flow, rows=400, clock_ns=clock)
    cost = CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": row_ns})
    simulation = sw.Simulation(nodes=1, cost=cost)
    trace = np.histogram(at_s, bins=600, range=(0.0, 60.0))[0]
    made = simulation.predict(flow, {"a": trace, "b": trace}, sample=sample)
    (sink,) = simulation.submit(flow).wait().sinks
    measured_s = sink.latency.max_ns / 1e9
    assert measured_s > 10
    assert made.estimate.worst_s == pytest.approx(measured_s, rel=0.15)
    linear = sample.graph.at_speed(None)
    assert all(one.curve is None for one in linear.operators)


@pytest.mark.parametrize("seed", range(2))
def test_what_a_window_lets_go_at_its_end_is_predicted_to_come_at_once(seed: int) -> None:
    """Some 430 of 500 keys every 5 s, 2 ms each: a tenth of the node, and 0.9 s of latency."""
    rng = np.random.default_rng(seed)
    at_s = np.sort(rng.uniform(0, 60, 12_000))
    clock = WorkClock(2 * MS)
    flow = sw.Dataflow("windows")
    stamps = pa.array((at_s * 1e9).astype("int64"), pa.timestamp("ns"))
    table = pa.table({"ts": stamps, "key": rng.integers(0, 500, len(at_s))})
    source = flow.source("a", sw.table(table), event_time="ts", arrival="ts", speed=1)
    counts = source.aggregate(window=sw.tumbling("5s"), by="key", n=sw.count(), name="counts")
    gate = counts.select("n").merge(name="gate", slack="0s")
    gate.map_batches(clock.work, schema={"n": "int64"}, name="work").sink("out", sw.collect_sink())
    sample = sample_flow(flow, rows=4_000, clock_ns=clock)
    simulation = sw.Simulation(
        nodes=1, cost=CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": 2 * MS})
    )
    made = simulation.predict(flow, 200, sample=sample)
    (sink,) = simulation.submit(flow).wait().sinks
    measured_s = sink.latency.max_ns / 1e9
    assert measured_s > 0.8
    # A subinterval more, by Theorem 2; and some windows have more keys than the mean one.
    assert made.estimate.worst_s <= measured_s <= made.estimate.worst_s + 0.1 + 0.05


def test_a_rate_above_capacity_is_unbounded_and_says_what_can_be_kept_up_with() -> None:
    flow, sample = sampled(10 * MS, times(2_000))
    made = sw.Simulation(nodes=2).predict(flow, 200, sample=sample)
    assert made.estimate.is_unbounded
    assert made.estimate.sustainable == pytest.approx(0.5, rel=0.001)
    assert made.keeps_deadline is False
    assert "node-2 is overloaded: over these 60 s it has 200% of what it can do" in made.text()
    assert "0.50 times these it could do" in made.text()
    assert json.loads(json.dumps(made.to_json()))["unbounded"] is True


def test_where_the_simple_rule_falls_behind_a_searched_placement_is_taken_unless_said_by_hand() -> (
    None
):
    clock = WorkClock(4 * MS)
    flow = sw.Dataflow("three")
    for name in "abc":
        rows = flow.source(name, sw.table(times(1_000)), event_time="ts")
        gate = rows.merge(name=f"gate-{name}", slack="0s")
        work = gate.map_batches(clock.work, schema={"n": "int64"}, name=f"work-{name}")
        work.sink(f"out-{name}", sw.collect_sink())
    sample = sample_flow(flow, clock_ns=clock)
    rates = {"a": 225, "b": 75, "c": 75}  # 0.9, 0.3 and 0.3 of a core, on two slots
    free = sw.Simulation(nodes=2).predict(flow, rates, sample=sample)
    assert free.considered == {"simple rule": float("inf"), "search": free.estimate.worst_s}
    assert free.estimate.worst_s < 1
    assert free.plan.slots["gate-b"] == free.plan.slots["gate-c"] != free.plan.slots["gate-a"]
    by_hand = {"gate-a": "node-1", "gate-b": "node-1"}
    said = sw.Simulation(nodes=2).predict(flow, rates, sample=sample, placement=by_hand)
    assert said.estimate.is_unbounded
    assert {said.plan.slots["gate-a"], said.plan.slots["gate-b"]} == {"node-1"}
    assert "simple rule without bound" in said.text()


def test_provision_names_the_fewest_nodes_and_what_one_fewer_would_do() -> None:
    clock = WorkClock(5 * MS)
    flow = sw.Dataflow("two")
    for name in "ab":
        rows = flow.source(name, sw.table(times(1_000)), event_time="ts")
        gate = rows.merge(name=f"gate-{name}", slack="0s")
        work = gate.map_batches(clock.work, schema={"n": "int64"}, name=f"work-{name}")
        work.sink(f"out-{name}", sw.collect_sink())
    sample = sample_flow(flow, clock_ns=clock)
    rates = {"a": 150, "b": 150}  # 0.75 of a core each
    answer = fewest_nodes(flow, rates, deadline_s=1.0, sample=sample)
    assert answer.nodes == 2
    assert answer.fewer is not None
    assert answer.fewer.estimate.is_unbounded
    assert answer.text().startswith("2 nodes keep 1.00 s")
    assert "1 would not: node-1 would be overloaded, with 150% of what it can do" in answer.text()
    never = fewest_nodes(flow, {"a": 500, "b": 1}, deadline_s=1.0, sample=sample)
    assert never.nodes is None
    assert "none of 1 to 6 nodes keeps 1.00 s" in never.text()
    assert "gate-a" in never.text()


def test_a_deadline_under_the_work_on_a_row_is_not_kept_and_one_under_the_bound_may_be() -> None:
    """Rows of 50 ms, one a second: nothing is ever behind, and none leaves before 50 ms."""
    table = times(60)
    flow, sample = sampled(50 * MS, table)
    rates = {"numbers": [1.0 if n % 10 == 0 else 0.0 for n in range(600)]}
    host = sw.Simulation(nodes=1)
    made = host.predict(flow, rates, sample=sample)
    assert made.estimate.mace_worst_s == 0.0
    assert made.worst_s == pytest.approx(0.05, abs=0.001)
    lower, upper = made.bounds_s
    assert lower == pytest.approx(0.05, rel=0.1)
    assert upper > 0.15
    verdicts = {s: made.verdict_on(s) for s in (0.04, 0.1, 5.0)}
    assert verdicts == {0.04: "not kept", 0.1: "may be missed", 5.0: "kept"}
    assert made.keeps_deadline is True  # 5 s

    tight = host.predict(flow.with_deadline(0.1), rates, sample=sample)
    assert "deadline    100 ms may be missed: up to " in tight.text()
    plain = tight.to_json()
    assert (plain["keeps_deadline"], plain["verdict"]) == (None, "may be missed")
    plan = host.plan(flow.with_deadline(0.1), rates=tight, admission="reject")
    assert plan.verdict.refusal is None
    assert any("100 ms may be missed: up to " in note for note in plan.verdict.notes)
    late = host.predict(flow.with_deadline(0.04), rates, sample=sample)
    refused = host.plan(flow.with_deadline(0.04), rates=late, admission="reject").verdict.refusal
    assert "its deadline of 40.0 ms would not be kept" in (refused or "")
    answer = fewest_nodes(flow, rates, deadline_s=0.1, sample=sample)
    assert "keeps 100 ms, as it is estimated; it may be missed (up to " in answer.text()
    assert answer.to_json()["verdict"] == "may be missed"


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"nobody": 5}, "given for 'nobody', which is not a source"),
        ({}, "source 'numbers' has no rate"),
        (-1, r"a rate of -1 events/s is none: it is at least 0 and at most 1e\+12"),
        ({"numbers": 1e300}, r"a rate of 1e\+300 events/s is none"),
        (float("nan"), "a rate of nan events/s is none"),
        ({"numbers": [1.0, 2.0]}, "a trace of 2 counts was given for 600 subintervals"),
        *((odd, "is not a rate: give events a second") for odd in ("100", True, 3j)),
        *(({"numbers": odd}, "is not a rate: give") for odd in ("a", ["a"] * 600, {}, None, True)),
    ],
)
def test_rates_that_are_none_are_refused(rates: Any, said: str) -> None:
    flow, sample = sampled(MS, times(100), rows=100)
    with pytest.raises(SettingError, match=said):
        sw.Simulation().predict(flow, rates, sample=sample)


def test_a_rate_of_all_together_is_refused_as_it_was_written() -> None:
    with pytest.raises(SettingError, match="a rate of -5 events/s is none"):
        series_of(-5, {"a": 0.5, "b": 0.5}, d=1, width_s=1.0)


@pytest.mark.parametrize(("nodes", "cores"), [(10**20, 1), (1_001, 1), (1, 1_001), (0, 1)])
def test_a_simulation_of_more_slots_than_can_be_planned_is_refused(nodes: int, cores: int) -> None:
    with pytest.raises(SettingError, match="slots; a simulation has 1 to 1,000"):
        sw.Simulation(nodes, cores=cores)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"seed": -1}, "seed=-1 is none: give a whole number"),
        ({"seed": 1.5}, "seed=1.5 is none"),
        ({"speed": "a"}, "speed='a' is none: give a number above 0"),
        ({"placement": {"out": 5}}, "placement= has 'out': 5, which is not a stage and its slot"),
        ({"placement": "node-1"}, "placement='node-1' is none: give {stage"),
        ({"link": 5}, "link=5 is none: give sw.testing.LinkModel"),
        ({"costs": "s"}, "costs='s' is none: give {stage"),
        ({"history": 5}, "history=5 is none: give the folder"),
        ({"limits": 5}, "limits=5 is none: give sw.Limits"),
    ],
)
def test_settings_of_another_kind_are_refused_by_name(asked: dict[str, Any], said: str) -> None:
    flow, sample = sampled(MS, times(100), rows=100)
    with pytest.raises(SettingError, match=re.escape(said)):
        sw.Simulation().predict(flow, 10, **({"sample": sample} | asked))
    with pytest.raises(SettingError, match=re.escape(said)):
        sw.Simulation().replica_table(flow, 10, **({"sample": sample} | asked))
    with pytest.raises(SettingError, match="5 is not a flow"):
        sw.Simulation().predict(5, 10)  # type: ignore[arg-type]
    with pytest.raises(FlowError, match="cannot be rewritten by 5"):
        sw.rewritten(flow, 5)  # type: ignore[arg-type]


def test_an_option_that_is_unknown_is_refused_with_the_nearest() -> None:
    flow, _ = sampled(MS, times(100), rows=100)
    said = "predict has no option 'placment'; the nearest is 'placement'; there are: placement, "
    with pytest.raises(SettingError, match=re.escape(said)):
        sw.Simulation().replica_table(flow, 10, placment={})  # type: ignore[call-arg]


def test_a_sample_of_another_version_is_refused() -> None:
    _, sample = sampled(MS, times(100), rows=100)
    other = sw.Dataflow("works")
    other.source("numbers", sw.table(times(10)), event_time="ts").sink("else", sw.collect_sink())
    with pytest.raises(SettingError, match=r"another version of flow 'works'.*else"):
        sw.Simulation().predict(other, 10, sample=sample)


def test_the_command_line_plans_and_provisions(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    target = str(tmp_path / "flow.py")

    text = said("plan", target, "--nodes", "2", "--rate", "1000", "--sample", "500")
    assert text.startswith("flow typed: predicted from a sample of 500 rows; nothing was run")
    assert "deadline    1.00 s is kept" in text
    assert "bottleneck  node-" in text
    plain = json.loads(said("plan", target, "--rate", "a=1_000", "--json"))
    assert plain["rates"] == {"a": pytest.approx(1_000)}
    assert {node["name"] for node in plain["nodes"]} == {"node-1", "node-2", "node-3"}
    assert said("provision", target, "--rate", "1000").startswith("1 node keeps 1.00 s")
    assert "deadline    1.00 s" in said("plan", target, "--rate", "1000", "--speed", "1")
    assert "event time goes forward" in said("plan", target, "--rate", "9", "--speed", "0", code=1)
    assert "--rate 10000" in said("plan", target, code=1)
    assert "write N or SOURCE=N" in said("plan", target, "--rate", "many", code=1)
    assert "names no source" in said("plan", target, "--rate", "=5", code=1)
    assert "second rate of 'a'" in said("plan", target, "--rate", "a=5", "--rate", "a=6", code=1)
    refused = said("run", target, "--simulate", "--admission", "maybe", "--rate", "9", code=1)
    assert "admission='maybe' must be 'reject'" in refused
    assert "stands alone" in said("plan", target, "--rate", "5", "--rate", "6", code=1)
    none = ("--deadline", "1ns", "--rate", "1000", "--most", "2")
    text = said("provision", target, *none, code=1)
    assert "no number of nodes was found that keeps 1 ns" in text
    assert '"nodes": null' in said("provision", target, *none, "--json", code=1)
    assert '"sustainable": null' in said("plan", target, "--rate", "0", "--json")
    assert re.search(r"^bottleneck  .*[^; ]$", said("plan", target, "--rate", "0"), re.MULTILINE)
