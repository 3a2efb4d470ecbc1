"""What a run over a sample has shown of each stage: rows, results, and what slices cost.

Slots work in slices, each of a fixed part and a part for each row. Where latency is in question
there is a backlog, and slices are full: an event then costs its share of a full slice. Source:
[mace] §VI-B, "operator cycles/event", scheduling included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.curves import fit_slices
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Stage

__all__ = [
    "SampledStage",
    "Spans",
    "StageCost",
    "as_shares",
    "sampled_stages",
    "share_of",
    "spans_of",
]

EARLY = 0.05
"""Of the rows of a sample, where a stage looks back: its windows fill with these."""
LEAST_ROWS, MOST_ROWS = Limits.min_slice_rows, Limits.max_slice_rows


@dataclass(frozen=True)
class StageCost:
    """CPU seconds of a stage: of a slice, of each row, and of each pair or result besides."""

    fixed_s: float
    row_s: float
    more_s: float = 0.0

    def in_full_slices(self, slice_s: float) -> StageCost:
        """Return what rows cost in slices that are full by time: their share of the fixed part.

        Where the fixed part is the longer one, a slice is not cut below so many rows as take as
        long, `min_slice_rows` at most (`runtime/schedule/slice_size.py`). However long a row takes,
        there is one in a slice.
        """
        fixed_s, row_s = self.fixed_s, self.row_s
        if row_s <= 0:  # as many rows as there may be, if it is not too long by itself
            rows = LEAST_ROWS if fixed_s >= slice_s else MOST_ROWS
            return StageCost(0.0, fixed_s / rows, self.more_s)
        fit = max(slice_s - fixed_s, min(fixed_s, LEAST_ROWS * row_s)) / row_s
        more = fixed_s / (max(round(min(fit, MOST_ROWS)), 1) * row_s)
        return StageCost(0.0, row_s * (1 + more), self.more_s * (1 + more))


@dataclass(frozen=True, kw_only=True)
class Spans:
    """The lengths of event time by which a stage makes its results.

    Attributes:
        window_s: size and slide of its windows; None: it has none.
        within_s: how far apart partners of its join may be; None: it does not join.
    """

    window_s: tuple[float, float] | None = None
    within_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class SampledStage:
    """What a sample run has shown of a stage.

    Attributes:
        name: of the stage.
        inputs: the stages that feed it; none: it is a source.
        rows_in: rows that came in; of a source those that it read.
        rows_out: rows that it handed on.
        slice_rows: rows that each of its slices took in; a message without rows counts as one.
        slice_s: CPU seconds of each, as many.
        slice_in: rows that went on to its operator with each; none: not known.
        slice_out: rows that left with each; none: not known.
        slice_pairs: pairs that its join compared in each; none: not known.
        window_s: size and slide of its windows, seconds of event time; None: it has none.
        within_s: how far apart partners of its join may be; None: it does not join.
        least_fixed_s: what any slice takes where it was timed; 0 by a model of costs.
    """

    name: str
    inputs: tuple[str, ...]
    rows_in: int
    rows_out: int
    slice_rows: Sequence[int]
    slice_s: Sequence[float]
    slice_in: Sequence[int] = ()
    slice_out: Sequence[int] = ()
    slice_pairs: Sequence[int] = ()
    window_s: tuple[float, float] | None = None
    within_s: float | None = None
    least_fixed_s: float = 0.0

    @property
    def selectivity(self) -> float:
        """σ: rows out for each row in."""
        return self.rows_out / self.rows_in if self.rows_in else 0.0

    @property
    def more(self) -> Sequence[int]:
        """Costs beside rows: results of windows, pairs of a join; else none."""
        if self.window_s is not None:
            return self.slice_out
        return self.slice_pairs if self.within_s is not None else ()

    def cost(self, more: Sequence[int] = ()) -> StageCost:
        """Return what a slice costs, and each row of it; of a stage that had none, nothing.

        The first slices, in which code is loaded and windows fill, are left out where there are
        enough others.

        Args:
            more: of each slice, what else may cost: pairs or results; none: rows alone.
        """
        count = len(self.slice_rows)
        if not count:
            return StageCost(0.0, 0.0)
        rows, seconds = np.asarray(self.slice_rows, float), np.asarray(self.slice_s, float)
        let_go = np.asarray(self.slice_in if len(self.slice_in) else np.zeros(count), float)
        others = np.asarray(more if len(more) else np.zeros(count), float)
        features = np.stack([np.ones(count), rows, let_go, others], axis=1)
        if count > 8:
            looks_back = self.window_s is not None or self.within_s is not None
            early = EARLY if looks_back or any(self.slice_pairs) else 0.0
            at_first = int((np.cumsum(rows) < early * rows.sum()).sum()) + 1
            begin = min(max(at_first, 2), count // 2)
            features, seconds = features[begin:], seconds[begin:]
        if any(np.ptp(each) == 0 and each.any() for each in features[:, 1:3].T):
            features[:, 0] = 0.0  # nothing tells a slice from its rows: all of it is theirs
        found = _fitted(features, seconds, self.least_fixed_s)
        # Whatever interrupts a slice makes it longer, never shorter. One or two that are far off
        # are left out, if they are little of the whole: else it is the work that varies.
        off = seconds - features @ found
        odd = off > 10 * np.median(np.abs(off)) + 1e-12
        if 0 < odd.sum() <= 2 and len(off) > 8 and off[odd].sum() <= 0.02 * seconds.sum():
            found = _fitted(features[~odd], seconds[~odd], self.least_fixed_s)
        # A row costs as it comes and as it is let go, sooner or later both.
        return StageCost(float(found[0]), float(found[1] + found[2]), float(found[3]))


def _fitted(features: FloatArray, seconds: FloatArray, least_fixed_s: float) -> FloatArray:
    """Return the costs of a slice, of a row that comes, of one let go, and of what else there is.

    Messages without rows do not ask the operator, so they say nothing of its fixed part.
    """
    if features[:, 2].any():
        asked = (features[:, 1] > 1) | (features[:, 2] > 0)
        features, seconds = features[asked], seconds[asked]
    worked = features[:, 2] > 0 if features[:, 2].any() else np.ones(len(seconds), bool)
    rows = features[:, 1:3].max(axis=1)
    most_fixed_s = float(seconds[worked].min())
    return fit_slices(
        features, seconds, rows, most_fixed_s=most_fixed_s, least_fixed_s=least_fixed_s
    )


class SliceSeen(Protocol):
    """Notes of a slice; see `slackwater.runtime.simulate.MeasuredSlice`."""

    @property
    def stage(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def took_ns(self) -> int: ...
    @property
    def released(self) -> int: ...
    @property
    def results(self) -> int: ...
    @property
    def comparisons(self) -> int: ...


def sampled_stages(
    stages: Sequence[Stage], reports: Mapping[str, StageReport], slices: Iterable[SliceSeen]
) -> list[SampledStage]:
    """Return what a run over a sample has shown of each stage of its plan.

    Args:
        stages: of the plan, in topological order.
        reports: {stage: what it did with the sample, to its end}.
        slices: all there were, in their order.

    Raises:
        SettingError: a stage has no report.
    """
    own: dict[str, list[SliceSeen]] = {stage.name: [] for stage in stages}
    for one in slices:
        if one.rows or one.released:
            own[one.stage].append(one)
    found = []
    for stage in stages:
        report = reports.get(stage.name)
        if report is None:
            raise SettingError(
                f"stage {stage.name!r} is not in the sample's report, so what an event costs it is "
                "not known; take a sample of this version of the flow"
            )
        found.append(_sampled(stage, report, own[stage.name]))
    return found


def _sampled(stage: Stage, report: StageReport, slices: Sequence[SliceSeen]) -> SampledStage:
    spans = spans_of(stage)
    return SampledStage(
        name=stage.name,
        inputs=tuple(dict.fromkeys(channel.source for channel in stage.inputs)),
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        slice_rows=[one.rows for one in slices],
        slice_s=[one.took_ns / NS_PER_SECOND for one in slices],
        slice_in=[one.released for one in slices],
        slice_out=[one.results for one in slices],
        slice_pairs=[one.comparisons for one in slices],
        window_s=spans.window_s,
        within_s=spans.within_s,
    )


def spans_of(stage: Stage) -> Spans:
    """Return the lengths of event time by which a stage makes its results."""
    traits = stage.step.traits
    windows_ns, reach_ns = traits.windows_ns, traits.reach_ns
    return Spans(
        window_s=None
        if windows_ns is None
        else (windows_ns[0] / NS_PER_SECOND, windows_ns[1] / NS_PER_SECOND),
        within_s=reach_ns / NS_PER_SECOND if traits.makes == "pairs" and reach_ns else None,
    )


def share_of(stage: SampledStage, stages: Sequence[SampledStage]) -> float:
    """Return how many of the rows that its inputs hand on come to a stage.

    Below 1 for a replica, and for the stage of late rows; 2 where one feeds both sides of a join.
    """
    if not stage.inputs:
        return 1.0
    handed = sum(one.rows_out for one in stages if one.name in stage.inputs)
    return stage.rows_in / handed if handed else 0.0


def as_shares(rows: Mapping[str, int]) -> dict[str, float]:
    """Return {source: its share of all rows}, for a rate that is given for all of them at once."""
    total = sum(rows.values())
    return {name: count / total if total else 0.0 for name, count in rows.items()}


def full_rows(stage: SampledStage) -> FloatArray:
    """Return how many rows had gone in, and out, after each slice: shape (2, slices + 1)."""
    each = np.array([stage.slice_in, stage.slice_out], dtype=np.float64).reshape(2, -1)
    return np.concatenate([np.zeros((2, 1)), np.cumsum(each, axis=1)], axis=1)
