"""Layout of a flow in its slots: its network, and the links in use.

The prediction before a run and the live estimate use the same layout.
Source: [mace] §VII-B.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.runtime.foresight.links import CROSSES, Link, with_links
from slackwater.runtime.foresight.query_graph import QueryGraph
from slackwater.runtime.foresight.units import ONE_EVENT, Slices
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["Layout", "Network", "Way", "laid_out"]

Hops = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Way from one node to another, in this direction.

    Attributes:
        least_s: least travel time of a row.
        most_s: longest travel time.
        bytes_per_s: capacity of the link; None if it has no limit.
    """

    least_s: float = 0.0
    most_s: float = 0.0
    bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Network:
    """Network of a flow; between slots of one node it has only a delay.

    Attributes:
        usual: way from any node to any other, and between the slots of one.
        between: {(from node, to node): its way}, if it is not the usual one.
        row_bytes: {(stage, its target): bytes sent for each row that leaves the stage}.
    """

    usual: Way = Way()
    between: Mapping[tuple[str, str], Way] = field(default_factory=dict)
    row_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def way(self, a: SlotPlace, b: SlotPlace) -> Way:
        """Return the way from one slot to another."""
        return self.between.get((a.node, b.node), self.usual)

    def hops_s(self, places: Iterable[SlotPlace]) -> tuple[Hops, Hops]:
        """Return {(from slot, to slot): travel time of a row}, longest and least."""
        slots = list(places)
        ways = {(a.name, b.name): self.way(a, b) for a in slots for b in slots if a.name != b.name}
        most = {ends: way.most_s for ends, way in ways.items()}
        return most, {ends: way.least_s for ends, way in ways.items()}

    def links(self, places: Iterable[SlotPlace]) -> dict[tuple[str, str], Link]:
        """Return {(from slot, to slot): its link}, if the link has a capacity."""
        slots = list(places)
        return {
            (a.name, b.name): Link(name=f"link {a.node} -> {b.node}", bytes_per_s=carries)
            for a in slots
            for b in slots
            if a.node != b.node and (carries := self.way(a, b).bytes_per_s) is not None
        }


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Layout of a flow: its stages in their slots, and the links in use.

    Attributes:
        graph: an operator for each stage, and for each channel over a link with a capacity.
        places: {operator: slot, or link}.
        capacity: {slot or link: C_i}.
        hop_s: {(from, to): longest travel time of a row}.
        least_hop_s: the same, least.
        feeders: {(stage, its target): the operator of the link between them}.
        slices: rule by which work is cut.
    """

    graph: QueryGraph
    places: Mapping[str, str]
    capacity: Mapping[str, float]
    hop_s: Mapping[tuple[str, str], float]
    least_hop_s: Mapping[tuple[str, str], float]
    feeders: Mapping[tuple[str, str], str]
    slices: Slices


def laid_out(
    graph: QueryGraph,
    placement: Mapping[str, str],
    places: Mapping[str, SlotPlace],
    network: Network,
    *,
    slots: Sequence[str] = (),
    slices: Slices = ONE_EVENT,
) -> Layout:
    """Return the layout of a flow.

    Args:
        graph: graph of its stages.
        placement: {stage: slot of the stage}.
        places: {slot in use: its place}.
        network: the network between nodes.
        slots: all slots, in their order; slots and links in use follow them.
        slices: rule by which work is cut; only bounds use it.

    Raises:
        SettingError: rows cross a link with a capacity, and their bytes are unknown.
    """
    used = [places[name] for name in dict.fromkeys(placement.values())]
    links = network.links(used)
    linked, where = with_links(graph, placement, links, network.row_bytes)
    own = set(graph.names)
    ends = {name: name.split(CROSSES) for name in linked.names if name not in own}
    most_s, least_s = network.hops_s(used)
    return Layout(
        graph=linked,
        places=where,
        capacity=dict.fromkeys([*slots, *where.values()], 1.0),
        hop_s=_from_links(most_s, links),
        least_hop_s=_from_links(least_s, links),
        feeders={(feeder, target): name for name, (feeder, target) in ends.items()},
        slices=slices,
    )


def _from_links(hop_s: Hops, links: Mapping[tuple[str, str], Link]) -> Hops:
    # The way after a link takes the whole time.
    return hop_s | {(link.name, b): hop_s[a, b] for (a, b), link in links.items()}
