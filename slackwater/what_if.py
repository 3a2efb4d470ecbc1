"""What a prediction may be asked beside what a sample says: other costs, other links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from runtime.errors import SettingError
from runtime.estimate import LatencyEstimate, QueryGraph, Workload, estimate_latency
from runtime.estimate.latency_estimate import NodeEstimate
from runtime.estimate.links import CROSSES, Link, with_links
from runtime.estimate.query_graph import CostCurve, FloatArray, QueryOperator
from runtime.estimate.units import Slices
from runtime.model import NS_PER_SECOND, Duration, duration_ns
from runtime.plan.plan import Plan
from runtime.plan.slots import SlotPlace
from runtime.simulate import LinkModel
from slackwater.sampling import FlowSample

__all__ = [
    "Layout",
    "Network",
    "estimate_on",
    "layout_of",
    "link_relief",
    "network_of",
    "with_costs",
]


@dataclass(frozen=True, kw_only=True)
class Network:
    """What lies between slots.

    Attributes:
        most_hop_s: {(from slot, to slot): the most that a message travels}.
        least_hop_s: the least.
        links: {(from slot, to slot): the link with a capacity that it goes over}.
    """

    most_hop_s: Mapping[tuple[str, str], float]
    least_hop_s: Mapping[tuple[str, str], float]
    links: Mapping[tuple[str, str], Link]


def network_of(model: LinkModel, places: Sequence[SlotPlace]) -> Network:
    """Return what lies between these slots; those of one node have no link between them."""
    most: dict[tuple[str, str], float] = {}
    least: dict[tuple[str, str], float] = {}
    links: dict[tuple[str, str], Link] = {}
    for a in places:
        for b in places:
            if a.name == b.name:
                continue
            own, ends = model.of(a.node, b.node), (a.name, b.name)
            least[ends] = own.delay_ns / NS_PER_SECOND
            most[ends] = (own.delay_ns + own.jitter_ns) / NS_PER_SECOND
            if own.bytes_per_s is not None and a.node != b.node:
                name = f"link {a.node} -> {b.node}"
                links[ends] = Link(name=name, bytes_per_s=own.bytes_per_s)
    return Network(most_hop_s=most, least_hop_s=least, links=links)


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


def layout_of(plan: Plan, sample: FlowSample, *, slots: Sequence[str], network: Network) -> Layout:
    """Return a plan as an estimator takes it.

    Args:
        plan: every stage in a slot.
        sample: of the same flow.
        slots: those of the nodes, in their order; links in use come behind them.
        network: what lies between them.

    Raises:
        SettingError: rows cross a link with a capacity, and the sample does not know their weight.
    """
    graph, places = with_links(sample.graph, plan.slots, network.links, sample.row_bytes)
    own = set(sample.graph.names)
    crossings = [one.name for one in graph.operators if one.name not in own]
    ends = {name: name.split(CROSSES) for name in crossings}
    return Layout(
        graph=graph,
        places=places,
        capacity=dict.fromkeys([*slots, *places.values()], 1.0),
        hop_s=_with_links(network.most_hop_s, network.links),
        least_hop_s=_with_links(network.least_hop_s, network.links),
        feeders={(feeder, target): name for name, (feeder, target) in ends.items()},
        slices=Slices.of(
            plan.limits, gated=[stage.name for stage in plan.stages if stage.is_gated]
        ),
    )


def estimate_on(
    layout: Layout, arrivals: Mapping[str, FloatArray], *, width_s: float
) -> LatencyEstimate:
    """Return the latency of a flow whose gates hold nothing back.

    Args:
        layout: where it runs.
        arrivals: {source of the graph: events of each subinterval}.
        width_s: w.
    """
    return estimate_latency(
        layout.graph,
        Workload.of(layout.graph, arrivals, width_s),
        layout.places,
        layout.capacity,
        hop_s=layout.hop_s,
        least_hop_s=layout.least_hop_s,
        slices=layout.slices,
    )


def _with_links(
    hop_s: Mapping[tuple[str, str], float], links: Mapping[tuple[str, str], Link]
) -> dict[tuple[str, str], float]:
    """Return the same with the ways from a link on: what is behind it takes the whole time."""
    behind = {(link.name, b): hop_s[a, b] for (a, b), link in links.items()}
    return {**hop_s, **behind}


def link_relief(plan: Plan, link: NodeEstimate) -> str:
    """Return what would relieve a link which is the bottleneck."""
    crossing = link.operators[0]
    feeder, _, target = crossing.partition(CROSSES)
    here, there = (plan.places[plan.slots[name]].node for name in (feeder, target))
    return (
        f"{crossing} takes {link.load:.2f} of what the link carries: place {target} on "
        f"{here} or {feeder} on {there}, send less (filter or select before {target}), or a faster "
        "link"
    )


def with_costs(sample: FlowSample, costs: Mapping[str, Duration]) -> FlowSample:
    """Return a sample with other costs of some stages.

    Args:
        sample: as it was taken.
        costs: {stage: what a row of it takes on a core, "2ms" or seconds}.

    Raises:
        SettingError: no stage of that name, or a cost that is not above 0.
    """
    known = sample.graph.names
    cost_s = {name: _cost_s(name, cost, known) for name, cost in costs.items()}
    operators = [
        _costing(one, cost_s[one.name] * sample.shares.get(one.name, 1.0))
        if one.name in cost_s
        else one
        for one in sample.graph.operators
    ]
    return replace(sample, graph=QueryGraph(sample.graph.sources, tuple(operators)))


def _costing(operator: QueryOperator, cost_s: float) -> QueryOperator:
    """Return an operator of which a row takes so long, whatever comes of it."""
    curve = None if operator.curve is None else _Costing(operator.curve, cost_s)
    return replace(operator, cost_s=(cost_s,) * len(operator.inputs), curve=curve)


@dataclass(frozen=True)
class _Costing:
    """A curve with another cost: so long for each row that comes."""

    curve: CostCurve
    cost_s: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        del width_s
        return np.asarray(self.cost_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        return self.curve.events_out(arrivals, width_s)

    def at_speed(self, speed: float) -> CostCurve:
        return _Costing(self.curve.at_speed(speed), self.cost_s)


def _cost_s(name: str, cost: Duration, known: Sequence[str]) -> float:
    if name not in known:
        raise SettingError(
            f"a cost is given for {name!r}, which is no stage; the stages are {', '.join(known)} "
            "(what is fused to a stage is a part of its cost)"
        )
    if isinstance(cost, (int, float)):  # seconds, which may be finer than a nanosecond
        found = float(cost)
    else:
        found = duration_ns(cost, what=f"cost of {name!r}") / NS_PER_SECOND
    if not 0 < found < float("inf"):
        raise SettingError(
            f"stage {name!r} is given a cost of {cost!r} for each row; all work takes some time: "
            "give more than 0, or leave it out for what the sample measured"
        )
    return found
