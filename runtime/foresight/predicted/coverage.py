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
"""{stretches: half width of the stated range, in standard errors}: the 95th percentile of Student's
t, since a spread shown by so few is itself uncertain."""
ERRORS_OF_FIVE = 2.1


def widened_s(
    bounds_s: tuple[float, float],
    plan: Plan,
    sample: FlowSample,
    graph: QueryGraph,
    outlook: Outlook,
) -> tuple[float, float]:
    """Return the bounds of the worst latency, widened by the error of costs.

    The error follows from how the cost of a row differs among parts of the sample.

    Args:
        bounds_s: bounds with the predicted costs.
        plan: the plan, every stage in a slot.
        sample: a sample of the same flow.
        graph: the sample's graph at the speed of event time.
        outlook: the outlook of the flow.
    """
    least_s, most_s = bounds_s
    off = work_off(sample)
    for factor in (1 / (1 + off), 1 + off) if off > 0 else ():
        scaled = estimate_placed(plan, sample, _times(graph, factor), outlook).latency.bounds_s
        least_s, most_s = min(least_s, scaled[0]), max(most_s, scaled[1])
    return least_s, most_s


def work_off(sample: FlowSample) -> float:
    """Return the largest likely error of a sample's work, as a share."""
    return ERRORS.get(sample.stretches, ERRORS_OF_FIVE) * sample.spread


def _times(graph: QueryGraph, factor: float) -> QueryGraph:
    """Return a graph whose work takes `factor` times as long."""
    operators = [
        replace(
            operator,
            cost_s=tuple(cost_s * factor for cost_s in operator.cost_s),
            curve=None if operator.curve is None else ScaledCurve(operator.curve, factor, 1.0),
            alone_s=operator.alone_s * factor,
        )
        for operator in graph.operators
    ]
    return QueryGraph(graph.sources, tuple(operators))


def covered_lines(sample: FlowSample) -> list[str]:
    """Return lines with the time that a sample covers; empty: it is unknown."""
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
    """Return texts on parts of a run to which a prediction does not apply."""
    texts = []
    unpaced = [
        stage.name
        for stage in plan.stages
        if isinstance(stage.step, SourceStep)
        and stage.step.source.speed is None
        and stage.step.source.is_history
    ]
    if unpaced:
        texts.append(
            f"{', '.join(unpaced)} without speed=: a run reads that as fast as it goes, so what is "
            "predicted holds for rows that come at these rates, and not for that run"
        )
    if plan.limits.order is not None:
        texts.append(
            "order= of the limits is another order of work: what is predicted holds where the "
            "earliest stimulus goes first"
        )
    return texts


def uncounted(plan: Plan, sample: FlowSample) -> tuple[str, ...]:
    """Return the sources whose wait for order is unknown.

    A sample shows the waits of its rows; a history does if the source does not learn its wait.
    """
    known = {name for name, times in sample.times.items() if times.is_ordered}
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
    """Return a text on sources whose wait for order is unknown."""
    return (
        f"what rows of {', '.join(map(repr, sources))} wait to be put in order is not known from "
        "this, so no deadline counts as kept; predict from a sample (rates=, sample=)"
    )
