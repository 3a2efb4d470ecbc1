"""Table of observations and arrivals of a flow, from the samples of a job.

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
from dataclasses import replace

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.observations import Spans, StageObservations
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.measure.samples import PARTS, StageSample
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["arrivals_recorded", "observed_job", "observed_samples", "recorded_intervals"]

TOLD_TWICE, ONE_SLICE = 2, 100_000
"""Rows that arrived equal the rows read, except for a slice at each end of the record."""
MOST_PARTS = 10_000_000
"""Parts of intervals in a record: more than any job keeps."""


def observed_samples(
    name: str, inputs: tuple[str, ...], samples: Sequence[StageSample]
) -> StageObservations:
    """Return the observations of a stage from its samples, all of one length.

    Args:
        name: name of the stage.
        inputs: the stages that feed it; empty: it is a source, and all its rows arrive.
        samples: its samples, an interval each.
    """
    rows = [sample.rows for sample in samples]
    return StageObservations(
        name=name,
        inputs=inputs,
        rows_in=sum(sample.came for sample in samples) if inputs else sum(rows),
        rows_out=sum(sample.handed for sample in samples),
        rows=rows,
        busy_s=[sample.busy_ns / NS_PER_SECOND for sample in samples],
        slices=[sample.slices for sample in samples],
        out=[sample.handed for sample in samples],
    )


def observed_job(
    samples: Iterable[StageSample],
    inputs: Mapping[str, tuple[str, ...]],
    spans: Mapping[str, Spans] | None = None,
) -> list[StageObservations]:
    """Return the observations of all stages, from the samples of a job.

    Rows that were under way at the end of the record count as arrived, so that they lower neither
    selectivities nor shares.

    Args:
        samples: samples of one job, all of one length.
        inputs: {stage: the stages that feed it}, in topological order.
        spans: {stage: the lengths of its windows and joins}.

    Raises:
        SettingError: a stage has no sample, no source has read a row, no sink got one, or no stage
            took any time.
    """
    own: dict[str, list[StageSample]] = {name: [] for name in inputs}
    for sample in samples:
        if sample.stage in own:
            own[sample.stage].append(sample)
    missing = [name for name, each in own.items() if not each]
    if missing:
        raise SettingError(
            f"it has no sample of {', '.join(missing)}, so what an event costs there is not known; "
            "use the history of a longer run"
        )
    stages = [observed_samples(name, inputs[name], each) for name, each in own.items()]
    _check(stages)
    handed = {stage.name: stage.rows_out for stage in stages}
    whole: dict[str, StageObservations] = {}
    for stage in stages:
        sent = sum(handed[name] for name in stage.inputs)
        fed = sum(whole[name].rows_out for name in stage.inputs)
        rows, worked = round(stage.rows_in * fed / sent) if sent else stage.rows_in, sum(stage.rows)
        own_spans = (spans or {}).get(stage.name, Spans())
        whole[stage.name] = replace(
            stage,
            rows_in=rows,
            rows_out=round(stage.rows_out / worked * rows) if worked else 0,
            window_s=own_spans.window_s,
            within_s=own_spans.within_s,
        )
    return list(whole.values())


def _check(stages: Sequence[StageObservations]) -> None:
    feeding = {feeder for stage in stages for feeder in stage.inputs}
    for what, ends in (
        ("row was read at", [stage for stage in stages if not stage.inputs]),
        ("result has reached", [stage for stage in stages if stage.name not in feeding]),
    ):
        if not any(stage.rows_in for stage in ends):
            raise SettingError(
                f"no {what} {', '.join(stage.name for stage in ends)} in it, so nothing is known "
                "of what a run costs; use the history of a longer run"
            )
    if not any(sum(stage.busy_s) for stage in stages):
        raise SettingError(
            "nothing took any time in it, so what an event costs is not known; use that of "
            "a longer run"
        )


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
    first = recorded_intervals(samples, sources).start * PARTS
    last = max(numbers, default=0) // PARTS * PARTS + PARTS - 1
    if sum(came) <= 0 or min(came) < 0 or last - first >= MOST_PARTS:
        raise SettingError("it does not say what has arrived at the sources, and when; give rates=")
    return {
        name: RecordedRate(
            [each.get(number, 0) for number in range(first, last + 1)],
            interval_s=interval_s / PARTS,
        )
        for name, each in counts.items()
    }


def recorded_intervals(samples: Iterable[StageSample], sources: Collection[str]) -> range:
    """Return the intervals from the first event of any source to the last, by stimulus."""
    numbers = [
        number // PARTS
        for sample in samples
        if sample.stage in sources
        for number, _ in sample.arrived
    ]
    return range(min(numbers), max(numbers) + 1) if numbers else range(0)
