"""From what a sample has shown to a query graph: what an event costs each stage, what comes of it.

```
rows in 6,000, out 5,700, slices    ─▶  ω = 0.2 ms, σ = 0.95; by stretches of time, where asked
… and when they came                ─▶  windows, joins: curves that give what the sample gave
```

A curve is fitted so that it says of the sample's own events, at their times, what came of them. So
windows that only fill up at first, and those that the end of the sample closes, mislead nobody.
Source: [mace] §III-B, §VI-B, §VI-C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.curves import DriftCurve, JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import (
    CostCurve,
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.sampled import SampledStage, StageCost, full_rows, share_of

__all__ = ["SampleShowsNothing", "Stretches", "query_graph_of_sample", "steadied"]

Times = Mapping[str, FloatArray | RecordedRate]
CELLS = 4_000
"""Into so many subintervals the time of a sample is divided, to fit curves."""
STEPS = (0.0, *np.geomspace(1e-4, 1.0, 13).tolist())
"""How far selectivity may walk from one stretch to the next: variances, of all that is seen."""
MOST_KEYS = 1e9
"""So many keys are as good as each event having its own."""


class SampleShowsNothing(SettingError):
    """A sample without rows, results or work: nothing can be predicted from it."""


@dataclass(frozen=True)
class Stretches:
    """How a source's sample is divided: its rows from one number on stand for a stretch of time.

    Attributes:
        rows: how many rows of the sample there are before each stretch; the first is 0.
        from_s: when each stretch begins in the time that is predicted, seconds from its start.
    """

    rows: Sequence[int]
    from_s: Sequence[float]


def query_graph_of_sample(
    stages: Sequence[SampledStage],
    *,
    slice_s: float,
    times_s: Times | None = None,
    stretches: Mapping[str, Stretches] | None = None,
    may_be_unseen: bool = True,
    is_all: bool = False,
) -> QueryGraph:
    """Return the query graph of a flow, its stages as operators.

    Each has a cost and a selectivity for each input. Windows and joins have a curve besides, where
    it is known when the sample's events happened; others, where their source's sample is divided.

    Args:
        stages: in topological order.
        slice_s: how long a full slice takes (`Limits.slice_ns`).
        times_s: {source: event times of its sample, seconds, or what came when}.
        stretches: {source: how its sample is divided}.
        may_be_unseen: whether a stage that got no event is taken to cost nothing.
        is_all: whether the sample is of all rows that there are, so that none can be larger.

    Raises:
        SampleShowsNothing: no source read a row, or no sink got one; or nothing cost any time.
        SettingError: a stage got no row that must.
    """
    _check(stages, may_be_unseen=may_be_unseen, is_all=is_all)
    sources = tuple(arrivals_of(stage.name) for stage in stages if not stage.inputs)
    fit = _Fit(stages, slice_s, times_s or {}, stretches or {})
    operators = tuple(fit.operator(stage) for stage in stages)
    if not any(cost for one in operators for cost in one.cost_s):
        read = sum(stage.rows_in for stage in stages if not stage.inputs)
        raise SampleShowsNothing(
            f"the sample of {read} rows cost nothing at any stage, by the clock that it was timed "
            "with: what work costs is not known; take a larger sample, or time it by a finer clock"
        )
    return QueryGraph(sources, operators)


def _check(stages: Sequence[SampledStage], *, may_be_unseen: bool, is_all: bool) -> None:
    sources = [stage for stage in stages if not stage.inputs]
    if not any(stage.rows_in for stage in sources):
        raise SampleShowsNothing(
            f"the sample has no rows: sources {', '.join(s.name for s in sources)} are empty; "
            "give data with rows"
        )
    unseen = [stage.name for stage in stages if not stage.rows_in]
    if unseen and not may_be_unseen:
        raise SettingError(
            f"stage {unseen[0]!r} got no event of the sample, so what an event costs it is not "
            "known; take a larger sample, or one of other events"
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
    """Operators one after the other, and what each makes of the sample's events."""

    def __init__(
        self,
        stages: Sequence[SampledStage],
        slice_s: float,
        times_s: Times,
        stretches: Mapping[str, Stretches],
    ) -> None:
        self._stages = stages
        self._slice_s = slice_s
        spans_s = [0.0, *(one.window_s[0] + one.window_s[1] for one in stages if one.window_s)]
        self._width_s, counts = _by_time(times_s, more_s=max(spans_s))
        self._from_s = {name: tuple(one.from_s) for name, one in stretches.items()}
        self._bounds = {arrivals_of(name): one.rows for name, one in stretches.items()}
        self._timed: set[str] = set()  # stages whose rows come as windows end, all together
        self._of: dict[str, str] = {}  # {stage: the source whose stretches are its own}
        # {stage: what leaves it, by the sample's time}
        self._out = {arrivals_of(name): each for name, each in counts.items()}

    def operator(self, stage: SampledStage) -> QueryOperator:
        """Return the operator of a stage; those that feed it came before."""
        inputs = stage.inputs or (arrivals_of(stage.name),)
        share = share_of(stage, self._stages)
        row_s = stage.cost().in_full_slices(self._slice_s).row_s
        alone = stage.cost(stage.more)
        made = QueryOperator(
            name=stage.name,
            inputs=inputs,
            cost_s=(row_s * share,) * len(inputs),
            selectivity=(stage.selectivity * share,) * len(inputs),
            # What closes a window is no row of it.
            alone_s=alone.fixed_s + (alone.row_s if stage.window_s is None else 0.0),
        )
        came = self._came(inputs)
        if stage.window_s is not None or not self._timed.isdisjoint(inputs):
            self._timed.add(stage.name)
        made = replace(made, curve=self._curve(stage, came, share) or self._drift(stage, share))
        if came is not None:
            # Curves by time of the prediction say nothing of the sample's.
            known = replace(made, curve=None) if isinstance(made.curve, DriftCurve) else made
            self._out[stage.name] = known.output(came, self._width_s)
        return made

    def _came(self, inputs: Sequence[str]) -> FloatArray | None:
        known = [self._out[name] for name in inputs if name in self._out]
        return np.stack(known) if len(known) == len(inputs) else None

    def _curve(
        self, stage: SampledStage, came: FloatArray | None, share: float
    ) -> CostCurve | None:
        if came is None or stage.rows_out == 0:
            return None
        width_s = self._width_s
        if stage.window_s is not None:
            return _window(stage, came, width_s, share, self._cost(stage, stage.slice_out))
        # Where windows of both sides end together, pairs go with these, and not with a density.
        is_dense = len(came) <= 2 and self._timed.isdisjoint(stage.inputs)
        if stage.within_s is not None and is_dense:
            return _join(stage, came, width_s, share, self._cost(stage, stage.slice_pairs))
        return None

    def _cost(self, stage: SampledStage, more: Sequence[int]) -> StageCost:
        return stage.cost(more).in_full_slices(self._slice_s)

    def _drift(self, stage: SampledStage, share: float) -> DriftCurve | None:
        """Return selectivity by stretches, where all rows come from one source, in its order."""
        inputs = stage.inputs or (arrivals_of(stage.name),)
        if len(inputs) != 1 or inputs[0] not in self._bounds or not len(stage.slice_in):
            return None
        source = self._of.get(inputs[0], stage.name)
        seen, left = full_rows(stage)
        if (seen[-1], left[-1]) != (stage.rows_in, stage.rows_out):
            return None  # its slices do not say which of its rows came of which
        ends = np.append(self._bounds[inputs[0]], seen[-1])
        out = np.interp(ends, seen, left)
        self._of[stage.name] = source
        self._bounds[stage.name] = out[:-1].tolist()
        selectivity = share * steadied(np.diff(ends), np.diff(out))
        if np.ptp(selectivity) == 0:
            return None
        return DriftCurve(
            from_s=self._from_s[source],
            selectivity=tuple(selectivity.tolist()),
            cost_s=self._cost(stage, ()).row_s * share,
        )


def _by_time(times_s: Times, *, more_s: float) -> tuple[float, dict[str, FloatArray]]:
    """Return how long a subinterval of the sample is, and {source: its events in each}.

    Behind the last event are `more_s` without any, in which windows end. None: no time is known.
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
    stage: SampledStage, came: FloatArray, width_s: float, share: float, cost: StageCost
) -> WindowCurve:
    """Return the curve with as many keys as give the sample's results."""
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
    if results(high) <= stage.rows_out:  # each event has its own
        return curve
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if results(middle) < stage.rows_out else (low, middle)
    return replace(curve, keys=high)


def _join(
    stage: SampledStage, came: FloatArray, width_s: float, share: float, cost: StageCost
) -> JoinCurve | None:
    """Return the curve that gives the sample's results; None: no two of it were in reach."""
    assert stage.within_s is not None
    curve = JoinCurve(
        within_s=stage.within_s, row_s=(cost.row_s,) * 2, pair_s=0.0, result=1.0, share=share
    )
    pairs = float(curve.pairs(came, width_s).sum())
    if pairs <= 0:
        return None
    compared = sum(stage.slice_pairs)
    return replace(curve, result=stage.rows_out / pairs, pair_s=cost.more_s * compared / pairs)


def steadied(rows: FloatArray, results: FloatArray) -> FloatArray:
    """Return the selectivity of each stretch, chance taken out: shape (stretches,).

    A stretch has few rows of the sample, so what it shows is part drift, part chance. Selectivity
    is taken for a random walk that is seen through the noise of so many rows. How far it walks is
    what makes all that was seen the likeliest; the Kalman smoother then gives its course.
    """
    total = float(rows.sum())
    mean = float(results.sum()) / total if total else 0.0
    has = rows > 0
    each = np.divide(results, rows, out=np.full(len(rows), mean), where=has)
    varies = float(np.var(each[has])) if has.any() else 0.0
    if varies == 0:
        return np.full(len(rows), mean)
    # Of events that stay or go; of those that yield several, as if these came by chance.
    spread = mean * (1 - mean) if mean < 1 else mean
    chance = np.divide(spread, rows, out=np.full(len(rows), np.inf), where=has)
    walks = [_Walk(each, chance, mean, varies, varies * part) for part in STEPS]
    return max(walks, key=lambda walk: walk.likelihood).course()


class _Walk:
    """A random walk seen through noise: forward by Kalman, back by Rauch, Tung and Striebel.

    Attributes:
        likelihood: the logarithm of it, but for a constant.
    """

    def __init__(
        self, each: FloatArray, chance: FloatArray, level: float, variance: float, step: float
    ) -> None:
        self._step, self.likelihood = step, 0.0
        self._found: list[float] = []  # the level after each stretch
        self._known: list[float] = []  # the variance of that
        for seen, noise in zip(each.tolist(), chance.tolist(), strict=True):
            if noise < float("inf"):
                off, total = seen - level, variance + noise
                self.likelihood -= (math.log(total) + off * off / total) / 2
                level += variance / total * off
                variance *= noise / total
            self._found.append(level)
            self._known.append(variance)
            variance += step

    def course(self) -> FloatArray:
        """Return the likeliest level of each stretch."""
        course, step = self._found[:], self._step
        for n in range(len(course) - 2, -1, -1):
            known = self._known[n]
            course[n] += known / (known + step) * (course[n + 1] - course[n]) if known else 0.0
        return np.asarray(course)
