"""The slots there are: each core of a node is one, and a slot is a value.

Its name is for people and reports; which node it is on, and which core of it, are fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slackwater.runtime.errors import SettingError

__all__ = ["SlotPlace", "places_by_name", "slots_of_nodes"]


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """One slot: a core of a node.

    Attributes:
        name: unique among the slots: `node-1/2`, or of a node with one core the node's own name.
        node: the name of its node.
        core: which core of the node, from 1.
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
    found: dict[str, SlotPlace] = {}
    for slot in slots:
        place = SlotPlace(slot, slot, 1) if isinstance(slot, str) else slot
        if place.name in found:
            raise SettingError(
                f"two slots are named {place.name!r}, one on node {found[place.name].node!r} and "
                f"one on {place.node!r}; give one of the nodes another name (ray start --node-name)"
            )
        found[place.name] = place
    return found
