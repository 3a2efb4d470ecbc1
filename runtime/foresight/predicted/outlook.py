"""Outlook of a flow: its arrivals to come, and its latency in a placement.

Predictions and the worth of a move both use it to judge a placement.
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
        width_s: length of a subinterval.
        speed: speed of event time by the clock; None if not given.
        network: the network between nodes, and bytes of rows.
        places: {slot: its place}, of all slots.
        machines: machines that may have fewer cores than slots, with the load of other flows.
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
        latency: the estimate, with gates and links.
        work: work of the stages.
        gates: waits in gates, included in `latency`; None if nothing waits.
    """

    latency: LatencyEstimate
    work: Workload
    gates: GatePart | None


def estimate_placed(
    plan: Plan, sample: FlowSample, graph: QueryGraph, outlook: Outlook
) -> PlacedEstimate:
    """Return the latency of a placement.

    Args:
        plan: the plan, every stage in a slot.
        sample: a sample of the same flow.
        graph: the sample's graph at the speed of event time.
        outlook: the outlook of the flow.

    Raises:
        SettingError: rows cross a link with a capacity, and the sample lacks their bytes.
    """
    width_s = outlook.width_s
    places = {**outlook.places, **plan.places}
    slices = Slices.of(plan.limits, gated=[stage.name for stage in plan.stages if stage.is_gated])
    layout = laid_out(graph, plan.slots, places, outlook.network, slots=list(places), slices=slices)
    gates = gate_part(
        plan, sample, outlook.series, layout=layout, width_s=width_s, speed=outlook.speed
    )
    if gates is not None:
        work = _of_stages(gates.made.work, layout, graph)
        return PlacedEstimate(latency=gates.made.latency, work=work, gates=gates)
    linked = Workload.of(layout.graph, outlook.arrivals, width_s)
    latency = estimate_latency(
        layout.graph,
        linked,
        layout.places,
        layout.capacity,
        hop_s=layout.hop_s,
        least_hop_s=layout.least_hop_s,
        slices=layout.slices,
    )
    return PlacedEstimate(latency=latency, work=_of_stages(linked, layout, graph), gates=None)


def _of_stages(work: Workload, layout: Layout, graph: QueryGraph) -> Workload:
    """Return the work of the stages alone, without links."""
    own = set(graph.names)
    here = [j for j, name in enumerate(layout.graph.names) if name in own]
    return Workload(work.width_s, work.arrivals, work.load_s[here])
