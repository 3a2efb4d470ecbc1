"""Where slots go, decided from what nodes there are: no Ray runs here."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.placement import HEAD, NodeInfo, list_nodes, name_nodes, place
from runtime.errors import ClusterError


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


THREE = [node("node-1"), node("node-2"), node("node-3")]


def names(placed: dict[str, NodeInfo]) -> dict[str, str]:
    return {slot: at.name for slot, at in placed.items()}


def test_slots_spread_over_the_nodes_in_order() -> None:
    placed = place(["a", "b", "c", "d"], THREE)
    assert names(placed) == {"a": "node-1", "b": "node-2", "c": "node-3", "d": "node-1"}


def test_a_pinned_slot_goes_first_and_the_others_around_it() -> None:
    placed = place(["a", "b", "c", "d"], THREE, pinned={"c": "node-2"})
    assert names(placed) == {"a": "node-1", "b": "node-3", "c": "node-2", "d": "node-1"}
    assert list(placed) == ["a", "b", "c", "d"]


def test_a_full_node_is_passed_over() -> None:
    placed = place(["a", "b", "c"], [node("full", 0.5, 4.0), node("free")])
    assert names(placed) == {"a": "free", "b": "free", "c": "free"}


def test_a_rounding_error_of_ray_takes_no_slot_away() -> None:
    assert names(place(["a"], [node("one", 0.9999999, 1.0)])) == {"a": "one"}


def test_an_unknown_node_is_refused_with_the_nodes_there_are() -> None:
    with pytest.raises(ClusterError, match=r"'node-9', which is not there; .*node-1, node-2"):
        place(["join"], THREE, pinned={"join": "node-9"})


def test_an_unknown_slot_is_refused_with_the_slots_there_are() -> None:
    with pytest.raises(ClusterError, match=r"'jion', which this flow does not have; .*join"):
        place(["join"], THREE, pinned={"jion": "node-1"})


def test_two_slots_of_one_name_are_refused() -> None:
    with pytest.raises(ClusterError, match="named twice"):
        place(["a", "a"], THREE)


def test_too_few_cpus_are_counted() -> None:
    with pytest.raises(ClusterError, match=r"3 CPUs are missing") as caught:
        place(list("abcde"), [node("x", 1.0, 4.0), node("y", 1.0)])
    assert "x has 1 of 4 CPUs free" in str(caught.value)


def test_no_node_at_all_is_said() -> None:
    with pytest.raises(ClusterError, match="there is no node"):
        place(["a"], [])


def test_a_node_too_small_for_what_is_pinned_to_it_is_named() -> None:
    with pytest.raises(ClusterError, match="'b' is to go to 'small', which has no 1 CPU left"):
        place(
            ["a", "b"],
            [node("small", 1.0), node("large", 8.0)],
            pinned={"a": "small", "b": "small"},
        )


@given(
    slots=st.integers(0, 20),
    free=st.lists(st.integers(0, 8), min_size=1, max_size=6),
    data=st.data(),
)
def test_every_slot_has_room_and_no_node_with_room_is_left_behind(
    slots: int, free: list[int], data: st.DataObject
) -> None:
    nodes = [node(f"n{i}", float(cpus)) for i, cpus in enumerate(free)]
    wanted = [f"s{i}" for i in range(slots)]
    pinned = data.draw(
        st.dictionaries(st.sampled_from(wanted), st.sampled_from([n.name for n in nodes]))
        if wanted
        else st.just({})
    )
    try:
        placed = place(wanted, nodes, pinned=pinned)
    except ClusterError:
        on_each = Counter(pinned.values())
        assert slots > sum(free) or any(on_each[n.name] > n.free_cpus for n in nodes)
        return
    held = Counter(at.name for at in placed.values())
    assert list(placed) == wanted
    assert all(placed[slot].name == name for slot, name in pinned.items())
    assert all(held[n.name] <= n.free_cpus for n in nodes)
    unpinned = Counter(placed[slot].name for slot in wanted if slot not in pinned)
    for n in nodes:  # whoever got an unpinned slot had no more than any node with room left
        for other in nodes:
            if unpinned[n.name] and held[other.name] < other.free_cpus:
                assert held[n.name] <= held[other.name] + 1


def record(name: str, node_id: str, **more: Any) -> dict[str, Any]:
    return {
        "NodeName": name,
        "NodeID": node_id,
        "NodeManagerAddress": "10.0.0.7",
        "Alive": True,
        "Resources": {"CPU": 2.0, "memory": 5.0},
        **more,
    }


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
