"""From the samples of an earlier job to a query graph, and to what arrived at its sources.

```
second 12   pairs   600 rows in 60 slices took 150 ms, 540 handed on   ─▶  ω = 0.24 ms, σ = 0.9
            buses   (120, 58), (121, 61), … by stimulus                ─▶  58 events from 12.0 s on
```

Samples count rows, they do not know them: how joins and windows change with the density of a stream
is not in them, so all is linear. Source: [mace] §III-B, §VI-B.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runtime.errors import SettingError
from runtime.estimate.curves import fit_nonnegative
from runtime.estimate.query_graph import FloatArray, QueryGraph, QueryOperator, arrivals_of
from runtime.estimate.rates import RecordedRate
from runtime.estimate.sampled import StageCost
from runtime.measure.samples import PARTS, StageSample
from runtime.model import NS_PER_SECOND

__all__ = ["RecordedStage", "arrivals_recorded", "graph_recorded", "stages_recorded"]

ALIKE = 0.2
"""Intervals in which a slice had as many rows, but for so much, do not tell it from its rows."""


MOST_PARTS = 10_000_000
"""More than any job keeps."""


@dataclass(frozen=True, kw_only=True)
class RecordedStage:
    """What the samples of a job say of a stage.

    Attributes:
        name: of the stage.
        inputs: the stages that feed it; none: it is a source.
        rows_in: rows that came to it; of a source those that it handed over.
        rows_out: rows that it handed on.
        rows: shape (k,), rows that it worked off in each interval.
        slices: shape (k,), how often it worked.
        busy_s: shape (k,), how long.
    """

    name: str
    inputs: tuple[str, ...]
    rows_in: int
    rows_out: int
    rows: FloatArray
    slices: FloatArray
    busy_s: FloatArray

    @property
    def selectivity(self) -> float:
        """σ: rows out for each row worked off; the end of the job cuts off both alike."""
        worked = float(self.rows.sum())
        return self.rows_out / worked if worked else 0.0

    def row_s(self, slice_s: float) -> float:
        """Return what a row costs in slices of that length; no more than it has on average."""
        rows = float(self.rows.sum())
        whole_s = float(self.busy_s.sum()) / rows if rows else 0.0
        return min(self.cost.in_full_slices(slice_s).row_s, whole_s)

    @property
    def cost(self) -> StageCost:
        """What a slice costs, and each row of it; of a stage that had no row, nothing."""
        rows, busy_s = float(self.rows.sum()), float(self.busy_s.sum())
        if not rows:
            return StageCost(0.0, 0.0)
        whole = StageCost(0.0, busy_s / rows)
        worked = (self.rows > 0) & (self.slices > 0)
        each = self.rows[worked] / self.slices[worked]
        if len(each) < 2 or np.ptp(each) <= ALIKE * each.mean():
            return whole
        features = np.stack([self.slices, self.rows], axis=1)
        fixed_s, row_s = fit_nonnegative(features, self.busy_s)
        return StageCost(float(fixed_s), float(row_s)) if row_s > 0 else whole


def stages_recorded(
    samples: Iterable[StageSample], inputs: Mapping[str, tuple[str, ...]]
) -> list[RecordedStage]:
    """Return what the samples of a job say of each stage.

    Args:
        samples: of one job, all intervals as long.
        inputs: {stage: those that feed it}, in topological order.

    Raises:
        SettingError: there is no sample of a stage; or no source has read a row, or no sink got
            one.
    """
    own: dict[str, list[StageSample]] = {name: [] for name in inputs}
    for one in samples:
        if one.stage in own:
            own[one.stage].append(one)
    missing = [name for name, seen in own.items() if not seen]
    if missing:
        raise SettingError(
            f"it has no sample of {', '.join(missing)}, so what an event costs there is not known"
        )
    found = [_recorded(name, inputs[name], seen) for name, seen in own.items()]
    feeding = {feeder for feeders in inputs.values() for feeder in feeders}
    for what, ends in (
        ("row was read at", [one for one in found if not one.inputs]),
        ("result has come to", [one for one in found if one.name not in feeding]),
    ):
        if not any(one.rows_in for one in ends):
            raise SettingError(
                f"no {what} {', '.join(one.name for one in ends)} in it, so nothing is known of "
                "what a run costs"
            )
    return found


def _recorded(name: str, inputs: tuple[str, ...], seen: Sequence[StageSample]) -> RecordedStage:
    rows = np.array([one.rows for one in seen], dtype=np.float64)
    return RecordedStage(
        name=name,
        inputs=inputs,
        rows_in=sum(one.came for one in seen) if inputs else int(rows.sum()),
        rows_out=sum(one.handed for one in seen),
        rows=rows,
        slices=np.array([one.slices for one in seen], dtype=np.float64),
        busy_s=np.array([one.busy_ns for one in seen]) / NS_PER_SECOND,
    )


def graph_recorded(
    stages: Sequence[RecordedStage], *, slice_s: float
) -> tuple[QueryGraph, dict[str, float]]:
    """Return the query graph of a flow, its stages as operators, and their shares.

    Args:
        stages: in topological order.
        slice_s: how long a full slice takes (`Limits.slice_ns`).

    Returns:
        The graph; and {stage: how many of the rows that its inputs hand on come to it}.

    Raises:
        SettingError: nothing took any time.
    """
    out = {one.name: one.rows_out for one in stages}
    operators, shares = [], {}
    for one in stages:
        handed = sum(out[feeder] for feeder in one.inputs)
        share = one.rows_in / handed if handed else float(not one.inputs)
        inputs = one.inputs or (arrivals_of(one.name),)
        row_s = one.row_s(slice_s)
        shares[one.name] = share
        operators.append(
            QueryOperator(
                name=one.name,
                inputs=inputs,
                cost_s=(row_s * share,) * len(inputs),
                selectivity=(one.selectivity * share,) * len(inputs),
            )
        )
    if not any(cost for one in operators for cost in one.cost_s):
        raise SettingError("nothing took any time in it, so what an event costs is not known")
    sources = tuple(arrivals_of(one.name) for one in stages if not one.inputs)
    return QueryGraph(sources, tuple(operators)), shares


def arrivals_recorded(
    samples: Iterable[StageSample], sources: Sequence[str], *, interval_s: float
) -> dict[str, RecordedRate]:
    """Return {source: what arrived there}, from the first event of any source to the last.

    Args:
        samples: of one job, with rows of a source at least.
        sources: their names.
        interval_s: how long an interval of the samples is; arrivals are known to a tenth of it.

    Raises:
        SettingError: nothing arrived, or what is said of it cannot be.
    """
    counts: dict[str, dict[int, int]] = {name: {} for name in sources}
    for one in samples:
        for number, rows in one.arrived if one.stage in counts else ():
            counts[one.stage][number] = counts[one.stage].get(number, 0) + rows
    numbers = [number for each in counts.values() for number in each]
    came = [count for each in counts.values() for count in each.values()]
    # Whole intervals: the tenths in which nothing came at the ends are a part of the record.
    first = min(numbers, default=0) // PARTS * PARTS
    last = max(numbers, default=0) // PARTS * PARTS + PARTS - 1
    if sum(came) <= 0 or min(came) < 0 or last - first >= MOST_PARTS:
        raise SettingError("it does not say what has arrived at the sources, and when")
    return {
        name: RecordedRate(
            [each.get(number, 0) for number in range(first, last + 1)],
            interval_s=interval_s / PARTS,
        )
        for name, each in counts.items()
    }
