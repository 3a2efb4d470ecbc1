"""Coverage of a prediction: what its sample shows, and how far off it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slackwater.runtime.foresight.curves import ScaledCurve
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.outlook import Outlook, estimate_placed
from slackwater.runtime.foresight.query_graph import QueryGraph
from slackwater.runtime.model import format_s
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.steps import SourceStep

__all__ = ["covered_lines", "not_held", "uncounted", "uncounted_text", "widened_s"]

ERRORS = {2: 6.3, 3: 2.9, 4: 2.4}
"""{stretches: standard errors of what work costs that the stated range leaves room for}: the 95th
percentile of Student's t, for a spread that so few show is uncertain itself."""
ERRORS_OF_FIVE = 2.1


def widened_s(
    bounds_s: tuple[float, float],
    plan: Plan,
    sample: FlowSample,
    graph: QueryGraph,
    outlook: Outlook,
) -> tuple[float, float]:
    """Return the bounds of the worst latency, by how far off costs may be.

    Where parts of the sample differ in what a row costs, costs may be so far off.

    Args:
        bounds_s: with costs as they are predicted.
        plan: every stage in a slot.
        sample: of the same flow.
        graph: the sample's, at the speed of event time.
        outlook: what is ahead.
    """
    least_s, most_s = bounds_s
    off = work_off(sample)
    for factor in (1 / (1 + off), 1 + off) if off > 0 else ():
        found = estimate_placed(plan, sample, _times(graph, factor), outlook).latency.bounds_s
        least_s, most_s = min(least_s, found[0]), max(most_s, found[1])
    return least_s, most_s


def work_off(sample: FlowSample) -> float:
    """Return how far off a sample's work may be, as a share."""
    return ERRORS.get(sample.stretches, ERRORS_OF_FIVE) * sample.spread


def _times(graph: QueryGraph, factor: float) -> QueryGraph:
    """Return a graph whose work takes so many times as long."""
    operators = [
        replace(
            one,
            cost_s=tuple(cost_s * factor for cost_s in one.cost_s),
            curve=None if one.curve is None else ScaledCurve(one.curve, factor, 1.0),
            alone_s=one.alone_s * factor,
        )
        for one in graph.operators
    ]
    return QueryGraph(graph.sources, tuple(operators))


def covered_lines(sample: FlowSample) -> list[str]:
    """Return how much time a sample covers, for people; none: it is not known."""
    if sample.covers_s <= 0:
        return []
    covered, over = format_s(sample.covers_s), format_s(sample.looked_s)
    off = f": work may be off by {work_off(sample):.0%}" if sample.spread > 0 else ""
    if sample.stretches == 1:
        more = "" if sample.covers_s >= sample.looked_s else f"; when rows come, of {over}"
        return [f"sample      costs of the first {covered} of event time{more}{off}"]
    return [
        f"sample      costs of {sample.stretches} stretches, {covered} together, evenly over "
        f"{over} of event time{off}"
    ]


def not_held(plan: Plan) -> list[str]:
    """Return what a prediction is not of, in a run of this plan."""
    found = []
    unpaced = [
        stage.name
        for stage in plan.stages
        if isinstance(stage.step, SourceStep)
        and stage.step.source.speed is None
        and stage.step.source.is_history
    ]
    if unpaced:
        found.append(
            f"{', '.join(unpaced)} without speed=: a run reads that as fast as it goes, so what is "
            "predicted holds for rows that come at these rates, and not for that run"
        )
    if plan.limits.order is not None:
        found.append(
            "order= of the limits is another order of work: what is predicted holds where the "
            "earliest stimulus goes first"
        )
    return found


def uncounted(plan: Plan, sample: FlowSample) -> tuple[str, ...]:
    """Return the sources that put rows in order for so long as no record tells.

    A sample shows how long its rows wait; a history does where the source does not learn it.
    """
    known = {name for name, one in sample.times.items() if one.is_ordered}
    if sample.times and not sample.recorded:
        return ()
    return tuple(
        stage.name
        for stage in plan.stages
        if isinstance(stage.step, SourceStep)
        and (stage.step.source.reorder.sorts or stage.step.source.sequence is not None)
        and stage.name not in known
    )


def uncounted_text(sources: Sequence[str]) -> str:
    """Return what is not known of these, and how it will be."""
    return (
        f"what rows of {', '.join(map(repr, sources))} wait to be put in order is not known from "
        "this, so no deadline counts as kept; predict from a sample (rates=, sample=)"
    )
