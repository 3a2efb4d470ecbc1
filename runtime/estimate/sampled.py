"""From a sample run to a query graph: what an event of each stage costs, and what comes of it.

Slots work in slices, each of a fixed part and a part for each row. Where latency is in question
there is a backlog, and slices are full: an event then costs its share of a full slice. Source:
[mace] §VI-B, "operator cycles/event", scheduling included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runtime.errors import SettingError
from runtime.estimate.curves import fit_nonnegative
from runtime.estimate.query_graph import FloatArray, QueryGraph, QueryOperator, arrivals_of

__all__ = ["SampledStage", "full_slice_row_s", "query_graph_of_sample", "share_of"]


@dataclass(frozen=True, kw_only=True)
class SampledStage:
    """What a sample run has shown of a stage.

    Attributes:
        name: of the stage.
        inputs: the stages that feed it; none: it is a source.
        rows_in: rows that came in; of a source those that it read.
        rows_out: rows that it handed on.
        slice_rows: rows of each of its slices.
        slice_s: CPU seconds of each, as many.
    """

    name: str
    inputs: tuple[str, ...]
    rows_in: int
    rows_out: int
    slice_rows: Sequence[int]
    slice_s: Sequence[float]

    @property
    def selectivity(self) -> float:
        """σ: rows out for each row in."""
        return self.rows_out / self.rows_in if self.rows_in else 0.0

    def fixed_and_row_s(self) -> tuple[float, float]:
        """Return what a slice costs, and each row of it, CPU seconds.

        The first slices, in which code is loaded, are left out where there are enough others.

        Raises:
            SettingError: it had no slice.
        """
        rows, seconds = np.asarray(self.slice_rows, float), np.asarray(self.slice_s, float)
        if len(rows) > 8:
            rows, seconds = rows[2:], seconds[2:]
        mean = 0.0, float(seconds.sum() / max(rows.sum(), 1))
        # Whatever interrupts a slice makes it longer, never shorter. One or two that are far off
        # are left out, if they are little of the whole: else it is the work that varies.
        fixed, row = _fit(rows, seconds)
        off = seconds - fixed - row * rows
        odd = off > 10 * np.median(np.abs(off)) + 1e-12
        if 0 < odd.sum() <= 2 and len(rows) > 8 and off[odd].sum() <= 0.1 * seconds.sum():
            fixed, row = _fit(rows[~odd], seconds[~odd])
        # Slices of one length, or such as say nothing of rows: all of it is theirs.
        return (fixed, row) if row > 0 and np.ptp(rows) > 0 else mean


def _fit(rows: FloatArray, seconds: FloatArray) -> tuple[float, float]:
    fixed, row = fit_nonnegative(np.stack([np.ones(len(rows)), rows], axis=1), seconds)
    return float(fixed), float(row)


def query_graph_of_sample(stages: Sequence[SampledStage], *, slice_s: float) -> QueryGraph:
    """Return the query graph of a flow, its stages as operators.

    Args:
        stages: in topological order.
        slice_s: how long a full slice takes (`Limits.slice_ns`).

    Raises:
        SettingError: no source read a row, or no sink got one: nothing can be said from that.
    """
    sources = [stage for stage in stages if not stage.inputs]
    if not any(stage.rows_in for stage in sources):
        raise SettingError(
            f"the sample has no rows: sources {', '.join(s.name for s in sources)} are empty; "
            "give a larger sample, or data with rows"
        )
    feeding = {name for stage in stages for name in stage.inputs}
    sinks = [stage for stage in stages if stage.name not in feeding]
    if not any(stage.rows_in for stage in sinks):
        raise SettingError(
            f"the sample of {sum(s.rows_in for s in sources)} rows gave no result at "
            f"{', '.join(s.name for s in sinks)}, so what results cost is not known; give a "
            "larger sample"
        )
    operators = tuple(_operator(stage, slice_s, share_of(stage, stages)) for stage in stages)
    if not any(cost for one in operators for cost in one.cost_s):
        raise SettingError(
            f"the sample of {sum(s.rows_in for s in sources)} rows cost nothing at any stage, by "
            "the clock that it was timed with: what work costs is not known; take a larger sample, "
            "or time it by a finer clock"
        )
    return QueryGraph(tuple(arrivals_of(stage.name) for stage in sources), operators)


def share_of(stage: SampledStage, stages: Sequence[SampledStage]) -> float:
    """Return how many of the rows that its inputs hand on come to a stage.

    Below 1 for a replica, and for the stage of late rows; 2 where one feeds both sides of a join.
    """
    if not stage.inputs:
        return 1.0
    handed = sum(one.rows_out for one in stages if one.name in stage.inputs)
    return stage.rows_in / handed if handed else 0.0


def _operator(stage: SampledStage, slice_s: float, share: float) -> QueryOperator:
    inputs = stage.inputs or (arrivals_of(stage.name),)
    full = full_slice_row_s(stage, slice_s)
    return QueryOperator(
        name=stage.name,
        inputs=inputs,
        cost_s=(full * share,) * len(inputs),
        selectivity=(stage.selectivity * share,) * len(inputs),
    )


def full_slice_row_s(stage: SampledStage, slice_s: float) -> float:
    """Return what a row costs in a slice that is full by time: its share of the fixed part, too."""
    fixed_s, row_s = stage.fixed_and_row_s() if len(stage.slice_rows) else (0.0, 0.0)
    room_s = max(slice_s - fixed_s, slice_s / 10)  # at least so much of a slice is its rows
    return row_s * (1 + fixed_s / room_s)


def as_shares(rows: Mapping[str, int]) -> dict[str, float]:
    """Return {source: its share of all rows}, for a rate that is given for all of them at once."""
    total = sum(rows.values())
    return {name: count / total if total else 0.0 for name, count in rows.items()}
