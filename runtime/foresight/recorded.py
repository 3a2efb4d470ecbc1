"""From the samples of an earlier job to a query graph, and to what arrived at its sources.

```
second 12   pairs   600 rows in 60 slices took 150 ms, 540 handed on   ─▶  ω = 0.24 ms, σ = 0.9
            buses   (120, 58), (121, 61), … by stimulus                ─▶  58 events from 12.0 s on
```

How many results joins and windows give in a denser stream follows from when rows came, as it does
of a sample. What pairs and results cost beside rows does not, so costs are linear.

Source: [mace] §III-B, §VI-B.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.curves import fit_nonnegative
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.sample_statistics import query_graph_of_sample
from slackwater.runtime.foresight.sampled import SampledStage, Spans, StageCost, share_of
from slackwater.runtime.measure.samples import PARTS, StageSample
from slackwater.runtime.model import NS_PER_SECOND

__all__ = [
    "RecordedStage",
    "arrivals_recorded",
    "first_interval",
    "graph_recorded",
    "intervals_recorded",
    "stages_recorded",
]

ALIKE = 0.2
"""Intervals in which a slice had as many rows, but for so much, do not tell it from its rows."""


TOLD_TWICE, ONE_SLICE = 2, 100_000
"""Rows that arrived are those that were read, but for a slice at each end of what was kept."""
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
    stages: Sequence[RecordedStage],
    *,
    slice_s: float,
    spans: Mapping[str, Spans] | None = None,
    times_s: Mapping[str, RecordedRate] | None = None,
) -> tuple[QueryGraph, dict[str, float]]:
    """Return the query graph of a flow, its stages as operators, and their shares.

    Args:
        stages: in topological order.
        slice_s: how long a full slice takes (`Limits.slice_ns`).
        spans: {stage: the lengths of its windows and joins}.
        times_s: {source: what arrived, by its event times}.

    Returns:
        The graph; and {stage: how many of the rows that its inputs hand on come to it}.

    Raises:
        SettingError: nothing took any time.
    """
    known = _as_sampled(stages, slice_s, spans or {})
    if not any(one.slice_s[0] for one in known):
        raise SettingError("nothing took any time in it, so what an event costs is not known")
    graph = query_graph_of_sample(known, slice_s=slice_s, times_s=times_s)
    return graph, {one.name: share_of(one, known) for one in known}


def _as_sampled(
    stages: Sequence[RecordedStage], slice_s: float, spans: Mapping[str, Spans]
) -> list[SampledStage]:
    """Return stages as if a sample had shown them: all in one slice, by what its rows cost.

    Rows that were under way as the record ends are taken to have gone on, so that they lower
    neither selectivities nor shares.
    """
    handed = {one.name: one.rows_out for one in stages}
    out: dict[str, int] = {}
    found = []
    for one in stages:
        sent, fed = sum(handed[name] for name in one.inputs), sum(out[name] for name in one.inputs)
        rows = round(one.rows_in * fed / sent) if sent else one.rows_in
        out[one.name] = round(one.selectivity * rows)
        own = spans.get(one.name, Spans())
        found.append(
            SampledStage(
                name=one.name,
                inputs=one.inputs,
                rows_in=rows,
                rows_out=out[one.name],
                slice_rows=[max(rows, 1)],
                slice_s=[one.row_s(slice_s) * max(rows, 1)],
                window_s=own.window_s,
                within_s=own.within_s,
            )
        )
    return found


def arrivals_recorded(
    samples: Sequence[StageSample], sources: Sequence[str], *, interval_s: float
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
    for name, each in counts.items():
        read = sum(one.rows for one in samples if one.stage == name)
        if sum(each.values()) > TOLD_TWICE * read + ONE_SLICE:
            raise SettingError(
                f"it says that {sum(each.values()):,} rows arrived at {name}, which read {read:,}"
            )
    numbers = [number for each in counts.values() for number in each]
    came = [count for each in counts.values() for count in each.values()]
    # Whole intervals: the tenths in which nothing came at the ends are a part of the record.
    first = first_interval(samples, sources) * PARTS
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


def intervals_recorded(samples: Iterable[StageSample], sources: Collection[str]) -> int:
    """Return how many intervals there are from the first event of any source to the last."""
    found = [n // PARTS for one in samples if one.stage in sources for n, _ in one.arrived]
    return max(found) - min(found) + 1 if found else 0


def first_interval(samples: Iterable[StageSample], sources: Collection[str]) -> int:
    """Return the interval in which the first event of any source came, by its stimulus."""
    return min(
        (number // PARTS for one in samples if one.stage in sources for number, _ in one.arrived),
        default=0,
    )
