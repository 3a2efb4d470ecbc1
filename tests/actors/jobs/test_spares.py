"""Processes that a job takes over: those of slots for its slots, and a spare stays one."""

from __future__ import annotations

from slackwater.actors.jobs.spares import Spares
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.slot.actor import WarmProcess


def node(name: str) -> NodeInfo:
    return NodeInfo(
        name=name,
        node_id=name,
        ip="127.0.0.1",
        cpus=4.0,
        free_cpus=4.0,
        memory_bytes=0,
        is_head=False,
    )


def test_slots_get_processes_of_slots_on_their_nodes_and_a_spare_stays_one() -> None:
    spares = Spares("job")
    processes = [
        ("spare 1", WarmProcess("one", 0, is_spare=True)),
        ("slot a", WarmProcess("one", 1, is_spare=False)),
        ("slot b", WarmProcess("two", 1, is_spare=False)),
        ("spare 3", WarmProcess("three", 0, is_spare=True)),
    ]
    slots = {"a": node("one"), "b": node("two"), "c": node("four")}
    assert spares.take_over(processes, slots) == {"a": "slot a", "b": "slot b"}
    assert spares.nodes == {"one", "three"}
    assert spares.take({"d": node("one")}) == {"d": "spare 1"}


def test_a_slot_gets_the_spare_of_its_node_if_the_process_of_a_slot_has_died() -> None:
    spares = Spares("job")
    slots = {"a": node("one")}
    assert spares.take_over([("spare", WarmProcess("one", 0, is_spare=True))], slots) == {
        "a": "spare"
    }
    assert spares.nodes == set()
