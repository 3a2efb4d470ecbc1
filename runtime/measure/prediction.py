"""Predicted and measured latency of each subinterval, and shifts of statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.measure.series import LatencySeries
from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.plurals import times

__all__ = [
    "MOST_SPANS",
    "PredictedSpan",
    "PredictionReport",
    "Shift",
    "coarser",
    "prediction_notes",
    "with_measured",
]

MOST_SPANS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedSpan(JsonObject):
    """Latencies of the events whose stimulus fell in a span of time.

    Attributes:
        start_ns: start of the span, a multiple of its width.
        width_ns: width of the span.
        events: events that arrived at the sources in the span.
        planned_ns: their worst latency, predicted before the flow ran; None if the prediction
            ends earlier.
        estimated_ns: the same, from arrivals and costs measured since; None if the interval is
            not over yet.
        measured_ns: their worst measured latency; None if no row has left yet.
    """

    start_ns: int
    width_ns: int
    events: int = 0
    planned_ns: int | None = None
    estimated_ns: int | None = None
    measured_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(JsonObject):
    """Shift of a statistic, far from the value that the prediction used.

    Attributes:
        of: the stage; of a rate the source.
        what: "cost", "results" or "rate".
        was: value in the prediction: seconds a row, rows out for a row in, or events a second.
        now: recent value.
        at_s: seconds from the start of the sources until it was first seen.
        last_s: seconds until it was last seen.
    """

    of: str
    what: str
    was: float
    now: float
    at_s: float
    last_s: float

    @property
    def text(self) -> str:
        """Text of the shift, for people."""
        when = f"from {self.at_s:.0f} s to {self.last_s:.0f} s"
        match self.what:
            case "cost":
                was, now = (format_ns(round(cost_s * 1e9)) for cost_s in (self.was, self.now))
                return f"{self.of}: a row costs {now}, not {was}, {when}"
            case "results":
                return f"{self.of}: {self.now:.3g} rows come of one, not {self.was:.3g}, {when}"
            case _:
                return f"{self.of}: {self.now:,.0f} events/s arrive, not {self.was:,.0f}, {when}"


@dataclass
class PredictionReport(JsonObject):
    """Predicted latency of a run, and latency estimated and measured while it runs.

    Attributes:
        worst_ns: worst latency, predicted before the flow ran.
        p99_ns: 99th percentile over the subintervals, predicted as well.
        mean_ns: mean over the subintervals, predicted as well.
        is_unbounded: whether the backlog of a slot was predicted to grow for ever.
        load: {slot: predicted share of its core}.
        seen_load: {slot: share that it needed recently}; above 1 its backlog grows.
        spans: latencies over time, at most `MOST_SPANS` spans.
        origin_ns: start of the interval in which the sources began; None if no event has come yet.
        shifts: statistics that shifted so far that the flow should be planned again.
        restarts: how often the estimating process died and was replaced.
        is_cut_short: whether that process was dead or silent as the job ended: then the last
            seconds are missing.
        errors: how often the estimate raised an error; the run goes on without it.
        last_error: the last such error, in a line.
    """

    worst_ns: int
    p99_ns: int
    mean_ns: int
    is_unbounded: bool = False
    load: dict[str, float] = field(default_factory=dict)
    seen_load: dict[str, float] = field(default_factory=dict)
    spans: list[PredictedSpan] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)
    origin_ns: int | None = None
    restarts: int = 0
    is_cut_short: bool = False
    errors: int = 0
    last_error: str | None = None

    DERIVED: ClassVar = {
        "estimated_worst_ns": "estimated_worst_ns",
        "measured_worst_ns": "measured_worst_ns",
    }

    @classmethod
    def of(cls, expected: ExpectedLatency) -> PredictionReport:
        """Return the report of a prediction, before the run."""
        return cls(
            worst_ns=round(expected.worst_s * NS_PER_SECOND),
            p99_ns=round(expected.p99_s * NS_PER_SECOND),
            mean_ns=round(expected.mean_s * NS_PER_SECOND),
            is_unbounded=expected.is_unbounded,
            load=dict(expected.cores),
        )

    @property
    def estimated_worst_ns(self) -> int | None:
        """Worst latency estimated during the run; None if none was."""
        estimated = [span.estimated_ns for span in self.spans if span.estimated_ns is not None]
        return max(estimated, default=None)

    @property
    def measured_worst_ns(self) -> int | None:
        """Worst measured latency; None if none was measured."""
        measured = [span.measured_ns for span in self.spans if span.measured_ns is not None]
        return max(measured, default=None)


def coarser(spans: Sequence[PredictedSpan], width_ns: int) -> list[PredictedSpan]:
    """Merge spans to a multiple of their width: sums of events, else maxima."""
    merged: dict[int, PredictedSpan] = {}
    for span in spans:
        start_ns = span.start_ns // width_ns * width_ns
        wide = replace(span, start_ns=start_ns, width_ns=max(width_ns, span.width_ns))
        before = merged.get(start_ns)
        merged[start_ns] = wide if before is None else _both(before, wide)
    return [merged[start_ns] for start_ns in sorted(merged)]


def _both(first: PredictedSpan, other: PredictedSpan) -> PredictedSpan:
    return replace(
        first,
        events=first.events + other.events,
        planned_ns=_larger(first.planned_ns, other.planned_ns),
        estimated_ns=_larger(first.estimated_ns, other.estimated_ns),
        measured_ns=_larger(first.measured_ns, other.measured_ns),
    )


def _larger(first: int | None, other: int | None) -> int | None:
    return max((value for value in (first, other) if value is not None), default=None)


def with_measured(
    prediction: PredictionReport, series: Iterable[LatencySeries]
) -> PredictionReport:
    """Return the report with measured latency: the worst over all sinks in each span.

    Spans get as wide as the bins of the series, where those are wider.
    """
    of_sinks = list(series)
    bins = [interval for each in of_sinks for interval in each.bins()]
    least_ns = max((span.width_ns for span in prediction.spans), default=NS_PER_SECOND)
    width_ns = math.lcm(least_ns, *(each.width_ns for each in of_sinks))
    worst: dict[int, int] = {}
    for interval in bins:
        start_ns = interval.start_ns // width_ns * width_ns
        worst[start_ns] = max(worst.get(start_ns, 0), interval.max_ns)
    measured = [
        PredictedSpan(start_ns=start_ns, width_ns=width_ns, measured_ns=worst_ns)
        for start_ns, worst_ns in worst.items()
    ]
    return replace(prediction, spans=coarser([*prediction.spans, *measured], width_ns))


def prediction_notes(prediction: PredictionReport | None) -> list[str]:
    """Return notes on a prediction that no longer fits."""
    if prediction is None:
        return []
    notes = []
    if prediction.shifts:
        what = "; ".join(shift.text for shift in prediction.shifts)
        notes.append(
            f"the flow is not what was predicted with ({what}): plan it again, `slackwater plan` "
            "with these rates and a new sample"
        )
    if prediction.restarts:
        often = times(prediction.restarts)
        notes.append(f"the process that estimates latency died {often} and was started again")
    if prediction.is_cut_short:
        notes.append(
            "the process that estimates latency did not answer as the job ended: what arrived "
            "last is missing from its estimate"
        )
    if prediction.errors:
        often = times(prediction.errors)
        notes.append(
            f"the estimate of latency went wrong {often}; the run went on without: "
            f"{prediction.last_error}"
        )
    return notes
