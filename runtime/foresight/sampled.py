"""Stages in a run over a sample: rows, results, and costs of slices.

Slots work in slices, each with a fixed part and a part for each row. If latency matters there is a
backlog, and slices are full: an event then costs its share of a full slice. Source: [mace] §VI-B,
"operator cycles/event", scheduling included.
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
from slackwater.runtime.model.slice_time import time_of_rows
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
"""Share of a sample's rows that first fill the windows of a stage that looks back."""
LEAST_ROWS, MOST_ROWS = Limits.min_slice_rows, Limits.max_slice_rows
LONGEST_S = Limits.longest_slice_ns / NS_PER_SECOND


@dataclass(frozen=True)
class StageCost:
    """Costs of a slice, a row, and a pair or result, in CPU seconds."""

    fixed_s: float
    row_s: float
    more_s: float = 0.0

    def in_full_slices(self, slice_s: float) -> StageCost:
        """Return the cost of rows in full slices, with their share of the fixed part.

        A slice has at least the rows that take as long as its fixed part, up to `min_slice_rows`
        (`runtime/schedule/slice_size.py`), and at least one row, however long that takes.
        """
        fixed_s, row_s = self.fixed_s, self.row_s
        rows_s = time_of_rows(fixed_s, usual=slice_s, longest=max(slice_s, LONGEST_S))
        if row_s <= 0:  # the most rows, unless the fixed part alone is too long
            return StageCost(0.0, fixed_s / (MOST_ROWS if rows_s else LEAST_ROWS), self.more_s)
        fit = max(rows_s, min(fixed_s, LEAST_ROWS * row_s)) / row_s
        more = fixed_s / (max(round(min(fit, MOST_ROWS)), 1) * row_s)
        return StageCost(0.0, row_s * (1 + more), self.more_s * (1 + more))


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of event time by which a stage makes its results.

    Attributes:
        window_s: size and slide of its windows; None: it has no windows.
        within_s: longest distance of partners of its join; None: it does not join.
    """

    window_s: tuple[float, float] | None = None
    within_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class SampledStage:
    """Sample of a stage: its rows, results and slices in a run.

    Attributes:
        name: name of the stage.
        inputs: the stages that feed it; empty: it is a source.
        rows_in: rows that arrived; of a source, rows that it read.
        rows_out: rows that left.
        slice_rows: rows that each of its slices took; a message without rows counts as one.
        slice_s: CPU seconds of each slice.
        slice_in: rows that each slice gave to its operator; empty: unknown.
        slice_out: rows that left with each slice; empty: unknown.
        slice_pairs: pairs that its join compared in each slice; empty: unknown.
        window_s: size and slide of its windows, seconds of event time; None: it has no windows.
        within_s: longest distance of partners of its join; None: it does not join.
        least_fixed_s: least time of any slice by the clock; 0 by a model of costs.
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
        """Counts that cost beside rows: results of windows, pairs of a join; else empty."""
        if self.window_s is not None:
            return self.slice_out
        return self.slice_pairs if self.within_s is not None else ()

    def cost(self, more: Sequence[int] = ()) -> StageCost:
        """Return the cost of a slice and of each row; 0 without slices.

        The first slices, in which code is loaded and windows fill, are omitted if there are enough
        others.

        Args:
            more: pairs or results of each slice, which may cost, too; empty: rows alone.
        """
        count = len(self.slice_rows)
        if not count:
            return StageCost(0.0, 0.0)
        rows, seconds = np.asarray(self.slice_rows, float), np.asarray(self.slice_s, float)
        released = np.asarray(self.slice_in if len(self.slice_in) else np.zeros(count), float)
        others = np.asarray(more if len(more) else np.zeros(count), float)
        features = np.stack([np.ones(count), rows, released, others], axis=1)
        if count > 8:
            looks_back = self.window_s is not None or self.within_s is not None
            early = EARLY if looks_back or any(self.slice_pairs) else 0.0
            at_first = int((np.cumsum(rows) < early * rows.sum()).sum()) + 1
            begin = min(max(at_first, 2), count // 2)
            features, seconds = features[begin:], seconds[begin:]
        if any(np.ptp(each) == 0 and each.any() for each in features[:, 1:3].T):
            features[:, 0] = 0.0  # all slices have equal rows: the whole cost is the rows'
        costs = _fitted(features, seconds, self.least_fixed_s)
        # An interruption makes a slice longer, never shorter. One or two slices that are far off
        # are omitted if they are little of the whole: else the work itself varies.
        off = seconds - features @ costs
        odd = off > 10 * np.median(np.abs(off)) + 1e-12
        if 0 < odd.sum() <= 2 and len(off) > 8 and off[odd].sum() <= 0.02 * seconds.sum():
            costs = _fitted(features[~odd], seconds[~odd], self.least_fixed_s)
        # A row costs on arrival and on release, and each row has both.
        return StageCost(float(costs[0]), float(costs[1] + costs[2]), float(costs[3]))


def _fitted(features: FloatArray, seconds: FloatArray, least_fixed_s: float) -> FloatArray:
    """Return the costs of a slice, an arrival, a release, and a pair or result.

    Messages without rows do not reach the operator, so they do not show its fixed part.
    """
    if features[:, 2].any():
        has_rows = (features[:, 1] > 1) | (features[:, 2] > 0)
        features, seconds = features[has_rows], seconds[has_rows]
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
    """Return the samples of all stages of a plan, from a run over a sample.

    Args:
        stages: stages of the plan, in topological order.
        reports: {stage: its report at the end of the sample}.
        slices: all slices, in their order.

    Raises:
        SettingError: a stage has no report.
    """
    own: dict[str, list[SliceSeen]] = {stage.name: [] for stage in stages}
    for seen in slices:
        if seen.rows or seen.released:
            own[seen.stage].append(seen)
    sampled = []
    for stage in stages:
        report = reports.get(stage.name)
        if report is None:
            raise SettingError(
                f"stage {stage.name!r} is not in the sample's report, so what an event costs it is "
                "not known; take a sample of this version of the flow"
            )
        sampled.append(_sampled(stage, report, own[stage.name]))
    return sampled


def _sampled(stage: Stage, report: StageReport, slices: Sequence[SliceSeen]) -> SampledStage:
    spans = spans_of(stage)
    return SampledStage(
        name=stage.name,
        inputs=tuple(dict.fromkeys(channel.source for channel in stage.inputs)),
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        slice_rows=[seen.rows for seen in slices],
        slice_s=[seen.took_ns / NS_PER_SECOND for seen in slices],
        slice_in=[seen.released for seen in slices],
        slice_out=[seen.results for seen in slices],
        slice_pairs=[seen.comparisons for seen in slices],
        window_s=spans.window_s,
        within_s=spans.within_s,
    )


def spans_of(stage: Stage) -> Spans:
    """Return the spans of event time by which a stage makes its results."""
    traits = stage.step.traits
    windows_ns, reach_ns = traits.windows_ns, traits.reach_ns
    return Spans(
        window_s=None
        if windows_ns is None
        else (windows_ns[0] / NS_PER_SECOND, windows_ns[1] / NS_PER_SECOND),
        within_s=reach_ns / NS_PER_SECOND if traits.makes == "pairs" and reach_ns else None,
    )


def share_of(stage: SampledStage, stages: Sequence[SampledStage]) -> float:
    """Return the share of its inputs' output rows that reach a stage.

    It is below 1 for a replica, and for the stage of late rows; 2 if one stage feeds both sides of
    a join.
    """
    if not stage.inputs:
        return 1.0
    handed = sum(feeder.rows_out for feeder in stages if feeder.name in stage.inputs)
    return stage.rows_in / handed if handed else 0.0


def as_shares(rows: Mapping[str, int]) -> dict[str, float]:
    """Return {source: its share of all rows}, to split a rate of all sources."""
    total = sum(rows.values())
    return {name: count / total if total else 0.0 for name, count in rows.items()}
