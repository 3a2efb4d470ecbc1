"""Whose fault an end was, and how it is told."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    IngestError,
    OperatorError,
    SchemaError,
    SinkError,
    SlackwaterError,
    WorkerDied,
)
from slackwater.runtime.life import Cause, HomeNode, SlotEnded
from slackwater.runtime.life.cause import failure_report, lost_cluster, silent_peers
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages

NODES = {f"node-{n}": HomeNode(f"id-{n}", f"node-{n}", f"10.0.0.{n}") for n in (1, 2, 3)}


@pytest.fixture
def plan() -> Plan:
    """numbers on node-1 feed gate on node-2, which feeds out on node-3."""
    flow = sw.Dataflow("chain")
    numbers = sw.table(pa.table({"ts": pa.array(np.arange(3), pa.timestamp("ns"))}))
    gate = flow.source("numbers", numbers, event_time="ts").merge(name="gate")
    gate.sink("out", sw.collect_sink())
    places = {"numbers": "node-1", "gate": "node-2", "out": "node-3"}
    return place("chain", plan_stages(flow.graph), list(NODES), placement=places)


def lost(slot: str, *channels: str) -> SlotEnded:
    return SlotEnded(slot, "failed", "…", "WorkerDied", channels)


def test_the_end_that_says_nothing_is_the_one_that_is_gone(plan: Plan) -> None:
    failed = [lost("node-1", "numbers→gate"), lost("node-3", "gate→out")]
    found = silent_peers(plan, failed, ["node-2"], NODES)
    assert list(found) == ["node-2"]
    assert "slot 'node-1' on host 10.0.0.1 hears nothing from it" in found["node-2"]


def test_two_ends_that_both_tell_are_both_alive(plan: Plan) -> None:
    failed = [lost("node-1", "numbers→gate"), lost("node-2", "numbers→gate")]
    assert silent_peers(plan, failed, ["node-3"], NODES) == {}


def test_an_obituary_names_slot_stages_host_and_what_to_do(plan: Plan) -> None:
    deaths = {"node-2": "out of memory"}
    killed = failure_report(plan, deaths, NODES, lost=set()).text
    assert killed.startswith(
        "the worker of slot 'node-2' (stages: gate) died on node node-2 (host 10.0.0.2): out of"
    )
    assert "short of memory or killed by hand" in killed
    by_itself = failure_report(plan, deaths, NODES, lost=set(), own=set(deaths)).text
    assert "short of memory" not in by_itself
    assert by_itself.endswith(
        "Mend the code that did it, or do without it, and submit the flow again"
    )
    gone = failure_report(plan, deaths, NODES, lost={"id-2"}).text
    assert "Bring node-2 back, or do without" in gone
    assert "submit the flow again" in gone


def test_a_way_out_is_told_by_the_error_and_not_by_the_message(plan: Plan) -> None:
    failure = failure_report(plan, {"node-2": "out of memory"}, NODES, lost=set())
    assert failure.fact.endswith("(host 10.0.0.2): out of memory")
    cause = Cause("WorkerDied", failure.fact, ("node-2",), failure.way_out)
    assert str(cause.error()) == failure.text == f"{failure.fact}. {failure.way_out}"
    assert str(Cause("WorkerDied", "gone").error()) == "gone"


def test_an_error_is_of_its_kind_and_what_was_heard_last_travels_with_it() -> None:
    made = Cause("WorkerDied", "slot 'a' …").error(["1.000 this", "2.000 that"])
    assert (type(made), str(made)) == (WorkerDied, "slot 'a' …")
    (note,) = made.__notes__
    assert note.splitlines()[1:] == ["  1.000 this", "  2.000 that)"]
    assert type(Cause("ZeroDivisionError", "a fault of ours").error()) is SlackwaterError


@pytest.mark.parametrize("kind", [OperatorError, SinkError, IngestError, SchemaError])
def test_an_error_of_the_users_own_has_nothing_after_it(kind: type[SlackwaterError]) -> None:
    made = Cause(kind.__name__, "step 'halve': …").error(["1.000 this"], ["1.000 that"])
    assert (type(made), getattr(made, "__notes__", [])) == (kind, [])


def test_a_lost_cluster_tells_the_way_on_for_local_nodes_and_for_others() -> None:
    said = lost_cluster("the head is gone")
    assert "start local nodes again, or see with `ray status`" in said
