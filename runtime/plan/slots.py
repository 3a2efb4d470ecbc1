"""Slots as values: each core of a node is a slot.

The name of a slot is for users and reports; its node and its core are fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slackwater.runtime.errors import SettingError

__all__ = ["SlotPlace", "places_by_name", "slots_of_nodes"]


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """Slot of a job: a core of a node.

    Attributes:
        name: unique among the slots: `node-1/2`, or the node's name if it has one core.
        node: name of its node.
        core: number of the core on the node, from 1.
    """

    name: str
    node: str
    core: int


def slots_of_nodes(nodes: Mapping[str, int]) -> tuple[SlotPlace, ...]:
    """Return the slots of nodes, node by node.

    Args:
        nodes: {node: its cores, >= 0}, in their order.

    Raises:
        SettingError: two slots would have one name.
    """
    places = [
        SlotPlace(node if cores == 1 else f"{node}/{core}", node, core)
        for node, cores in nodes.items()
        for core in range(1, cores + 1)
    ]
    places_by_name(places)
    return tuple(places)


def places_by_name(slots: Iterable[SlotPlace | str]) -> dict[str, SlotPlace]:
    """Return {slot's name: slot}; a plain name is a node with one core.

    Raises:
        SettingError: two slots have one name.
    """
    places: dict[str, SlotPlace] = {}
    for slot in slots:
        place = SlotPlace(slot, slot, 1) if isinstance(slot, str) else slot
        if place.name in places:
            raise SettingError(
                f"two slots are named {place.name!r}, one on node {places[place.name].node!r} and "
                f"one on {place.node!r}; give one of the nodes another name (ray start --node-name)"
            )
        places[place.name] = place
    return places
