"""What moves from one placement to another, and who must hold still for it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from slackwater.runtime.placement.moved import moved_plan
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.plan.slots import SlotPlace, slots_of_nodes

HERE = {"a": "one", "b": "two", "pairs": "two", "out": "two", "alone": "three", "end": "three"}
NODES = slots_of_nodes({"one": 1, "two": 1, "three": 1, "four": 2})


def joined() -> Plan:
    """Two sources and their join; beside it a source with a sink, in a slot of their own."""
    rows = sw.table(pa.table({"ts": pa.array([0], pa.timestamp("ms")), "n": [1]}))
    flow = sw.Dataflow("joined")
    a, b, alone = (flow.source(name, rows, event_time="ts") for name in ("a", "b", "alone"))
    a.join(b, on="n", within="1s", name="pairs").sink("out", sw.collect_sink())
    alone.sink("end", sw.collect_sink())
    plan = sw.Simulation(nodes=1).plan(flow)
    places = {one: SlotPlace(one, one, 1) for one in HERE.values()}
    return replace(plan, slots=HERE, places=places)


def test_only_the_slots_of_what_moves_and_their_neighbours_hold_still() -> None:
    plan = joined()
    found = Relocation.between(plan, moved_plan(plan, {"pairs": "four/2"}, NODES))
    assert found.moves == (("pairs", "two", "four/2"),)
    assert found.rewired == {"a→pairs", "b→pairs", "pairs→out"}
    assert found.slots == ("one", "two", "four/2")  # not "three"
    assert found.new_slots == ("four/2",)
    assert found.leaving("two") == ("pairs",)


def test_a_stage_takes_the_slot_of_a_node_with_the_fewest_stages_or_stays_in_one_of_it() -> None:
    plan = joined()
    moved = moved_plan(plan, {"pairs": "four", "out": "four", "b": "four"}, NODES)
    assert [moved.slots[name] for name in ("b", "pairs", "out")] == ["four/1", "four/2", "four/1"]
    again = moved_plan(moved, {"pairs": "four"}, NODES)
    assert again.slots == moved.slots


def test_what_has_ended_stays_and_nothing_moves_to_where_all_has_ended() -> None:
    plan = joined()
    wanted = moved_plan(plan, {"alone": "four/1", "pairs": "one"}, NODES)
    found = Relocation.between(plan, wanted, ended=["three"])
    assert found.moves == (("pairs", "two", "one"),)
    with pytest.raises(FlowError, match="stage 'pairs' cannot move to slot 'one': all stages of"):
        Relocation.between(plan, wanted, ended=["one"])


def test_a_plan_without_moves_concerns_nobody() -> None:
    plan = joined()
    found = Relocation.between(plan, moved_plan(plan, {"pairs": "two"}, NODES))
    assert (found.moves, found.slots, found.rewired) == ((), (), frozenset())
