"""A flow that goes on has the stages of its checkpoint, in any number of slots."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.plan.division import Division, partitions_of_plan
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.fingerprint import fingerprint_of
from slackwater.runtime.sources.spec import Partition
from tests.simulate.test_source_stages import Parts

NAMES = ["p0", "p1", "p2", "p3"]


class Topic(Parts):
    """Partitions that others make, so that no attribute of the input says how many."""

    def partitions(self) -> list[Partition]:
        return [Partition(name) for name in NAMES]


def flow_of(replicas: Any = "auto", source: str = "rows") -> sw.Dataflow:
    flow = sw.Dataflow("parts")
    rows = flow.source(source, Topic([]), event_time="ts", time_unit="ms")
    sums = rows.aggregate(
        by="k", window=sw.tumbling("100ms"), n=sw.sum("v"), replicas=replicas, name="sums"
    )
    sums.sink("out", sw.collect_sink())
    return flow


def planned(flow: sw.Dataflow, nodes: int, limits: sw.Limits | None = None) -> Plan:
    with sw.Simulation(nodes=nodes) as own:
        return own.plan(flow, limits=limits)


def division_of(plan: Plan) -> Division:
    counts = fingerprint_of(plan)["stages"]
    return Division({n: int(text) for n, text in counts.items()}, partitions_of_plan(plan))


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_stages_are_those_of_before_in_any_number_of_slots(before: int, nodes: int) -> None:
    then = planned(flow_of(), before)
    now = planned(flow_of().with_division(division_of(then)), nodes)
    assert fingerprint_of(now) == fingerprint_of(then)
    assert [stage.name for stage in now.stages] == [stage.name for stage in then.stages]
    assert len(now.slot_names) <= nodes
    if nodes != before:
        assert fingerprint_of(planned(flow_of(), nodes)) != fingerprint_of(then)


def test_a_partition_that_appeared_since_moves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    then = planned(flow_of(), 3)
    monkeypatch.setattr("tests.plan.test_division.NAMES", ["new", *NAMES])
    now = planned(flow_of().with_division(division_of(then)), 3)
    assert fingerprint_of(now) == fingerprint_of(then)
    assert partitions_of_plan(now) == partitions_of_plan(then)
    assert partitions_of_plan(planned(flow_of(), 3)) != partitions_of_plan(then)


def test_a_number_of_replicas_that_the_user_has_written_stays() -> None:
    division = division_of(planned(flow_of(), 3))
    plan = planned(flow_of(replicas=2).with_division(division), 3)
    assert fingerprint_of(plan)["stages"]["sums"] == "2"


def test_a_division_follows_new_names() -> None:
    division = division_of(planned(flow_of(), 3)).renamed({"rows": "trips"})
    plan = planned(flow_of(source="trips").with_division(division), 2)
    assert fingerprint_of(plan)["stages"] == {"trips": "3", "sums": "3", "out": "1"}
    assert partitions_of_plan(plan) == {"trips": tuple(NAMES)}
