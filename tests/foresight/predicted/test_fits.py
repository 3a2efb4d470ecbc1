"""A flow that does not fit: who is too much, of what, and the way out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.errors import FlowError
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.predicting import on_machines
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.sampling import sample_flow
from tests.support.known_work import MS, sampled, times

ALONE = "stage gate alone needs 1.70 cores at these rates: it cannot be divided: lower its rate"


def counting(
    row_ns: int, *, replicas: int = 1, close: Any = None
) -> tuple[sw.Dataflow, FlowSample]:
    """Counts by key, of which a row takes so long."""
    rows = times(2_000, every_ns=10 * MS)
    keys = pa.array([n % 500 for n in range(2_000)])
    flow = sw.Dataflow("counts")
    stream = flow.source("a", sw.table(rows.append_column("k", keys)), event_time="ts")
    window = sw.tumbling("1s")
    counts = stream.key_by("k").aggregate(
        window=window, n=sw.count(), name="counts", replicas=replicas, close=close
    )
    counts.sink("out", sw.collect_sink())
    sample = sample_flow(flow)
    return flow, sample


def test_a_stage_that_alone_needs_more_than_a_core_is_named_wherever_one_asks() -> None:
    flow, sample = sampled(10 * MS, times(2_000))
    host = sw.Simulation(nodes=2)
    made = host.predict(flow, 170, sample=sample)
    assert f"too much    {ALONE}. More nodes do not help: a stage runs on one core" in made.text()
    assert made.to_json()["too_much"] == made.too_much
    with pytest.raises(FlowError, match=ALONE):
        host.submit(flow, rates=170, sample=sample, admission="reject")
    found = fewest_nodes(flow, 170, deadline_s=1.0, sample=sample)
    assert f"none of 1 to 3 nodes keeps 1.00 s: {ALONE}" in found.text()
    assert host.predict(flow, 90, sample=sample).too_much is None


def test_a_stage_that_can_be_divided_is_to_have_as_many_replicas_as_do_its_work() -> None:
    flow, sample = counting(MS)
    ask = sw.Simulation(nodes=4).predict
    made = ask(flow, 100, sample=sample, costs={"counts": "17ms"})
    said = "stage counts alone needs 1.70 cores at these rates: give it replicas=2, or lower its"
    assert said in (made.too_much or "")
    assert "relief      counts takes 1.70 of a core: give it replicas (replicas=2)" in made.text()
    two, sample = counting(MS, replicas=2)
    costs = {"counts.1": "17ms", "counts.2": "17ms"}
    assert ask(two, 100, sample=sample, costs=costs).too_much is None
    more = ask(two, 200, sample=sample, costs=costs)  # 3.4 cores: four of them
    assert "give it replicas=4, or lower its rate" in (more.too_much or "")


def chain() -> sw.Dataflow:
    """Three steps behind each other."""
    flow = sw.Dataflow("chain")
    stream = flow.source("a", sw.table(times(2_000)), event_time="ts")
    for name in ("one", "two", "three"):
        stream = stream.merge(name=name, slack="0s")
    stream.sink("out", sw.collect_sink())
    return flow


def chain_costs(cost: str) -> dict[str, str]:
    """What each of the three takes for a row; source and sink take nearly nothing, by order: what
    this machine would measure of them grows with whatever else runs on it."""
    return {"a": "1us", "out": "1us"} | dict.fromkeys(("one", "two", "three"), cost)


def test_stages_that_no_placement_fits_on_the_slots_are_told() -> None:
    """Three steps of 0.6 of a core each: two slots have room for 1.8, and not for two of them."""
    flow = chain()
    costs = chain_costs("6ms")
    made = sw.Simulation(nodes=2).predict(flow, 100, sample=sample_flow(flow), costs=costs)
    said = "in which each of 2 slots keeps up: the largest stages need "
    assert said in (made.too_much or "")
    assert "of a core; give it a slot more, or lower rates" in (made.too_much or "")
    assert (made.too_much or "").count(" 0.60") == 3


def test_more_work_than_there_are_cores_says_how_many_it_takes() -> None:
    """Three steps of 0.8 of a core each, on two slots."""
    flow = chain()
    costs = chain_costs("8ms")
    sample = sample_flow(flow)
    made = sw.Simulation(nodes=2).predict(flow, 100, sample=sample, costs=costs)
    said = "its stages need 2.40 cores at these rates, and there are 2 slots of a core each: give"
    assert said in (made.too_much or "")
    assert "give it 3 or more (nodes, or cores of them), or lower rates" in (made.too_much or "")
    assert sw.Simulation(nodes=3).predict(flow, 100, sample=sample, costs=costs).too_much is None
    by_hand = sw.Simulation(nodes=3).predict(
        flow, 100, sample=sample, costs=costs, placement={"*": "node-1"}
    )
    assert "there is 1 slot of a core" in (by_hand.too_much or "")


def test_on_a_machine_of_fewer_cores_than_slots_it_is_cores_that_are_too_few() -> None:
    """Three steps of 0.5 of a core each, on two slots of a machine of one core."""
    flow = chain()
    costs = chain_costs("5ms")
    ahead = sw.Simulation(nodes=2).predict(flow, 100, sample=sample_flow(flow), costs=costs)
    assert ahead.too_much is None
    slots = frozenset({"node-1", "node-2"})
    machine = SharedCores(name="this machine", cores=1, slots=slots)
    said = on_machines(ahead, [machine]).too_much or ""
    assert "its stages on this machine need 1.50 cores at these rates, and it has 1 core," in said
    assert "give it 2 cores or more, or more machines, or lower rates" in said
    shared = replace(machine, cores=2, taken=0.75, others=1)
    said = on_machines(ahead, [shared]).too_much or ""
    assert "it has 2 cores, of which flows that run there take 0.75, however many slots" in said
    assert "give it 3 cores or more" in said


def test_more_replicas_are_no_way_out_for_their_own_gate() -> None:
    """All rows go through it, where windows close in time."""
    flow, sample = counting(MS, replicas=2, close=sw.closing.event_driven())
    costs = {"counts.gate": "17ms"}
    made = sw.Simulation(nodes=4).predict(flow, 100, sample=sample, costs=costs)
    said = "stage counts.gate alone needs 1.70 cores at these rates: it cannot be divided"
    assert said in (made.too_much or "")
    assert "replicas" not in made.text()


def test_the_rates_that_a_join_keeps_up_with_are_those_at_which_it_does() -> None:
    """Of a stream as dense as it comes, twice the rate is four times the pairs."""
    table = times(1_000, every_ns=10 * MS)
    flow = sw.Dataflow("pairs")
    sides = [
        flow.source(name, sw.table(table.rename_columns(["ts", name])), event_time="ts", speed=1)
        for name in "ab"
    ]
    keyed = [side.with_columns(k=sw.col(name) % 5) for side, name in zip(sides, "ab", strict=True)]
    keyed[0].join(*keyed[1:], on="k", within="1s", name="pairs").sink("out", sw.collect_sink())
    sample = sample_flow(flow)
    host = sw.Simulation(nodes=1)
    made = host.predict(flow, 2_000, sample=sample)
    for part, is_behind in ((0.97, False), (1.03, True)):
        rates = dict.fromkeys("ab", 1_000 * made.sustainable * part)
        assert host.predict(flow, rates, sample=sample).estimate.is_unbounded is is_behind
    assert f"it could do {made.sustainable:.2f} times this" in made.text()
