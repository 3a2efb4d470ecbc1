"""Query graph of a table of observations: cost and selectivity of each stage, fitted curves.

```
rows in 6,000, out 5,700, slices    ─▶  ω = 0.2 ms, σ = 0.95
… and their arrival times           ─▶  windows, joins: curves that fit the sample's results
```

A curve is fitted to predict the sample's own results from its events at their times. So windows
that are still filling at first, and those that the end of the sample closes, cause no error.
Source: [mace] §III-B, §VI-B, §VI-C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.observations import StageCost, StageObservations, share_of
from slackwater.runtime.foresight.query_graph import (
    CostCurve,
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.foresight.rates import RecordedRate

__all__ = ["SampleShowsNothing", "observed_graph"]

Times = Mapping[str, FloatArray | RecordedRate]
CELLS = 4_000
"""Number of subintervals of a sample's time, to fit curves."""
MOST_KEYS = 1e9
"""Number of keys that equals a separate key for each event."""


class SampleShowsNothing(SettingError):
    """Sample without rows, results or work: no prediction can be made from it."""


def observed_graph(
    stages: Sequence[StageObservations],
    *,
    slice_s: float,
    times_s: Times | None = None,
    is_all: bool = False,
) -> QueryGraph:
    """Return the query graph of a flow, its stages as operators.

    Each operator has a cost and a selectivity for each input. Windows and joins also have a curve
    if the event times of the sample are known.

    Args:
        stages: samples of the stages, in topological order.
        slice_s: duration of a full slice (`Limits.slice_ns`).
        times_s: {source: event times of its sample, seconds, or its record}.
        is_all: whether the sample has all rows of the sources, so that none can be larger.

    Raises:
        SampleShowsNothing: no source read a row, no sink got one, or no row cost any time.
    """
    _check(stages, is_all=is_all)
    sources = tuple(arrivals_of(stage.name) for stage in stages if not stage.inputs)
    fit = _Fit(stages, slice_s, times_s or {})
    operators = tuple(fit.operator(stage) for stage in stages)
    if not any(cost for operator in operators for cost in operator.cost_s):
        read = sum(stage.rows_in for stage in stages if not stage.inputs)
        raise SampleShowsNothing(
            f"the sample of {read} rows cost nothing at any stage, by the clock that it was timed "
            "with: what work costs is not known; take a larger sample, or time it by a finer clock"
        )
    return QueryGraph(sources, operators)


def _check(stages: Sequence[StageObservations], *, is_all: bool) -> None:
    sources = [stage for stage in stages if not stage.inputs]
    if not any(stage.rows_in for stage in sources):
        raise SampleShowsNothing(
            f"the sample has no rows: sources {', '.join(s.name for s in sources)} are empty; "
            "give data with rows"
        )
    feeding = {name for stage in stages for name in stage.inputs}
    sinks = [stage for stage in stages if stage.name not in feeding]
    if not any(stage.rows_in for stage in sinks):
        way_out = "give a larger sample"
        if is_all:
            way_out = "these are all rows of its sources, so give data that have results"
        raise SampleShowsNothing(
            f"the sample of {sum(s.rows_in for s in sources):,} rows gave no result at "
            f"{', '.join(s.name for s in sinks)}, so what results cost is not known; {way_out}"
        )


class _Fit:
    """Fit of operators, one after the other, and of their events in the sample."""

    def __init__(self, stages: Sequence[StageObservations], slice_s: float, times_s: Times) -> None:
        self._stages = stages
        self._slice_s = slice_s
        spans_s = [0.0, *(sum(stage.window_s) for stage in stages if stage.window_s)]
        self._width_s, counts = _by_time(times_s, more_s=max(spans_s))
        self._timed: set[str] = set()  # stages whose rows arrive together, as windows end
        # {stage: its events out, by the sample's time}
        self._out = {arrivals_of(name): each for name, each in counts.items()}

    def operator(self, stage: StageObservations) -> QueryOperator:
        """Return the operator of a stage; call it for its feeders first."""
        inputs = stage.inputs or (arrivals_of(stage.name),)
        share = share_of(stage, self._stages)
        full = stage.full_cost(self._slice_s)
        # A job shows sums over slices, so a lone row counts as in full slices there.
        alone = full if len(stage.slices) else stage.cost(stage.more)
        made = QueryOperator(
            name=stage.name,
            inputs=inputs,
            cost_s=(full.row_s * share,) * len(inputs),
            selectivity=(stage.selectivity * share,) * len(inputs),
            # The row that closes a window is not in it.
            alone_s=alone.fixed_s + (alone.row_s if stage.window_s is None else 0.0),
        )
        came = self._came(inputs)
        if stage.window_s is not None or not self._timed.isdisjoint(inputs):
            self._timed.add(stage.name)
        made = replace(made, curve=self._curve(stage, came, share))
        if came is not None:
            self._out[stage.name] = made.output(came, self._width_s)
        return made

    def _came(self, inputs: Sequence[str]) -> FloatArray | None:
        known = [self._out[name] for name in inputs if name in self._out]
        return np.stack(known) if len(known) == len(inputs) else None

    def _curve(
        self, stage: StageObservations, came: FloatArray | None, share: float
    ) -> CostCurve | None:
        if came is None or stage.rows_out == 0:
            return None
        width_s = self._width_s
        if stage.window_s is not None:
            return _window(stage, came, width_s, share, stage.full_cost(self._slice_s, stage.out))
        # If windows of both sides end together, pairs depend on these, not on a density.
        is_dense = len(came) <= 2 and self._timed.isdisjoint(stage.inputs)
        if stage.within_s is not None and is_dense:
            return _join(stage, came, width_s, share, stage.full_cost(self._slice_s, stage.pairs))
        return None


def _by_time(times_s: Times, *, more_s: float) -> tuple[float, dict[str, FloatArray]]:
    """Return the length of the sample's subintervals, and {source: its events in each}.

    After the last event are `more_s` without events, in which windows end. Empty: no time is known.
    """
    known = [_first_and_last(each) for each in times_s.values()]
    first_s = min((float(each.min()) for each in known if len(each)), default=0.0)
    last_s = max((float(each.max()) for each in known if len(each)), default=0.0)
    if not last_s > first_s:
        return 0.0, {}
    edges = np.linspace(first_s, last_s + more_s, CELLS + 1)
    counts = {name: _counted(each, edges) for name, each in times_s.items()}
    return float(edges[1] - edges[0]), counts


def _first_and_last(times_s: FloatArray | RecordedRate) -> FloatArray:
    if isinstance(times_s, RecordedRate):
        return times_s.nth_s(np.array([0, times_s.events - 1][: times_s.events]))
    return times_s


def _counted(times_s: FloatArray | RecordedRate, edges: FloatArray) -> FloatArray:
    if isinstance(times_s, RecordedRate):
        return np.diff(times_s.until(edges))
    return np.histogram(times_s, edges)[0].astype(float)


def _window(
    stage: StageObservations, came: FloatArray, width_s: float, share: float, cost: StageCost
) -> WindowCurve:
    """Return the curve whose number of keys explains the sample's results."""
    assert stage.window_s is not None
    size_s, slide_s = stage.window_s
    curve = WindowCurve(
        size_s=size_s,
        slide_s=slide_s,
        keys=MOST_KEYS,
        row_s=cost.row_s,
        result_s=cost.more_s,
        share=share,
    )

    def results(keys: float) -> float:
        return float(replace(curve, keys=keys).events_out(came, width_s).sum())

    low, high = 1e-6, MOST_KEYS
    if results(high) <= stage.rows_out:  # each event has a separate key
        return curve
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if results(middle) < stage.rows_out else (low, middle)
    return replace(curve, keys=high)


def _join(
    stage: StageObservations, came: FloatArray, width_s: float, share: float, cost: StageCost
) -> JoinCurve | None:
    """Return the curve that explains the sample's results; None if no pair was in reach."""
    assert stage.within_s is not None
    curve = JoinCurve(
        within_s=stage.within_s, row_s=(cost.row_s,) * 2, pair_s=0.0, result=1.0, share=share
    )
    pairs = float(curve.pairs(came, width_s).sum())
    if pairs <= 0:
        return None
    compared = sum(stage.pairs)
    return replace(curve, result=stage.rows_out / pairs, pair_s=cost.more_s * compared / pairs)
