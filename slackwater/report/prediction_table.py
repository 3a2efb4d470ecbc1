"""Predicted and measured latency, as a table and as lines of a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from slackwater.runtime.measure.prediction import PredictedSpan, PredictionReport, coarser
from slackwater.runtime.model import NS_PER_SECOND, format_ns

__all__ = ["prediction_columns", "prediction_lines", "prediction_title"]

MOST_ROWS = 12
_LEAST_NS = 1_000_000
"""Least latency that counts as a backlog."""


def prediction_title(made: PredictionReport) -> str:
    """Return the title of the table, with the worst of each latency."""
    planned = "without bound" if made.is_unbounded else _time(made.worst_ns)
    return (
        f"Predicted beside measured (worst: {planned} before it ran, "
        f"{_time(made.estimated_worst_ns)} from what arrived, measured "
        f"{_time(made.measured_worst_ns)})"
    )


def prediction_columns(made: PredictionReport) -> list[tuple[str, Sequence[str]]]:
    """Return a table of at most a dozen spans of time; empty without spans."""
    spans: Sequence[PredictedSpan] = made.spans
    first_ns = min((span.start_ns for span in spans), default=0)
    width_ns = max((span.width_ns for span in spans), default=NS_PER_SECOND)
    while len(spans) > MOST_ROWS:
        width_ns *= 2
        spans = coarser(made.spans, width_ns)
    return [
        ("from", [_at(span.start_ns, first_ns) for span in spans]),
        ("events", [f"{span.events:,}" for span in spans]),
        ("predicted", [_time(span.planned_ns) for span in spans]),
        ("from what\narrived", [_time(span.estimated_ns) for span in spans]),
        ("measured", [_time(span.measured_ns) for span in spans]),
    ]


def prediction_lines(
    made: PredictionReport, *, origin_ns: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return (seconds, predicted ns, estimated ns), NaN without a backlog."""
    at_s = [(span.start_ns + span.width_ns / 2 - origin_ns) / NS_PER_SECOND for span in made.spans]
    planned = [_waiting(span.planned_ns) for span in made.spans]
    estimated = [_waiting(span.estimated_ns) for span in made.spans]
    return np.array(at_s), np.array(planned), np.array(estimated)


def _waiting(ns: int | None) -> float:
    return float("nan") if ns is None or ns < _LEAST_NS else float(ns)


def _at(start_ns: int, first_ns: int) -> str:
    return f"{(start_ns - first_ns) / NS_PER_SECOND:g} s"


def _time(ns: int | None) -> str:
    """Return a latency as text; 0 is none, since even the least work takes time."""
    return format_ns(ns) if ns else "–"
