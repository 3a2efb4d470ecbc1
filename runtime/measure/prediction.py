"""Predicted beside measured latency, subinterval by subinterval, and what has shifted since."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from slackwater.runtime.measure.series import LatencySeries
from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.plan.expected import ExpectedLatency

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
class PredictedSpan:
    """The events whose stimulus fell in a stretch of time.

    Attributes:
        start_ns: when it begins, a multiple of its width.
        width_ns: how long it is.
        events: that arrived at the sources in it.
        planned_ns: their worst latency, as it was predicted before the flow ran; None: the
            prediction did not look so far ahead.
        estimated_ns: the same, from what has arrived and what rows have cost by then; None: not
            known yet, an interval not being over.
        measured_ns: what it was; None: nothing has left yet.
    """

    start_ns: int
    width_ns: int
    events: int = 0
    planned_ns: int | None = None
    estimated_ns: int | None = None
    measured_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A statistic that is far from what was predicted with.

    Attributes:
        of: a stage; of a rate its source.
        what: "cost", "results" or "rate".
        was: what was predicted with: seconds a row, rows out for a row in, or events a second.
        now: what it has been of late.
        at_s: how long after the start of the sources that was seen first.
        last_s: and last.
    """

    of: str
    what: str
    was: float
    now: float
    at_s: float
    last_s: float

    @property
    def text(self) -> str:
        """What a person reads."""
        when = f"from {self.at_s:.0f} s to {self.last_s:.0f} s"
        match self.what:
            case "cost":
                was, now = (format_ns(round(one * 1e9)) for one in (self.was, self.now))
                return f"{self.of}: a row costs {now}, not {was}, {when}"
            case "results":
                return f"{self.of}: {self.now:.3g} rows come of one, not {self.was:.3g}, {when}"
            case _:
                return f"{self.of}: {self.now:,.0f} events/s arrive, not {self.was:,.0f}, {when}"


@dataclass
class PredictionReport:
    """What was predicted of a run, and what became of it.

    Attributes:
        worst_ns: worst latency as it was predicted before the flow ran.
        p99_ns: over the subintervals, likewise.
        mean_ns: likewise.
        is_unbounded: whether a slot was to fall behind for ever.
        load: {slot: share of its core that was predicted}.
        seen_load: {slot: share that it needed of late}; above 1 it falls behind.
        spans: over time, at most `MOST_SPANS`.
        origin_ns: when the interval began in which the sources did; None: nothing has come yet.
        shifts: what has shifted so much that the flow should be planned again.
        restarts: how often the process died that it is made in, and another took its place.
        is_cut_short: it was dead or silent as the job ended: the last seconds are missing.
        errors: how often the estimate itself went wrong; the run goes on without.
        last_error: the last time, in a line.
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

    @classmethod
    def of(cls, expected: ExpectedLatency) -> PredictionReport:
        """Return what was predicted, before anything has become of it."""
        return cls(
            worst_ns=round(expected.worst_s * NS_PER_SECOND),
            p99_ns=round(expected.p99_s * NS_PER_SECOND),
            mean_ns=round(expected.mean_s * NS_PER_SECOND),
            is_unbounded=expected.is_unbounded,
            load=dict(expected.cores),
        )

    @property
    def estimated_worst_ns(self) -> int | None:
        """The worst of what was estimated while it ran; None: nothing was."""
        found = [one.estimated_ns for one in self.spans if one.estimated_ns is not None]
        return max(found, default=None)

    @property
    def measured_worst_ns(self) -> int | None:
        """The worst of what was measured; None: nothing was."""
        found = [one.measured_ns for one in self.spans if one.measured_ns is not None]
        return max(found, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON values, with what was derived."""
        return {
            **asdict(self),
            "estimated_worst_ns": self.estimated_worst_ns,
            "measured_worst_ns": self.measured_worst_ns,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> PredictionReport:
        """Return the report that `to_json` described.

        Raises:
            KeyError, TypeError, AttributeError: it was not.
        """
        known = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        known["spans"] = [PredictedSpan(**one) for one in plain["spans"]]
        known["shifts"] = [Shift(**one) for one in plain["shifts"]]
        return cls(**known)


def coarser(spans: Sequence[PredictedSpan], width_ns: int) -> list[PredictedSpan]:
    """Return spans of a width that is a multiple of theirs: sums of events, else the largest."""
    merged: dict[int, PredictedSpan] = {}
    for one in spans:
        start_ns = one.start_ns // width_ns * width_ns
        wide = replace(one, start_ns=start_ns, width_ns=max(width_ns, one.width_ns))
        before = merged.get(start_ns)
        merged[start_ns] = wide if before is None else _both(before, wide)
    return [merged[start_ns] for start_ns in sorted(merged)]


def _both(one: PredictedSpan, other: PredictedSpan) -> PredictedSpan:
    return replace(
        one,
        events=one.events + other.events,
        planned_ns=_larger(one.planned_ns, other.planned_ns),
        estimated_ns=_larger(one.estimated_ns, other.estimated_ns),
        measured_ns=_larger(one.measured_ns, other.measured_ns),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def with_measured(
    prediction: PredictionReport, series: Iterable[LatencySeries]
) -> PredictionReport:
    """Return the report with what sinks have measured: the worst of all of them in each span.

    Spans get as wide as the series' bins are, where those are wider.
    """
    of_sinks = list(series)
    bins = [one for each in of_sinks for one in each.bins()]
    least_ns = max((one.width_ns for one in prediction.spans), default=NS_PER_SECOND)
    width_ns = math.lcm(least_ns, *(each.width_ns for each in of_sinks))
    worst: dict[int, int] = {}
    for one in bins:
        start_ns = one.start_ns // width_ns * width_ns
        worst[start_ns] = max(worst.get(start_ns, 0), one.max_ns)
    measured = [
        PredictedSpan(start_ns=start_ns, width_ns=width_ns, measured_ns=worst_ns)
        for start_ns, worst_ns in worst.items()
    ]
    return replace(prediction, spans=coarser([*prediction.spans, *measured], width_ns))


def prediction_notes(prediction: PredictionReport | None) -> list[str]:
    """Return what is to be said of a prediction that no longer fits."""
    if prediction is None:
        return []
    notes = []
    if prediction.shifts:
        what = "; ".join(one.text for one in prediction.shifts)
        notes.append(
            f"the flow is not what was predicted with ({what}): plan it again, `slackwater plan` "
            "with these rates and a new sample"
        )
    if prediction.restarts:
        times = "once" if prediction.restarts == 1 else f"{prediction.restarts} times"
        notes.append(f"the process that estimates latency died {times} and was started again")
    if prediction.is_cut_short:
        notes.append(
            "the process that estimates latency did not answer as the job ended: what arrived "
            "last is missing from its estimate"
        )
    if prediction.errors:
        times = "once" if prediction.errors == 1 else f"{prediction.errors:,} times"
        notes.append(
            f"the estimate of latency went wrong {times}; the run went on without: "
            f"{prediction.last_error}"
        )
    return notes
