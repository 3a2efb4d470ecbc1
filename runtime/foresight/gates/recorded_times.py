"""When the rows of a source came in an earlier job, what time they were of, and what it promised.

```
arrived     ||| |  ||||| ||   by tenths of intervals        rows, each one of so many
handed over        ^      ^   at the end of each interval   event time, promise: how far behind
```

How far event time and promise are behind is known once an interval, of the newest row that was
handed over by then, however late that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.foresight.gates.sources import SourceTimes
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.recorded import first_interval
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, START_NS

__all__ = ["times_recorded"]

MOST_ROWS = 4_000
"""Of a source: of more, every so many stand for all."""
CHANGED = 0.1
"""By how much of an interval a lag has to change from one to the next to have changed."""


def times_recorded(
    samples: Sequence[StageSample],
    arrived: Mapping[str, RecordedRate],
    *,
    speeds: Mapping[str, float | None],
    waits_s: Mapping[str, float] | None = None,
) -> tuple[dict[str, SourceTimes], int]:
    """Return what each source's rows were like, and the event time that counts as 0, ns.

    Args:
        samples: of one job, seconds ascending.
        arrived: {source: what came there}, of the same samples.
        speeds: {source: how many seconds of event time a second of the clock is; None: it is read
            as fast as can be, so that is taken from what was seen}.
        waits_s: {source that puts its rows in order: how long they wait for that, seconds of event
            time}.
    """
    seen: dict[str, list[StageSample]] = {name: [] for name in arrived}
    for one in samples:
        if one.stage in seen and one.rows:
            seen[one.stage].append(one)
    every = [one for each in seen.values() for one in each]
    origin_ns = min((one.last_event_ns for one in every), default=0)
    interval_ns = every[0].interval_ns if every else 0
    start_ns = first_interval(samples, arrived) * interval_ns
    pace = _pace(every)
    found = {
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
    ends_s = _ends_s(samples, found)
    return {
        name: replace(one, ends_s=ends_s.get(name), period_s=arrived[name].length_s)
        for name, one in found.items()
    }, origin_ns


def _ends_s(samples: Sequence[StageSample], found: Mapping[str, SourceTimes]) -> dict[str, float]:
    """Return {source that has ended: when, from the start of the record on}.

    With its last row, or as many intervals later as it was silent before; known to an interval.
    """
    last = {one.stage: one.second for one in samples if one.rows}
    ended: dict[str, StageSample] = {}
    for one in samples:
        if one.ended and one.stage in found:
            ended.setdefault(one.stage, one)
    ends_s = {}
    for name, one in ended.items():
        came_s = found[name].stimulus_s
        silent = max(one.second - last.get(name, one.second) - 1, 0)
        last_s = float(came_s[-1]) if len(came_s) else 0.0
        ends_s[name] = last_s + silent * one.interval_ns / NS_PER_SECOND
    return ends_s


def _pace(every: Sequence[StageSample]) -> float:
    """Return how much faster than the clock event time went; 1 where that is not seen."""
    came_ns = [one.stimulus_ns for one in every] or [0]
    times_ns = [one.last_event_ns for one in every] or [0]
    clock_ns, event_ns = max(came_ns) - min(came_ns), max(times_ns) - min(times_ns)
    return event_ns / clock_ns if clock_ns > 0 and event_ns > 0 else 1.0


def _times(
    seen: Sequence[StageSample],
    came: RecordedRate,
    *,
    start_ns: int,
    origin_ns: int,
    pace: float,
    waits_s: float,
) -> SourceTimes:
    each = max(1, -(-came.events // MOST_ROWS))
    stimulus_s = came.nth_s(np.arange(0, came.events if seen else 0, each, dtype=np.int64))
    event_s = _event_s(seen, stimulus_s, each, start_ns=start_ns, origin_ns=origin_ns, pace=pace)
    told = [one for one in seen if one.promised_ns != START_NS]
    told_s = _seconds(one.stimulus_ns - start_ns for one in told)
    kept_s = _seconds(one.last_event_ns - one.promised_ns for one in told)
    promise_s = np.full(len(stimulus_s), -np.inf)
    if told:
        # Whoever promises nothing yet at the end of its first interval is taken to do so then.
        known = stimulus_s >= (told_s[0] if len(told) < len(seen) else -np.inf)
        promise_s[known] = (event_s - _between(stimulus_s, told_s, kept_s))[known]
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
    seen: Sequence[StageSample],
    stimulus_s: FloatArray,
    each: int,
    *,
    start_ns: int,
    origin_ns: int,
    pace: float,
) -> FloatArray:
    """Return of what time rows are that came then, each one of so many.

    By how far the source was behind; where that has changed from one interval to the next, rows
    that had waited came together, so their event times are spread over them.
    """
    marks_s = _seconds(one.stimulus_ns - start_ns for one in seen)
    newest_s = _seconds(one.last_event_ns - origin_ns for one in seen)
    lag_s = marks_s - newest_s / pace
    event_s = (stimulus_s - _between(stimulus_s, marks_s, lag_s)) * pace
    if len(seen) > 1:
        rows = np.cumsum([one.rows for one in seen])
        by_row_s = np.interp(np.arange(len(stimulus_s)) * each, rows, newest_s)
        changed = np.abs(np.diff(lag_s)) > CHANGED * seen[0].interval_ns / NS_PER_SECOND
        stretch = np.searchsorted(marks_s, stimulus_s)
        within = (stretch > 0) & (stretch < len(marks_s))
        is_changed = within & changed[(stretch - 1).clip(0, len(changed) - 1)]
        event_s = np.where(is_changed, by_row_s, event_s)
    return np.maximum.accumulate(event_s)


def _seconds(times_ns: Iterable[int]) -> FloatArray:
    return np.array(list(times_ns), dtype=np.float64) / NS_PER_SECOND


def _between(at_s: FloatArray, marks_s: FloatArray, values: FloatArray) -> FloatArray:
    """Return values at these times that are known at some, evenly in between; none: 0."""
    return np.asarray(np.interp(at_s, marks_s, values)) if len(marks_s) else np.zeros(len(at_s))
