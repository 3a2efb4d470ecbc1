"""Query graph and arrivals of a flow, from the samples of an earlier job.

```
second 12   pairs   600 rows in 60 slices took 150 ms, 540 out         ─▶  ω = 0.24 ms, σ = 0.9
            buses   (120, 58), (121, 61), … by stimulus                ─▶  58 events from 12.0 s on
```

The number of results of joins and windows in a denser stream follows from the arrivals of rows, as
it does for a sample. The cost of pairs and results beside rows does not, so costs are linear.

Source: [mace] §III-B, §VI-B.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.curves import fit_nonnegative
from slackwater.runtime.foresight.observations import Spans, StageCost, StageObservations, share_of
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph
from slackwater.runtime.foresight.rates import RecordedRate
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
"""Least relative difference in rows per slice that separates the cost of a slice from its rows."""


TOLD_TWICE, ONE_SLICE = 2, 100_000
"""Rows that arrived equal the rows read, except for a slice at each end of the record."""
MOST_PARTS = 10_000_000
"""Parts of intervals in a record: more than any job keeps."""


@dataclass(frozen=True, kw_only=True)
class RecordedStage:
    """Record of a stage, from the samples of a job.

    Attributes:
        name: name of the stage.
        inputs: the stages that feed it; empty: it is a source.
        rows_in: rows that arrived; of a source, rows that it passed on.
        rows_out: rows that left.
        rows: shape (k,), rows that it processed in each interval.
        slices: shape (k,), number of its slices.
        busy_s: shape (k,), its busy time.
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
        """σ: rows out for each row processed; the end of the job cuts off both."""
        worked = float(self.rows.sum())
        return self.rows_out / worked if worked else 0.0

    def row_s(self, slice_s: float) -> float:
        """Return the cost of a row in full slices, at most its mean cost."""
        rows = float(self.rows.sum())
        whole_s = float(self.busy_s.sum()) / rows if rows else 0.0
        return min(self.cost.in_full_slices(slice_s).row_s, whole_s)

    @property
    def cost(self) -> StageCost:
        """Cost of a slice and of each row; 0 for a stage without rows."""
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
    """Return the records of all stages, from the samples of a job.

    Args:
        samples: samples of one job, all of one length.
        inputs: {stage: the stages that feed it}, in topological order.

    Raises:
        SettingError: a stage has no sample, no source has read a row, or no sink got one.
    """
    own: dict[str, list[StageSample]] = {name: [] for name in inputs}
    for sample in samples:
        if sample.stage in own:
            own[sample.stage].append(sample)
    missing = [name for name, seen in own.items() if not seen]
    if missing:
        raise SettingError(
            f"it has no sample of {', '.join(missing)}, so what an event costs there is not known"
        )
    records = [_recorded(name, inputs[name], seen) for name, seen in own.items()]
    feeding = {feeder for feeders in inputs.values() for feeder in feeders}
    for what, ends in (
        ("row was read at", [record for record in records if not record.inputs]),
        ("result has reached", [record for record in records if record.name not in feeding]),
    ):
        if not any(record.rows_in for record in ends):
            raise SettingError(
                f"no {what} {', '.join(record.name for record in ends)} in it, so nothing is "
                "known of what a run costs"
            )
    return records


def _recorded(name: str, inputs: tuple[str, ...], seen: Sequence[StageSample]) -> RecordedStage:
    rows = np.array([sample.rows for sample in seen], dtype=np.float64)
    return RecordedStage(
        name=name,
        inputs=inputs,
        rows_in=sum(sample.came for sample in seen) if inputs else int(rows.sum()),
        rows_out=sum(sample.handed for sample in seen),
        rows=rows,
        slices=np.array([sample.slices for sample in seen], dtype=np.float64),
        busy_s=np.array([sample.busy_ns for sample in seen]) / NS_PER_SECOND,
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
        stages: records of the stages, in topological order.
        slice_s: duration of a full slice (`Limits.slice_ns`).
        spans: {stage: the lengths of its windows and joins}.
        times_s: {source: its arrivals, by event time}.

    Returns:
        The graph; and {stage: share of its inputs' output rows that reach it}.

    Raises:
        SettingError: no stage took any time.
    """
    known = _as_sampled(stages, slice_s, spans or {})
    if not any(stage.busy_s[0] for stage in known):
        raise SettingError("nothing took any time in it, so what an event costs is not known")
    graph = observed_graph(known, slice_s=slice_s, times_s=times_s)
    return graph, {stage.name: share_of(stage, known) for stage in known}


def _as_sampled(
    stages: Sequence[RecordedStage], slice_s: float, spans: Mapping[str, Spans]
) -> list[StageObservations]:
    """Return the stages as of a sample: all rows in one slice, at their cost.

    Rows that were under way at the end of the record count as arrived, so that they lower neither
    selectivities nor shares.
    """
    handed = {stage.name: stage.rows_out for stage in stages}
    out: dict[str, int] = {}
    sampled = []
    for stage in stages:
        sent = sum(handed[name] for name in stage.inputs)
        fed = sum(out[name] for name in stage.inputs)
        rows = round(stage.rows_in * fed / sent) if sent else stage.rows_in
        out[stage.name] = round(stage.selectivity * rows)
        own = spans.get(stage.name, Spans())
        sampled.append(
            StageObservations(
                name=stage.name,
                inputs=stage.inputs,
                rows_in=rows,
                rows_out=out[stage.name],
                came=[max(rows, 1)],
                busy_s=[stage.row_s(slice_s) * max(rows, 1)],
                window_s=own.window_s,
                within_s=own.within_s,
            )
        )
    return sampled


def arrivals_recorded(
    samples: Sequence[StageSample], sources: Sequence[str], *, interval_s: float
) -> dict[str, RecordedRate]:
    """Return {source: its arrivals}, from the first event of any source to the last.

    Args:
        samples: samples of one job, with rows of at least one source.
        sources: names of the sources.
        interval_s: length of a sample; arrivals are known to a tenth of it.

    Raises:
        SettingError: no row arrived, or the counts contradict each other.
    """
    counts: dict[str, dict[int, int]] = {name: {} for name in sources}
    for sample in samples:
        for number, rows in sample.arrived if sample.stage in counts else ():
            counts[sample.stage][number] = counts[sample.stage].get(number, 0) + rows
    for name, each in counts.items():
        read = sum(sample.rows for sample in samples if sample.stage == name)
        if sum(each.values()) > TOLD_TWICE * read + ONE_SLICE:
            raise SettingError(
                f"it says that {sum(each.values()):,} rows arrived at {name}, which read {read:,}"
            )
    numbers = [number for each in counts.values() for number in each]
    came = [count for each in counts.values() for count in each.values()]
    # Whole intervals: tenths without arrivals at the ends are a part of the record.
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
    """Return the number of intervals from the first event of any source to the last."""
    intervals = [
        number // PARTS
        for sample in samples
        if sample.stage in sources
        for number, _ in sample.arrived
    ]
    return max(intervals) - min(intervals) + 1 if intervals else 0


def first_interval(samples: Iterable[StageSample], sources: Collection[str]) -> int:
    """Return the interval of the first event of any source, by its stimulus."""
    return min(
        (
            number // PARTS
            for sample in samples
            if sample.stage in sources
            for number, _ in sample.arrived
        ),
        default=0,
    )
