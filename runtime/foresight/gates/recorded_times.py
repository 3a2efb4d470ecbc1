"""Source times from an earlier job: arrivals, event times and promises of rows.

```
arrived     ||| |  ||||| ||   by tenths of intervals        rows, each for several
handed over        ^      ^   at the end of each interval   lags of event time and promise
```

The lags of event time and promise are known once an interval, from the newest row that was passed
on by then, however late it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.foresight.gates.sources import SourceTimes
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.recorded import recorded_intervals
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, START_NS

__all__ = ["times_recorded"]

MOST_ROWS = 4_000
"""Most rows of a source; of more, evenly spaced rows stand for all."""
CHANGED = 0.1
"""Least change of a lag between intervals that counts, as a share of an interval."""


def times_recorded(
    samples: Sequence[StageSample],
    arrived: Mapping[str, RecordedRate],
    *,
    speeds: Mapping[str, float | None],
    waits_s: Mapping[str, float] | None = None,
) -> tuple[dict[str, SourceTimes], int]:
    """Return {source: its times}, and the event time that counts as 0, ns.

    Args:
        samples: samples of one job, seconds ascending.
        arrived: {source: its arrivals}, from the same samples.
        speeds: {source: seconds of event time in a second of the clock; None if it is read as fast
            as possible, so the samples show its speed}.
        waits_s: {source that puts its rows in order: wait of a row for that, seconds of event
            time}.
    """
    seen: dict[str, list[StageSample]] = {name: [] for name in arrived}
    for sample in samples:
        if sample.stage in seen and sample.rows:
            seen[sample.stage].append(sample)
    every = [sample for each in seen.values() for sample in each]
    origin_ns = min((sample.last_event_ns for sample in every), default=0)
    interval_ns = every[0].interval_ns if every else 0
    start_ns = recorded_intervals(samples, arrived).start * interval_ns
    pace = _pace(every)
    times = {
        name: _times(
            each,
            arrived[name],
            start_ns=start_ns,
            origin_ns=origin_ns,
            pace=(speeds[name] or pace),
            waits_s=(waits_s or {}).get(name, 0.0),
        )
        for name, each in seen.items()
    }
    ends_s = _ends_s(samples, times)
    return {
        name: replace(each, ends_s=ends_s.get(name), period_s=arrived[name].length_s)
        for name, each in times.items()
    }, origin_ns


def _ends_s(samples: Sequence[StageSample], times: Mapping[str, SourceTimes]) -> dict[str, float]:
    """Return {source that has ended: its end, from the start of the record on}.

    It ends with its last row, or later by the intervals of silence; known to an interval.
    """
    last = {sample.stage: sample.second for sample in samples if sample.rows}
    ended: dict[str, StageSample] = {}
    for sample in samples:
        if sample.ended and sample.stage in times:
            ended.setdefault(sample.stage, sample)
    ends_s = {}
    for name, end in ended.items():
        came_s = times[name].stimulus_s
        silent = max(end.second - last.get(name, end.second) - 1, 0)
        last_s = float(came_s[-1]) if len(came_s) else 0.0
        ends_s[name] = last_s + silent * end.interval_ns / NS_PER_SECOND
    return ends_s


def _pace(every: Sequence[StageSample]) -> float:
    """Return the speed of event time by the clock; 1 if it is unknown."""
    came_ns = [sample.stimulus_ns for sample in every] or [0]
    times_ns = [sample.last_event_ns for sample in every] or [0]
    clock_ns, event_ns = max(came_ns) - min(came_ns), max(times_ns) - min(times_ns)
    return event_ns / clock_ns if clock_ns > 0 and event_ns > 0 else 1.0


def _times(
    samples: Sequence[StageSample],
    came: RecordedRate,
    *,
    start_ns: int,
    origin_ns: int,
    pace: float,
    waits_s: float,
) -> SourceTimes:
    each = max(1, -(-came.events // MOST_ROWS))
    stimulus_s = came.nth_s(np.arange(0, came.events if samples else 0, each, dtype=np.int64))
    event_s = _event_s(samples, stimulus_s, each, start_ns=start_ns, origin_ns=origin_ns, pace=pace)
    promising = [sample for sample in samples if sample.promised_ns != START_NS]
    promised_s = _seconds(sample.stimulus_ns - start_ns for sample in promising)
    kept_s = _seconds(sample.last_event_ns - sample.promised_ns for sample in promising)
    promise_s = np.full(len(stimulus_s), -np.inf)
    if promising:
        # A source without a promise at the end of its first interval first promises later.
        known = stimulus_s >= (promised_s[0] if len(promising) < len(samples) else -np.inf)
        promise_s[known] = (event_s - _between(stimulus_s, promised_s, kept_s))[known]
    return SourceTimes(
        stimulus_s=stimulus_s,
        event_s=event_s,
        at_s=stimulus_s + waits_s / pace,
        promise_s=promise_s,
        promise_stimulus_s=stimulus_s,
        pace=pace,
        stands_for=float(each),
    )


def _event_s(
    samples: Sequence[StageSample],
    stimulus_s: FloatArray,
    each: int,
    *,
    start_ns: int,
    origin_ns: int,
    pace: float,
) -> FloatArray:
    """Return the event times of rows, by their arrivals.

    They follow from the lag of the source. If the lag has changed from one interval to the next,
    rows that had waited arrived together, so event times are spread over them.
    """
    marks_s = _seconds(sample.stimulus_ns - start_ns for sample in samples)
    newest_s = _seconds(sample.last_event_ns - origin_ns for sample in samples)
    lag_s = marks_s - newest_s / pace
    event_s = (stimulus_s - _between(stimulus_s, marks_s, lag_s)) * pace
    if len(samples) > 1:
        rows = np.cumsum([sample.rows for sample in samples])
        by_row_s = np.interp(np.arange(len(stimulus_s)) * each, rows, newest_s)
        changed = np.abs(np.diff(lag_s)) > CHANGED * samples[0].interval_ns / NS_PER_SECOND
        stretch = np.searchsorted(marks_s, stimulus_s)
        within = (stretch > 0) & (stretch < len(marks_s))
        is_changed = within & changed[(stretch - 1).clip(0, len(changed) - 1)]
        event_s = np.where(is_changed, by_row_s, event_s)
    return np.maximum.accumulate(event_s)


def _seconds(times_ns: Iterable[int]) -> FloatArray:
    return np.array(list(times_ns), dtype=np.float64) / NS_PER_SECOND


def _between(at_s: FloatArray, marks_s: FloatArray, values: FloatArray) -> FloatArray:
    # Interpolates; 0 without known values.
    return np.asarray(np.interp(at_s, marks_s, values)) if len(marks_s) else np.zeros(len(at_s))
