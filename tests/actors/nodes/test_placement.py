"""What nodes there are, and whether slots fit: no Ray runs here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slackwater.actors.nodes.placement import (
    HEAD,
    SLOTS,
    NodeInfo,
    list_nodes,
    missing_cpus,
    name_nodes,
    new_homes,
)
from slackwater.runtime.errors import ClusterError


def node(name: str, free: float = 4.0, cpus: float | None = None) -> NodeInfo:
    return NodeInfo(
        name=name,
        node_id=f"id-of-{name}",
        ip="10.0.0.1",
        cpus=free if cpus is None else cpus,
        free_cpus=free,
        memory_bytes=2**30,
        is_head=False,
    )


def test_a_node_with_a_cpu_for_each_slot_has_room() -> None:
    slots = {"a": "id-of-x", "b": "id-of-x", "c": "id-of-y"}
    assert missing_cpus(slots, [node("x", 2.0, 4.0), node("y", 1.0)]) == []
    assert missing_cpus({}, [node("x", 0.0)]) == []


def test_each_node_that_lacks_cpus_is_named_with_how_many() -> None:
    slots = {"a": "id-of-x", "b": "id-of-x", "c": "id-of-y", "d": "id-of-z"}
    assert missing_cpus(slots, [node("x", 0.5, 4.0), node("y", 1.0), node("z", 0.0)]) == [
        "x lacks 1.5 of 2 CPUs (0.5 of its 4 are free)",
        "z lacks 1 of 1 CPUs (0 of its 0 are free)",
    ]


def test_a_rounding_error_of_ray_takes_no_slot_away() -> None:
    assert missing_cpus({"a": "id-of-one"}, [node("one", 0.9999999, 1.0)]) == []


def test_slots_go_where_a_process_waits_if_there_is_room_and_then_to_the_emptiest_node() -> None:
    nodes = [
        replace(node(n, free), cores=4) for n, free in zip("fbe", (0.0, 1.0, 3.0), strict=True)
    ]
    warm = {"id-of-f", "id-of-b"}  # the first is full
    homes = new_homes(["a", "b", "c", "d", "e"], nodes, warm=warm)
    assert {slot: home.name for slot, home in homes.items()} == {
        "a": "b",
        **dict.fromkeys("bcd", "e"),
    }
    assert [home.name for home in new_homes(["a"], nodes).values()] == ["e"]


def record(name: str, node_id: str, **more: Any) -> dict[str, Any]:
    return {
        "NodeName": name,
        "NodeID": node_id,
        "NodeManagerAddress": "10.0.0.7",
        "Alive": True,
        "Resources": {"CPU": 2.0, "memory": 5.0},
        **more,
    }


@pytest.mark.parametrize(
    ("resources", "free", "offers"),
    [
        ({"CPU": 8.0}, 8.0, (8, 8)),
        ({"CPU": 8.0}, 2.5, (8, 2)),
        ({"CPU": 4.0, SLOTS: 1.0}, 3.0, (1, 1)),  # a local node
        ({"CPU": 2.0, SLOTS: 9.0}, 0.9999999, (2, 1)),
        ({"CPU": 0.5}, 0.5, (0, 0)),
        ({}, 0.0, (0, 0)),  # a head that takes no work
    ],
)
def test_a_node_offers_a_slot_for_each_cpu_or_as_many_as_it_says(
    resources: dict[str, float], free: float, offers: tuple[int, int]
) -> None:
    (found,) = name_nodes([record("a", "01", Resources=resources)], {"01": {"CPU": free}})
    assert (found.cores, found.free_slots) == offers


def test_the_head_comes_first_and_the_dead_are_left_out() -> None:
    found = name_nodes(
        [
            record("b", "02"),
            record("dead", "03", Alive=False, Resources={}),
            record("z", "01", Resources={"CPU": 8.0, HEAD: 1.0}),
        ],
        {"01": {"CPU": 3.0}, "02": {}},
    )
    assert [(n.name, n.is_head, n.cpus, n.free_cpus) for n in found] == [
        ("z", True, 8.0, 3.0),
        ("b", False, 2.0, 0.0),
    ]


def test_nodes_of_one_name_are_told_apart() -> None:
    found = name_nodes([record("x", "aaaabbbbcccc"), record("x", "ddddeeeeffff")], {})
    assert [n.name for n in found] == ["x-aaaabbbb", "x-ddddeeee"]


def test_a_node_without_a_name_goes_by_its_address() -> None:
    assert name_nodes([record("", "01")], {})[0].name == "10.0.0.7"


def test_nodes_are_listed_only_when_connected() -> None:
    with pytest.raises(ClusterError, match="not connected to Ray"):
        list_nodes()
