"""Making of the outlook of steps that shed.

The flow is estimated once more: with shedding steps that take no time, which shows the latency
elsewhere, and with the drops by their rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, Workload
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.fits import ROOM, divided
from slackwater.runtime.foresight.predicted.gate_waits import GatePart
from slackwater.runtime.foresight.predicted.outlook import Outlook, PlacedEstimate, estimate_placed
from slackwater.runtime.foresight.predicted.shed_course import ShedCourse, shed_course
from slackwater.runtime.foresight.predicted.shed_outlook import ShedOutlook
from slackwater.runtime.foresight.predicted.what_if import costing
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.shared_cores import SharedCores, with_shared_cores
from slackwater.runtime.model import NS_PER_SECOND, format_s
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.shedding.settings import Overload, SheddingSettings

__all__ = ["shed_outlooks"]


class Predicted(Protocol):
    """Prediction without drops: a `Prediction`, which imports this module."""

    @property
    def plan(self) -> Plan: ...
    @property
    def sample(self) -> FlowSample: ...
    @property
    def graph(self) -> QueryGraph: ...
    @property
    def outlook(self) -> Outlook: ...
    @property
    def work(self) -> Workload: ...
    @property
    def gates(self) -> GatePart | None: ...
    @property
    def machines(self) -> Sequence[SharedCores]: ...
    @property
    def cores_by(self) -> Mapping[str, float]: ...
    @property
    def worst_s(self) -> float: ...
    @property
    def sustainable(self) -> float: ...
    @property
    def is_behind(self) -> bool: ...
    @property
    def is_trace(self) -> bool: ...


def shed_outlooks(made: Predicted) -> tuple[ShedOutlook, ...]:
    """Return the outlook of each stage that sheds; empty if no stage does."""
    stages = [stage for stage in made.plan.stages if _shed(stage) is not None]
    if not stages:
        return ()
    bare = _bare(made, [stage.name for stage in stages])
    return tuple(_outlook(made, stage, bare, stages) for stage in stages)


def _shed(stage: Stage) -> SheddingSettings | None:
    shed = stage.step.traits.shed
    return shed if isinstance(shed, SheddingSettings) else None


def _bare(made: Predicted, names: Sequence[str]) -> PlacedEstimate:
    """Return the estimate if the stages that shed took no time."""
    operators = [
        costing(each, 0.0) if each.name in names else each for each in made.graph.operators
    ]
    graph = QueryGraph(made.graph.sources, tuple(operators))
    placed = estimate_placed(made.plan, made.sample, graph, made.outlook)
    latency = with_shared_cores(
        placed.latency, graph, placed.work, made.plan.slots, made.outlook.machines
    )
    return PlacedEstimate(latency=latency, work=placed.work, gates=placed.gates)


def _outlook(
    made: Predicted, stage: Stage, bare: PlacedEstimate, shedding: Sequence[Stage]
) -> ShedOutlook:
    shed = _shed(stage)
    assert shed is not None
    saved = {each.name: made.sample.saved.get(each.name, 1.0) for each in shedding}
    courses = [
        _course(
            made,
            place,
            shed=shed,
            saved=saved,
            elsewhere_s=bare.latency.held_up_s,
        )
        for place in _places(made, stage)
    ]
    unshed_s = float("inf") if made.is_behind else made.worst_s
    elsewhere_s = _worst_of(bare.latency, is_trace=made.is_trace)
    cores = made.cores_by[stage.name]
    return ShedOutlook(
        stage=stage.name,
        origin=stage.subject.step,
        bound_s=shed.overload.latency_ns / NS_PER_SECOND,
        f=shed.overload.first_f,
        unshed_s=unshed_s,
        elsewhere_s=elsewhere_s,
        cores=cores,
        saved=made.sample.saved.get(stage.name),
        course=max(courses, key=lambda course: (course.worst_s, course.dropped)),
        cause=_cause(bare, elsewhere_s),
        remedy=_remedy(made, stage, unshed_s, elsewhere_s, shed.overload),
        drops=shed.drops,
    )


@dataclass(frozen=True)
class _Place:
    """Place of a stage's work, with the cores that other flows take there.

    A slot, or a machine with fewer cores than slots.
    """

    slots: frozenset[str]
    taken: float
    cores: float


def _places(made: Predicted, stage: Stage) -> list[_Place]:
    slot = made.plan.slots[stage.name]
    shared = [_Place(each.slots, each.taken, each.cores) for each in made.machines]
    shared = [place for place in shared if slot in place.slots]
    return [_Place(frozenset([slot]), 0.0, 1.0), *shared]


def _course(
    made: Predicted,
    place: _Place,
    *,
    shed: SheddingSettings,
    saved: Mapping[str, float],
    elsewhere_s: FloatArray,
) -> ShedCourse:
    """Return the course of shedding in a place, equal for all its shedding stages."""
    names = made.graph.names
    here = [j for j, name in enumerate(names) if made.plan.slots[name] in place.slots]
    own = [j for j in here if names[j] in saved]
    others = [j for j in here if names[j] not in saved]
    load_s = made.work.load_s
    d = min(load_s.shape[1], len(elsewhere_s))
    each_s = load_s[own].sum(axis=1)
    total_s = float(each_s.sum())
    shares = np.array([saved[names[j]] for j in own])
    return shed_course(
        load_s[own, :d].sum(axis=0),
        others_s=load_s[others, :d].sum(axis=0) + place.taken * made.work.width_s,
        saved=float(each_s @ shares) / total_s if total_s > 0 else 1.0,
        elsewhere_s=elsewhere_s[:d],
        shed=shed,
        capacity=place.cores,
        width_s=made.work.width_s,
    )


def _worst_of(estimate: LatencyEstimate, *, is_trace: bool) -> float:
    is_endless = estimate.is_unbounded and not is_trace
    return float("inf") if is_endless or estimate.is_held else estimate.worst_s


def _cause(bare: PlacedEstimate, elsewhere_s: float) -> str:
    """Return the place where latency is lost if shedding stages take no time."""
    lost = "latency without bound" if np.isinf(elsewhere_s) else f"up to {format_s(elsewhere_s)}"
    busiest, gates = bare.latency.bottleneck, bare.gates
    ordering_s = 0.0 if gates is None else max(gates.ordering_s.values(), default=0.0)
    if ordering_s > 0 and ordering_s >= elsewhere_s / 2:
        return f"{lost} is lost elsewhere, most of it in sources that put their rows in order"
    gate_s = gates.worst_gate_s if gates is not None and gates.made.gates else 0.0
    if gates is not None and gate_s > 0 and gate_s >= busiest.worst_s:
        gate = gates.longest
        return (
            f"{lost} is lost elsewhere, most of it in the gate of {gate.name}, waiting for "
            f"{gate.waits_for}"
        )
    if bare.latency.is_unbounded or busiest.worst_s >= elsewhere_s / 2:
        names = ", ".join(busiest.operators)
        return f"{lost} is lost elsewhere, most of it in the queues of {busiest.name} ({names})"
    return f"{lost} is lost elsewhere, most of it on the way from node to node"


def _remedy(
    made: Predicted, stage: Stage, unshed_s: float, elsewhere_s: float, overload: Overload
) -> str:
    """Return the advice that helps without drops."""
    bound_s, f = overload.latency_ns / NS_PER_SECOND, overload.first_f
    if elsewhere_s > bound_s:
        longer = [_longer(elsewhere_s / f)] if np.isfinite(elsewhere_s) else []
        return ", or ".join(["shorten that", *longer])
    cores, slot = made.cores_by[stage.name], made.plan.slots[stage.name]
    beside = sum(made.cores_by[name] for name, other in made.plan.slots.items() if other == slot)
    ways = []
    if cores < min(ROOM, beside):
        ways.append("a node more, so that it has a slot of its own")
    elif way := divided(stage, cores):
        ways.append(way)
    else:
        ways.append("less work for an event in front of it (a filter)")
    if f * bound_s < unshed_s < np.inf:
        ways.append(_longer(unshed_s / f))
    elif 0 < made.sustainable < 1:
        ways.append(f"{made.sustainable:.2f} times these rates")
    return ", or ".join(ways)


def _longer(seconds: float) -> str:
    """Return a bound that is long enough, with two significant digits."""
    digit = 10.0 ** (np.floor(np.log10(seconds)) - 1)
    return f'a longer bound: latency="{np.ceil(seconds / digit) * digit * 1000:g}ms"'
