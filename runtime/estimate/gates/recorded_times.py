"""When the rows of a source came in an earlier job, what time they were of, and what it promised.

A sample says it once an interval: how far event time and promise had come by its end, and how late
the source was in handing rows over. So lags are known as they were from one interval to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from runtime.estimate.gates.sources import SourceTimes
from runtime.estimate.query_graph import FloatArray
from runtime.measure.samples import StageSample
from runtime.model import NS_PER_SECOND, START_NS

__all__ = ["times_recorded"]


def times_recorded(
    samples: Iterable[StageSample],
    sources: Mapping[str, float | None],
    *,
    sorts: Sequence[str] = (),
) -> tuple[dict[str, SourceTimes], int]:
    """Return what each source's rows were like, and the event time that counts as 0, ns.

    Args:
        samples: of one job, seconds ascending.
        sources: {source: how many seconds of event time a second of the clock is; None: it is read
            as fast as can be, so that is taken from what was seen}.
        sorts: the sources that put their rows in order, so that they wait there.
    """
    seen: dict[str, list[StageSample]] = {name: [] for name in sources}
    for one in samples:
        if one.stage in seen and one.rows:
            seen[one.stage].append(one)
    every = [one for each in seen.values() for one in each]
    origin_ns = min((one.last_event_ns for one in every), default=0)
    first = min((one.second for one in every), default=0)
    pace = _pace(every)
    found = {
        name: _times(
            each,
            first=first,
            origin_ns=origin_ns,
            pace=(sources[name] or pace),
            waits=name in sorts,
        )
        for name, each in seen.items()
    }
    return found, origin_ns


def _pace(every: Sequence[StageSample]) -> float:
    """Return how much faster than the clock event time went; 1 where that is not seen."""
    if not every:
        return 1.0
    seconds = [one.second for one in every]
    clock_ns = (max(seconds) - min(seconds)) * every[0].interval_ns
    times_ns = [one.last_event_ns for one in every]
    event_ns = max(times_ns) - min(times_ns)
    return event_ns / clock_ns if clock_ns > 0 and event_ns > 0 else 1.0


def _times(
    seen: Sequence[StageSample], *, first: int, origin_ns: int, pace: float, waits: bool
) -> SourceTimes:
    def each(values: Iterable[int]) -> FloatArray:
        return np.array(list(values), dtype=np.float64) / NS_PER_SECOND

    ends_s = each((one.second - first + 1) * one.interval_ns for one in seen)
    # A row that is handed over at the end of an interval came so much before.
    came_s = np.maximum.accumulate(ends_s - each(one.latency_ns for one in seen))
    promise_s = each(max(one.promised_ns, -(2**62)) - origin_ns for one in seen)
    promise_s[[one.promised_ns == START_NS for one in seen]] = -np.inf
    span_s = float(np.ptp(came_s)) if len(came_s) else 0.0
    whole_s = span_s + (seen[0].interval_ns / NS_PER_SECOND if seen else 1.0)
    rows = sum(one.rows for one in seen)
    return SourceTimes(
        stimulus_s=came_s,
        event_s=each(one.last_event_ns - origin_ns for one in seen),
        at_s=ends_s if waits else came_s,
        promise_s=promise_s,
        promise_stimulus_s=came_s,
        pace=pace,
        # So that the rate of these rows is that of all.
        stands_for=rows / len(seen) * span_s / whole_s if rows and span_s else 1.0,
    )
