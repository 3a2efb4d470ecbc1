"""From what a run over a sample reports to the query graph: cost and selectivity of each stage.

```
report of a sample   rows in 6,000, out 5,700, busy 1.2 s   ─▶   ω = 0.2 ms, σ = 0.95
```

Counting and timing is all there is to it; what a stage takes for promises and for the scheduler is
in its busy time, and so in its cost of an event. Source: [mace] §III-B, §VI-B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from runtime.errors import SettingError
from runtime.estimate.curves import WindowCurve
from runtime.estimate.query_graph import QueryGraph, QueryOperator, arrivals_of
from runtime.measure.report import StageReport
from runtime.model import NS_PER_SECOND
from runtime.plan.plan import Stage

__all__ = ["query_graph_of"]


def query_graph_of(
    stages: Sequence[Stage], reports: Mapping[str, StageReport], *, span_s: Mapping[str, float]
) -> QueryGraph:
    """Return the query graph that a sample shows.

    Windows get a curve, since results go with time and keys. All else is linear: a join's cost is
    that of a row of either input.

    Args:
        stages: of the plan, in topological order.
        reports: {stage: what it did with the sample, to its end}.
        span_s: {source: how much event time its part of the sample covers, seconds}.

    Raises:
        SettingError: a stage has no report, or saw no event: nothing is known of its cost.
    """
    sources = tuple(arrivals_of(stage.name) for stage in stages if stage.kind == "source")
    spans_s: dict[str, float] = {}
    operators = []
    for stage in stages:
        fed_s = [spans_s[channel.source] for channel in stage.inputs]
        spans_s[stage.name] = max(fed_s) if fed_s else span_s.get(stage.name, 0.0)
        operators.append(_operator(stage, reports.get(stage.name), spans_s[stage.name]))
    return QueryGraph(sources, tuple(operators))


def _operator(stage: Stage, report: StageReport | None, span_s: float) -> QueryOperator:
    if report is None or report.rows_in == 0:
        seen = "is not in the sample's report" if report is None else "got no event of the sample"
        raise SettingError(
            f"stage {stage.name!r} {seen}, so what an event costs it is not known; take a larger "
            "sample, or one of other events"
        )
    inputs = tuple(channel.source for channel in stage.inputs) or (arrivals_of(stage.name),)
    cost_s = report.service_ns / NS_PER_SECOND / report.rows_in
    return QueryOperator(
        name=stage.name,
        inputs=inputs,
        cost_s=(cost_s,) * len(inputs),
        selectivity=(report.selectivity,) * len(inputs),
        curve=_window(stage, report, cost_s, span_s),
    )


def _window(stage: Stage, report: StageReport, cost_s: float, span_s: float) -> WindowCurve | None:
    window = getattr(stage.step, "window", None)
    if window is None or report.rows_out == 0:
        return None
    size_s, slide_s = window.size_ns / NS_PER_SECOND, window.slide_ns / NS_PER_SECOND
    # At the end of a sample all windows leave that are still open: those of a size more.
    windows = (span_s + size_s) / slide_s
    results, inside = report.rows_out / windows, report.rows_in * size_s / (span_s + size_s)
    return WindowCurve(
        size_s=size_s,
        slide_s=slide_s,
        keys=_keys(results, inside),
        row_s=cost_s,
        result_s=0.0,
    )


def _keys(results: float, inside: float) -> float:
    """Return of how many keys `inside` events, drawn alike, meet so many: see WindowCurve."""
    if results >= inside:
        return 1e9  # each event has its own
    low, high = results, 1e9
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        low, high = (
            (middle, high) if middle * -np.expm1(-inside / middle) < results else (low, middle)
        )
    return high
