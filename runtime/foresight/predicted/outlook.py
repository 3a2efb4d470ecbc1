"""Outlook of a flow: its arrivals to come, and its latency in a placement.

All that judges a placement uses this: predictions, and what a move is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, Workload, estimate_latency
from slackwater.runtime.foresight.layout import Layout, Network, laid_out
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.gate_waits import GatePart, gate_part
from slackwater.runtime.foresight.query_graph import FloatArray, arrivals_of
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.runtime.foresight.units import Slices
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["Outlook", "PlacedEstimate", "estimate_placed"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlook:
    """Outlook of a flow, wherever its stages are.

    Attributes:
        series: {source: shape (d,), events that arrive in each subinterval}.
        width_s: how long a subinterval is.
        speed: how many times faster than the clock event time goes; None if not given.
        network: what lies between nodes, and what rows weigh.
        places: {slot: where it is}, of all there are.
        machines: those that may have fewer cores than slots, with what others take there.
    """

    series: Mapping[str, FloatArray]
    width_s: float
    speed: float | None
    network: Network
    places: Mapping[str, SlotPlace]
    machines: tuple[SharedCores, ...] = ()

    @property
    def arrivals(self) -> dict[str, FloatArray]:
        """{source of the query graph: events of each subinterval}."""
        return {arrivals_of(name): counts for name, counts in self.series.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class PlacedEstimate:
    """Estimate of a placement by an outlook, with a core for each slot.

    Attributes:
        latency: over time, gates and links counted.
        work: of the stages.
        gates: what gates hold back, which is in `latency`; None: nothing.
    """

    latency: LatencyEstimate
    work: Workload
    gates: GatePart | None


def estimate_placed(
    plan: Plan, sample: FlowSample, graph: QueryGraph, outlook: Outlook
) -> PlacedEstimate:
    """Return the latency of a placement.

    Args:
        plan: every stage in a slot.
        sample: of the same flow.
        graph: the sample's, at the speed of event time.
        outlook: what is ahead.

    Raises:
        SettingError: rows cross a link with a capacity, and the sample does not know their weight.
    """
    width_s = outlook.width_s
    places = {**outlook.places, **plan.places}
    slices = Slices.of(plan.limits, gated=[one.name for one in plan.stages if one.is_gated])
    layout = laid_out(graph, plan.slots, places, outlook.network, slots=list(places), slices=slices)
    gates = gate_part(
        plan, sample, outlook.series, layout=layout, width_s=width_s, speed=outlook.speed
    )
    if gates is not None:
        work = _of_stages(gates.made.work, layout, graph)
        return PlacedEstimate(latency=gates.made.latency, work=work, gates=gates)
    linked = Workload.of(layout.graph, outlook.arrivals, width_s)
    found = estimate_latency(
        layout.graph,
        linked,
        layout.places,
        layout.capacity,
        hop_s=layout.hop_s,
        least_hop_s=layout.least_hop_s,
        slices=layout.slices,
    )
    return PlacedEstimate(latency=found, work=_of_stages(linked, layout, graph), gates=None)


def _of_stages(work: Workload, layout: Layout, graph: QueryGraph) -> Workload:
    """Return the work of the stages alone, without what crosses links."""
    own = set(graph.names)
    here = [j for j, one in enumerate(layout.graph.operators) if one.name in own]
    return Workload(work.width_s, work.arrivals, work.load_s[here])
