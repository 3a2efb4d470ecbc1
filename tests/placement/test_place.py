"""Which slot a stage runs in: a node's cores are its slots, and on one core all is as it was."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.placement.place import place
from slackwater.runtime.placement.placement_text import placement_lines
from slackwater.runtime.plan.plan import Plan, Stage, plan_stages
from slackwater.runtime.plan.slots import SlotPlace, slots_of_nodes

ROWS = pa.table({"ts": [1, 2], "key": [1, 1], "v": [1.0, 2.0]})


def node_of(plan: Plan, stage: str) -> str:
    return plan.places[plan.slots[stage]].node


def stages(
    *, replicas: int = 1, sources: int = 2, joins: int = 1, share: Any = "all"
) -> tuple[Stage, ...]:
    """Return sources, joins one behind the other, a filter that stands alone, and two sinks."""
    flow = sw.Dataflow("f")
    streams = [flow.source(f"s{n}", sw.table(ROWS), event_time="ts") for n in range(1, sources + 1)]
    for n, stream in enumerate(streams[joins + 1 :]):
        stream.sink(f"rest{n}", sw.collect_sink())
    joined = streams[0]
    for n in range(1, joins + 1):
        other = streams[n % sources].select("key")
        joined = joined.join(
            other, on="key", within="1s", name=f"j{n}", replicas=replicas, share=share
        )
    joined.filter(sw.col("v") > 0, name="few").sink("some", sw.collect_sink())
    joined.sink("all", sw.collect_sink())
    return plan_stages(flow.graph)


def planned(nodes: dict[str, int], made: tuple[Stage, ...], **options: Any) -> Plan:
    return place("f", made, slots_of_nodes(nodes), **options)


def as_it_was(made: tuple[Stage, ...], slots: list[str]) -> dict[str, str]:
    """The rule of nodes with one core, as it was before nodes had several."""
    last = len(slots) - 1
    chosen: dict[str, str] = {}
    sources = operators = 0
    for stage in made:
        if stage.kind == "source":
            chosen[stage.name] = slots[sources % max(last, 1)]
            sources += 1
        elif stage.kind in ("sink", "stateless"):
            chosen[stage.name] = chosen[stage.inputs[0].source]
        else:
            chosen[stage.name] = slots[last - operators % (last + 1)]
            operators += 1
    return chosen


def test_each_core_of_a_node_is_a_slot_and_a_lone_one_bears_the_nodes_name() -> None:
    assert slots_of_nodes({"node-1": 1, "big": 3, "none": 0}) == (
        SlotPlace("node-1", "node-1", 1),
        SlotPlace("big/1", "big", 1),
        SlotPlace("big/2", "big", 2),
        SlotPlace("big/3", "big", 3),
    )


def test_two_slots_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match="two slots are named 'a/1', one on node 'a'"):
        slots_of_nodes({"a": 2, "a/1": 1})
    with pytest.raises(SettingError, match="no slot to place stages in"):
        place("f", stages(), [])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_on_nodes_of_one_core_plans_are_as_they_were(count: int) -> None:
    names = [f"node-{n}" for n in range(1, count + 1)]
    for replicas, sources, joins in product((1, 2, 5), (2, 3, 4, 9), (1, 2, 4)):
        made = stages(replicas=replicas, sources=sources, joins=joins)
        plan = planned(dict.fromkeys(names, 1), made)
        assert plan.slots == as_it_was(made, names)
        assert {name: slot.node for name, slot in plan.places.items()} == {
            name: name for name in plan.slot_names
        }


def test_replicas_take_every_core_before_two_share_one() -> None:
    plan = planned({"node-1": 8}, stages(replicas=5))
    spread = [s.name for s in plan.stages if s.kind in ("source", "gate", "join")]
    assert len({plan.slots[name] for name in spread}) == len(spread) == 8
    assert len(plan.slot_names) == 8
    twelve = planned({"node-1": 8}, stages(replicas=12))
    own = Counter(twelve.slots[s.name] for s in twelve.stages if s.replica is not None)
    assert set(own.values()) == {1, 2}  # not all twelve in one
    busy = Counter(
        twelve.slots[s.name] for s in twelve.stages if s.kind in ("source", "gate", "join")
    )
    assert set(busy.values()) == {1, 2}  # fifteen on eight cores


def test_sources_are_in_all_slots_where_replicas_of_one_step_are() -> None:
    plan = planned({"a": 2}, stages(replicas=2, share="keys"))
    assert {name: plan.slots[name] for name in ("s1", "s2", "j1.1", "j1.2")} == {
        "s1": "a/1",
        "s2": "a/2",
        "j1.1": "a/1",
        "j1.2": "a/2",
    }
    assert planned({"a": 3}, stages(replicas=2, share="keys")).slots["s2"] == "a/2"


def test_sources_and_operators_spread_over_nodes_before_cores() -> None:
    plan = planned({"a": 2, "b": 2}, stages(replicas=2))
    where = {name: slot for name, slot in plan.slots.items() if name not in ("few", "some", "all")}
    assert where == {
        "s1": "a/1",
        "s2": "b/1",
        "j1.gate": "b/2",
        "j1.1": "a/2",
        "j1.2": "b/1",
    }
    assert [plan.slots[name] for name in ("few", "some", "all")] == ["a/2"] * 3


def test_nodes_of_many_cores_take_what_those_of_few_do_not() -> None:
    plan = planned({"head": 2, "big": 16}, stages(replicas=12))
    own = Counter(
        node_of(plan, s.name) for s in plan.stages if s.kind in ("source", "gate", "join")
    )
    assert own == {"head": 2, "big": 13}
    assert len(plan.slot_names) == 15


def test_only_slots_with_a_stage_are_in_the_plan() -> None:
    plan = planned({"node-1": 64}, stages())
    assert list(plan.places) == list(plan.slot_names)
    assert len(plan.places) == 3
    assert plan.nodes == ("node-1",)


def test_placement_names_a_slot_or_a_node() -> None:
    nodes = {"a": 4, "b": 2}
    plan = planned(nodes, stages(), placement={"s1": "a/3", "j1": "a"})
    assert plan.slots["s1"] == "a/3"
    assert node_of(plan, "j1") == "a"
    assert plan.slots["j1"] not in ("a/3", plan.slots["s2"]), "another core of it is idle"
    spread = planned(nodes, stages(replicas=3), placement={"j1": "a", "j1.2": "b/1"})
    own = [spread.slots[f"j1.{part}"] for part in ("gate", "1", "3")]
    assert spread.slots["j1.2"] == "b/1"
    assert len(set(own)) == 3, "parts of a step on a node have a core each"
    assert {node_of(spread, f"j1.{part}") for part in ("gate", "1", "3")} == {"a"}
    here = planned(nodes, stages(replicas=3), placement={"*": "b"})
    assert set(here.slot_names) == {"b/1", "b/2"}
    assert set(planned(nodes, stages(), placement={"*": "b/2"}).slots.values()) == {"b/2"}


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({"j1": "a/5"}, "slot or node 'a/5', which is not there; did you mean 'a/"),
        ({"j1": "c"}, r"'c', which is not there\. There are: a \(a/1 to a/4\), b$"),
        ({"j11": "a"}, "stage 'j11', which is not there; did you mean 'j1"),
        ({"*": "d"}, "slot or node 'd'"),
    ],
)
def test_a_slot_that_is_not_there_is_refused_with_the_nearest(
    placement: dict[str, str], said: str
) -> None:
    with pytest.raises(FlowError, match=said):
        planned({"a": 4, "b": 1}, stages(), placement=placement)


def test_cpus_that_are_not_free_are_taken_only_if_there_is_no_other_or_placement_says_so() -> None:
    nodes = {"head": 2, "b": 2}
    plan = planned(nodes, stages(replicas=2), free={"head": 1, "b": 0})
    assert set(plan.slot_names) == {"head/1"}
    plan = planned(nodes, stages(replicas=2), free={"head": 1, "b": 2})
    assert set(plan.slot_names) == {"head/1", "b/1", "b/2"}
    none = planned(nodes, stages(replicas=2), free={"head": 0, "b": 0})
    assert none.slots == planned(nodes, stages(replicas=2)).slots
    said = planned(nodes, stages(), free={"head": 2}, placement={"j1": "b/2", "s1": "b"})
    assert said.slots["j1"] == "b/2"
    assert node_of(said, "s1") == "b"


def test_explain_says_which_stages_share_a_slot_and_why() -> None:
    def lines(nodes: dict[str, int], **options: Any) -> list[str]:
        return list(placement_lines(planned(nodes, stages(), **options)))

    assert lines({"node-1": 2}) == [
        "  s1    node-1/1",
        "  s2    node-1/1  with s1: 3 sources and operators for 2 slots",
        "  j1    node-1/2",
        "  few   node-1/2  with j1: stays with what feeds it",
        "  some  node-1/2  with j1, few: stays with what feeds it",
        "  all   node-1/2  with j1, few, some: stays with what feeds it",
    ]
    moved = lines({"a": 1, "b": 1, "c": 1}, placement={"j1": "a", "s2": "c"})
    assert moved[1:4] == [
        "  s2    c",
        "  j1    a  with s1: placement= says so",
        "  few   c  with s2: stays where 'j1' would be, which placement= has moved",
    ]
    put = lines({"a": 1, "b": 1, "c": 1}, placement={"s1": "c"})
    assert put[2] == "  j1    c  with s1: placement= has put s1 here"
    assert lines({"a": 1, "b": 1}, placement={"*": "b"})[1] == (
        "  s2    b  with s1: placement= says so"
    )
