"""Coverage of a prediction: what its sample shows, and how far off it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slackwater.runtime.foresight import LatencyEstimate
from slackwater.runtime.foresight.curves import ScaledCurve
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.outlook import Outlook, estimate_placed
from slackwater.runtime.foresight.query_graph import QueryGraph
from slackwater.runtime.model import format_s
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.steps import SourceStep

__all__ = [
    "SupportedRange",
    "covered_lines",
    "not_held",
    "off_estimates",
    "supported_range",
    "uncounted",
    "uncounted_text",
    "widened_s",
]

ERRORS = {2: 6.3, 3: 2.9, 4: 2.4}
"""{stretches: half width of the stated range, in standard errors}: the 95th percentile of Student's
t, since a spread shown by so few is itself uncertain."""
ERRORS_OF_FIVE = 2.1
WIDEST = 5.0
"""Largest ratio of the ends of a range beside which a figure still says something."""
MORE_ROWS = "take more rows (sample=, or --sample)"


@dataclass(frozen=True, kw_only=True)
class SupportedRange:
    """Range of the worst latency that a sample supports.

    Attributes:
        range_s: its ends, seconds; None if the sample supports none.
        why: reason why there is no range; "" if there is one.
        has_figure: whether the worst latency is a figure that can be given.
    """

    range_s: tuple[float, float] | None = None
    why: str = ""
    has_figure: bool = True

    @property
    def text(self) -> str:
        """Text beside the figure."""
        if self.range_s is None:
            return f"no range: {self.why}"
        least, most = map(format_s, self.range_s)
        if least == most:
            return "the same for all work that its sample supports"
        return f"{least} to {most} by its sample"


def off_estimates(
    plan: Plan, sample: FlowSample, graph: QueryGraph, outlook: Outlook
) -> list[LatencyEstimate]:
    """Return the estimates with the least and the most work that a sample supports.

    The error follows from how the cost of a row differs among parts of the sample.

    Args:
        plan: the plan, every stage in a slot.
        sample: a sample of the same flow.
        graph: the sample's graph at the speed of event time.
        outlook: the outlook of the flow.
    """
    off = work_off(sample)
    factors = (1 / (1 + off), 1 + off) if off > 0 else ()
    return [
        estimate_placed(plan, sample, _times(graph, factor), outlook).latency for factor in factors
    ]


def widened_s(estimates: Sequence[LatencyEstimate]) -> tuple[float, float]:
    """Return the bounds of the worst latency over several estimates."""
    bounds = [estimate.bounds_s for estimate in estimates]
    return min(least for least, _ in bounds), max(most for _, most in bounds)


def supported_range(
    made: LatencyEstimate, off: Sequence[LatencyEstimate], sample: FlowSample
) -> SupportedRange:
    """Return the range of the worst latency that a sample supports, or why none.

    Args:
        made: estimate by the sample.
        off: estimates with the least and the most work that the sample supports.
        sample: sample of the flow.
    """
    if not made.has_result.any():
        span = format_s(len(made.mace_s) * made.width_s)
        return SupportedRange(why=f"no result leaves within these {span}", has_figure=False)
    if not off:
        return SupportedRange(why=f"its {sample.kind} does not show how costs vary")
    worst = [made.worst_s, *(each.worst_s for each in off)]
    share = f"{work_off(sample):.0%}"
    if off[-1].is_unbounded and not made.is_unbounded:
        why = f"with {share} more work, which its {sample.kind} does not rule out, a slot is"
        return SupportedRange(why=f"{why} overloaded; {MORE_ROWS}", has_figure=False)
    least_s, most_s = min(worst), max(worst)
    if most_s > WIDEST * least_s and most_s - least_s > made.width_s:
        why = f"work may be off by {share}, so it is anything from {format_s(least_s)} to"
        return SupportedRange(why=f"{why} {format_s(most_s)}; {MORE_ROWS}", has_figure=False)
    return SupportedRange(range_s=(least_s, most_s))


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
    unpaced = dict.fromkeys(
        stage.whole
        for stage in plan.stages
        if isinstance(stage.step, SourceStep)
        and stage.step.source.speed is None
        and stage.step.source.is_history
    )
    if unpaced:
        texts.append(
            f"{', '.join(unpaced)} without speed=: a run reads that as fast as it goes, so what is "
            "predicted holds for rows that come at these rates, and not for that run"
        )
    resuming = [step.name for step in plan.sinks if step.output.traits.resumes]
    if resuming:
        texts.append(
            f"{', '.join(resuming)} resuming: a run that goes on after another first "
            "makes its rows again, and later rows wait for that"
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
        step.name
        for step in plan.sources
        if (step.source.reorder.sorts or step.source.sequence is not None)
        and step.name not in known
    )


def uncounted_text(sources: Sequence[str]) -> str:
    """Return a text on sources whose wait for order is unknown."""
    return (
        f"what rows of {', '.join(map(repr, sources))} wait to be put in order is not known from "
        "this, so no deadline counts as kept; predict from a sample (rates=, sample=)"
    )
