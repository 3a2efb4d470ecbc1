"""A flow in its slots, as an estimator takes it: what lies between nodes, and which links are used.

Predictions before a run and the estimate that goes along with one lay a flow out alike.
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
    """What is between one node and another, in this direction.

    Attributes:
        least_s: the least that a row travels.
        most_s: the most.
        bytes_per_s: what the link carries; None: any number.
    """

    least_s: float = 0.0
    most_s: float = 0.0
    bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Network:
    """What lies between nodes; of slots of one node there is only the delay.

    Attributes:
        usual: from any node to any other, and between the slots of one.
        between: another way for some: {(from node, to node): its way}.
        row_bytes: {(stage, the one that it feeds): bytes sent there for each row put out}.
    """

    usual: Way = Way()
    between: Mapping[tuple[str, str], Way] = field(default_factory=dict)
    row_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def way(self, a: SlotPlace, b: SlotPlace) -> Way:
        """Return the way from one slot to another."""
        return self.between.get((a.node, b.node), self.usual)

    def hops_s(self, places: Iterable[SlotPlace]) -> tuple[Hops, Hops]:
        """Return {(from slot, to slot): how long a row travels}, at most and at least."""
        there = list(places)
        ways = {(a.name, b.name): self.way(a, b) for a in there for b in there if a.name != b.name}
        most = {ends: way.most_s for ends, way in ways.items()}
        return most, {ends: way.least_s for ends, way in ways.items()}

    def links(self, places: Iterable[SlotPlace]) -> dict[tuple[str, str], Link]:
        """Return {(from slot, to slot): the link with a capacity that rows go over}."""
        there = list(places)
        return {
            (a.name, b.name): Link(name=f"link {a.node} -> {b.node}", bytes_per_s=carries)
            for a in there
            for b in there
            if a.node != b.node and (carries := self.way(a, b).bytes_per_s) is not None
        }


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A flow as an estimator takes it: its stages in their slots, and the links in use.

    Attributes:
        graph: the stages, and what crosses a link with a capacity: an operator for each.
        places: {operator: slot, or link}.
        capacity: {slot or link: C_i}.
        hop_s: {(from, to): the most that a row travels}.
        least_hop_s: the least.
        feeders: {(stage, the one that it feeds): what the second one is fed by, if it is a link}.
        slices: how work is cut.
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
    """Return a flow as an estimator takes it.

    Args:
        graph: its stages.
        placement: {stage: slot}.
        places: {slot in use: where it is}.
        network: what lies between nodes.
        slots: all there are, in their order; those in use, and links in use, come behind them.
        slices: how work is cut; it tells in bounds alone.

    Raises:
        SettingError: rows cross a link with a capacity, and nobody knows their weight.
    """
    used = [places[name] for name in dict.fromkeys(placement.values())]
    links = network.links(used)
    linked, where = with_links(graph, placement, links, network.row_bytes)
    own = set(graph.names)
    ends = {one.name: one.name.split(CROSSES) for one in linked.operators if one.name not in own}
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
    """Return the same with the ways from a link on: what is behind it takes the whole time."""
    return hop_s | {(link.name, b): hop_s[a, b] for (a, b), link in links.items()}
