"""Links and other costs in predictions: beside the simulator, in the shell, and when wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.foresight import circles
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.rates import OnOff
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.sampling import sample_flow
from tests.support.known_work import times
from tests.support.typed import FLOW, said

MS = 1_000_000
ROW_BYTES = 32  # event time, stimulus time, and the two columns
SECONDS, WIDTH_S = 40, 0.1
LIMITS = sw.Limits(credit_rows=10_000_000, gate_rows=10_000_000, max_slice_rows=20)


def bursts(seed: int, rate: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """When rows arrive, seconds, in on-off periods."""
    rng = np.random.default_rng(seed)
    periods = OnOff(rate, rate_ratio=20, high_s=4).rates(rng, until_s=SECONDS)
    return np.concatenate(
        [np.sort(rng.uniform(a, b, rng.poisson(r * (b - a)))) for a, b, r in periods]
    )


def flow_of(times_s: Mapping[str, Any]) -> sw.Dataflow:
    """Each source into a gate that lets all go at once, and a sink."""
    flow = sw.Dataflow("far", deadline="5s")
    for name, at_s in times_s.items():
        ts = pa.array((np.asarray(at_s) * 1e9).astype("int64"), pa.timestamp("ns"))
        table = pa.table({"ts": ts, "n": np.arange(len(ts))})
        source = flow.source(name, sw.table(table), event_time="ts", arrival="ts", speed=1)
        source.merge(name=f"gate-{name}", slack="0s").sink(f"out-{name}", sw.collect_sink())
    return flow


@pytest.mark.parametrize("seed", range(2))
def test_a_link_that_is_the_bottleneck_is_predicted_as_the_simulator_then_measures_it(
    seed: int,
) -> None:
    at_s = {"a": bursts(seed, 100), "b": bursts(100 + seed, 100)}
    flow = flow_of(at_s)
    rows = sum(map(len, at_s.values()))
    link = LinkModel(delay_ns=300 * MS, bytes_per_s=rows * ROW_BYTES / SECONDS / 0.7)
    work_ns = {"gate-a": 2 * MS, "gate-b": 1 * MS}
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages=work_ns)
    simulation = sw.Simulation(nodes=2, cost=cost, link=link)
    placement = {"*": "node-1", "gate-a": "node-2", "gate-b": "node-2"}
    placement |= {"out-a": "node-2", "out-b": "node-2"}
    costs = {name: "1us" for source in "ab" for name in (source, f"out-{source}")}
    edges = np.arange(SECONDS / WIDTH_S + 1) * WIDTH_S
    made = simulation.predict(
        flow,
        {name: np.histogram(times, edges)[0] for name, times in at_s.items()},
        placement=placement,
        limits=LIMITS,
        horizon=f"{SECONDS}s",
        costs={**costs, "gate-a": 0.002001, "gate-b": 0.001001},
    )
    report = simulation.submit(flow, placement=placement, limits=LIMITS, rates=made).wait()
    worst_s = max(sink.latency.max_ns for sink in report.sinks) / 1e9
    found = made.estimate
    assert found.bottleneck.name == "link node-1 -> node-2"
    assert worst_s > 1
    assert found.worst_s == pytest.approx(worst_s, rel=0.05, abs=WIDTH_S)
    assert found.bounds_s[0] <= worst_s <= found.bounds_s[1]
    assert found.bounds_s[0] == pytest.approx(found.mace_worst_s + 0.3)
    beside = report.prediction  # what it comes to from what arrived, by the second
    assert beside is not None
    assert beside.errors == 0
    assert (beside.estimated_worst_ns or 0) / 1e9 == pytest.approx(worst_s, rel=0.1, abs=0.5)


def asked(link: LinkModel | None = None, **more: Any) -> Prediction:
    flow = flow_of({"a": np.arange(500) / 100, "b": np.arange(500) / 100})
    placement = {"*": "node-1", "gate-a": "node-2", "out-a": "node-2"}
    return sw.Simulation(2).predict(flow, 200, link=link, placement=placement, **more)


def test_a_link_with_too_little_capacity_is_named_with_what_would_relieve_it() -> None:
    made = asked(LinkModel(delay_ns=0, bytes_per_s=50 * ROW_BYTES))
    assert made.keeps_deadline is False
    assert made.estimate.sustainable == pytest.approx(0.5, rel=0.01)
    text = made.text()
    assert "link node-1 -> node-2 is overloaded: over these 60 s it has 200% of what it" in text
    assert "bottleneck  link node-1 -> node-2: a -> gate-a; it could do 0.50 times" in text
    assert (
        "a -> gate-a takes 2.00 of what the link carries: place gate-a on node-1 or a "
        "on node-2, send less (filter or select before gate-a), or a faster link"
    ) in text
    plain = json.loads(json.dumps(made.to_json()))
    assert plain["bottleneck"] == {"node": "link node-1 -> node-2", "stage": "a -> gate-a"}
    assert asked().keeps_deadline is True  # as the simulator has it: of no capacity
    assert asked(LinkModel(bytes_per_s=200 * ROW_BYTES)).keeps_deadline is True


def test_a_delay_alone_moves_latency_and_the_bounds() -> None:
    near, far = asked(LinkModel(delay_ns=0)), asked(LinkModel(delay_ns=2_000 * MS))
    assert far.estimate.worst_s - near.estimate.worst_s == pytest.approx(2.0, abs=0.1)
    assert far.estimate.bounds_s[0] == pytest.approx(2.0, abs=0.1)
    assert asked(LinkModel(delay_ns=6_000 * MS)).keeps_deadline is False


def test_other_costs_are_those_of_a_row_of_a_stage() -> None:
    made = asked(costs={"gate-a": "8ms", "gate-b": 0.001})
    cost_s = {one.name: one.cost_s for one in made.sample.graph.operators}
    assert (cost_s["gate-a"], cost_s["gate-b"]) == ((0.008,), (0.001,))
    load = {node.name: node.load for node in made.estimate.nodes}
    assert load["node-2"] == pytest.approx(0.8, abs=0.01)


def test_other_costs_of_a_replica_are_those_of_a_row_that_comes_to_it() -> None:
    """A replica gets half of what its gate puts out, which is each row once for each side."""
    ts = pa.array(np.arange(1_000) * MS, pa.timestamp("ns"))
    flow = sw.Dataflow("shares")
    table = pa.table({"ts": ts, "k": np.arange(1_000) % 500})
    rows = flow.source("a", sw.table(table), event_time="ts")
    divided = rows.join(rows.select("k"), on="k", within="2ms", name="pairs", replicas=2)
    divided.sink("out", sw.collect_sink())
    sample = sample_flow(flow)
    made = sw.Simulation(3).predict(flow, 100, sample=sample, costs={"pairs.1": "1ms"})
    came = made.sample.shares["pairs.1"]
    assert came == pytest.approx(0.5, abs=0.1)
    assert made.cores_by["pairs.1"] == pytest.approx(2 * 100 * came * 1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (
            {"nobody": "1ms"},
            "a cost is given for 'nobody', which is not a stage; the stages are a, gate-a",
        ),
        ({"gate-a": 0}, "stage 'gate-a' is given a cost of 0 for each row.*give more than 0"),
        ({"gate-a": "0s"}, "stage 'gate-a' is given a cost of '0s'"),
        ({"gate-a": -1.0}, "stage 'gate-a' is given a cost of -1.0"),
        ({"gate-a": float("nan")}, "stage 'gate-a' is given a cost of nan"),
        ({"gate-a": "fast"}, "cost of 'gate-a'='fast' is not a length of time"),
    ],
)
def test_costs_that_are_none_are_refused(costs: Any, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        asked(costs=costs)


def test_links_and_placements_of_nodes_that_are_not_there_are_refused() -> None:
    flow = flow_of({"a": np.arange(100) / 100})
    moon = LinkModel(between={("node-1", "moon"): LinkModel()})
    with pytest.raises(SettingError, match="a link of node 'moon', which is not there"):
        sw.Simulation(2).predict(flow, 10, link=moon)
    with pytest.raises(FlowError, match="node 'node-9', which is not there; did you mean"):
        sw.Simulation(2).predict(flow, 10, placement={"a": "node-9"})


def test_a_sample_without_weights_is_refused_where_rows_cross_a_link() -> None:
    flow = flow_of({"a": np.arange(100) / 100})
    sample = replace(sample_flow(flow), row_bytes={})
    placement = {"a": "node-1", "gate-a": "node-2"}
    ask = sw.Simulation(2).predict
    ask(flow, 10, sample=sample, placement=placement)
    with pytest.raises(SettingError, match="the sample does not say what they weigh"):
        ask(flow, 10, sample=sample, placement=placement, link=LinkModel(bytes_per_s=1e6))


def test_provision_counts_links_and_keeps_what_fewer_nodes_can_do() -> None:
    """Two nodes would halve the work, but the link between them carries a tenth of the rows."""
    flow = flow_of({"a": np.arange(500) / 100, "b": np.arange(500) / 100})
    sample = sample_flow(flow)
    costs = {"gate-a": "7ms", "gate-b": "7ms"}
    rates = {"a": 100, "b": 100}
    near = fewest_nodes(flow, rates, deadline_s=1.0, sample=sample, costs=costs)
    assert near.nodes == 2
    thin = LinkModel(bytes_per_s=10 * ROW_BYTES)
    far = fewest_nodes(flow, rates, deadline_s=1.0, sample=sample, costs=costs, link=thin)
    assert far.nodes == 2  # each source beside its gate
    slots = far.made.plan.slots
    assert all(slots[name] == slots[f"gate-{name}"] == slots[f"out-{name}"] for name in "ab")
    both = fewest_nodes(flow, rates, deadline_s=1.0, sample=sample, costs=costs, link=thin, cores=2)
    assert both.nodes == 1  # its two slots have no link between them
    assert set(both.made.plan.slots.values()) == {"node-1/1", "node-1/2"}


def test_more_nodes_are_never_said_to_be_worse_than_fewer() -> None:
    """Thin links: what is spread over more nodes is slower, so all stay where fewer have them."""
    flow = flow_of({name: np.arange(500) / 100 for name in "abc"})
    sample = sample_flow(flow)
    costs = {f"gate-{name}": "4ms" for name in "abc"}
    thin = LinkModel(delay_ns=200 * MS, bytes_per_s=20 * ROW_BYTES)
    burst = {name: [30.0] * 20 + [0.0] * 80 for name in "abc"}  # 1.2 times what a slot can do
    ask = partial(fewest_nodes, flow, burst, sample=sample, costs=costs, link=thin, horizon="10s")
    found = [ask(deadline_s=1e-9, most=most) for most in (2, 3, 4)]
    assert all(one.nodes is None for one in found)
    worst = [one.made.estimate.worst_s for one in found]
    assert worst == sorted(worst, reverse=True)


def test_the_command_line_takes_links_and_costs(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    target = str(tmp_path / "flow.py")

    apart = ("--placement", "a=node-1", "--placement", "gate=node-2", "--placement", "out=node-2")
    far = said("plan", target, "--rate", "1000", "--link-capacity", "16k", *apart)
    assert "bottleneck  link node-1 -> node-2: a -> gate" in far
    slow = said("plan", target, "--rate", "1000", "--link-delay", "3s", "--json", *apart)
    assert json.loads(slow)["latency"]["worst_s"] == pytest.approx(3.0, abs=0.1)
    dear = json.loads(said("plan", target, "--rate", "10", "--cost", "gate=50ms", "--json"))
    assert dear["cost_s"]["gate"] == 0.05
    both = ("--link-capacity", "1M", "--cost", "gate=50ms")
    assert "1 node keeps 1.00 s" in said("provision", target, "--rate", "10", *both)
    for wrong, told in (
        (("--link-capacity", "much"), "'much' is not a number of bytes a second above 0"),
        (("--link-capacity", "0"), "'0' is not a number of bytes a second above 0"),
        (("--link-delay", "-1s"), "--link-delay"),
        (("--cost", "gate"), "'gate' is not STAGE=TIME"),
        (("--cost", "gate=1ms", "--cost", "gate=2ms"), "is the second cost of 'gate'"),
        (("--cost", "gate=0ms"), "give more than 0"),
    ):
        assert told in said("plan", target, "--rate", "10", *wrong, code=1)


@pytest.mark.parametrize("nothing", [None, True, "many", 1.5])
def test_without_a_sample_nothing_is_predicted(nothing: Any) -> None:
    flow = flow_of({"a": np.arange(100) / 100})
    said = "is not a sample, and costs are known from nothing else: give a number"
    with pytest.raises(SettingError, match=said):
        sw.Simulation(2).predict(flow, 10, sample=nothing)
    with pytest.raises(SettingError, match=said):
        fewest_nodes(flow, 10, deadline_s=1.0, sample=nothing)


def test_a_sample_that_cost_nothing_is_refused() -> None:
    stages = [
        StageObservations(
            name=name, inputs=inputs, rows_in=100, rows_out=100, rows=[50, 50], busy_s=[0, 0]
        )
        for name, inputs in (("a", ()), ("out", ("a",)))
    ]
    with pytest.raises(SettingError, match=r"of 100 rows cost nothing at any stage.*finer clock"):
        observed_graph(stages, slice_s=0.002)


def changed(build: Callable[[sw.Stream], sw.Stream], *, slack: str = "0s") -> sw.Dataflow:
    flow = sw.Dataflow("version")
    rows = flow.source("a", sw.table(pa.table({"ts": [1, 2], "n": [1, 2]})), event_time="ts")
    build(rows.merge(name="gate", slack=slack)).sink("out", sw.collect_sink())
    return flow


class Counts:
    """What it holds changes as it works, and is no part of what it does."""

    def __init__(self) -> None:
        self.rows = 0

    def work(self, columns: Any) -> Any:
        self.rows += len(columns["n"])
        return {"n": columns["n"]}


def kept(most: int) -> Callable[[sw.Stream], sw.Stream]:
    return lambda rows: rows.filter(sw.col("n") < most)


def mapped(work: Callable[[Any], Any]) -> Callable[[sw.Stream], sw.Stream]:
    return lambda rows: rows.map_batches(work, schema={"n": "int64"}, name="work")


def test_a_step_that_does_something_else_is_another_version_by_whatever_name() -> None:
    sample = sample_flow(changed(kept(5)))
    ask = sw.Simulation(2).predict
    ask(changed(kept(5)), 10, sample=sample)
    ask(changed(kept(5), slack="1s"), 10, sample=sample)  # it lets go later, and does the same
    with pytest.raises(SettingError, match=r"another version of flow 'version'.* differ in gate;"):
        ask(changed(kept(6)), 10, sample=sample)
    counts = Counts()
    held = sample_flow(changed(mapped(counts.work)))
    assert counts.rows == 2
    ask(changed(mapped(counts.work)), 10, sample=held)
    with pytest.raises(SettingError, match="another version"):
        ask(changed(mapped(lambda columns: {"n": columns["n"] + 1})), 10, sample=held)


def there_and_back() -> sw.Dataflow:
    """Four steps behind a source, to be placed on two nodes by turns."""
    flow = sw.Dataflow("round")
    rows = flow.source("a", sw.table(times(1_000)), event_time="ts")
    for name in ("one", "two", "three", "four"):
        rows = rows.filter(sw.col("n") >= 0, name=name)
    rows.sink("out", sw.collect_sink())
    return flow


def round_predicted(horizon: str) -> Prediction:
    """What each node could do as it comes, if ways took no time."""
    back = LinkModel(delay_ns=300 * MS)
    link = LinkModel(delay_ns=3_500 * MS, between={("node-2", "node-1"): back})
    return sw.Simulation(nodes=2).predict(
        there_and_back(),
        6,
        costs={"one": 0.05, "two": 0.07, "three": 0.115, "four": 0.095},
        placement={"*": "node-1", "two": "node-2", "four": "node-2", "out": "node-2"},
        limits=sw.Limits(fuse=False),
        link=link,
        horizon=horizon,
        width="1s",
    )


def test_work_that_meets_what_comes_back_is_a_backlog_that_mace_does_not_see() -> None:
    made = round_predicted("80s")
    assert made.estimate.mace_worst_s == 0.0
    assert made.worst_s > 10
    assert made.has_backlog
    assert "none is needed" not in made.text()


def test_where_no_upper_bound_is_known_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circles, "MOST_STEPS", 900)
    made = round_predicted("80s")
    assert "; upper bound not known: ways come back" in made.text()
    assert json.loads(json.dumps(made.to_json(), allow_nan=False))["latency"]["most_s"] is None
