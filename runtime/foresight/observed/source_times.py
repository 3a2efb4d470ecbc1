"""Times of a source's first rows: arrivals, event times, promises.

No stage runs: the input is opened, read further than the sample, and closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.observed.some_rows import single_order
from slackwater.runtime.model import NS_PER_SECOND, START_NS, Batch, Int64Array, Progress
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["source_times"]

LOOKS = 100
"""Rows looked at for each row of the sample: reading costs little beside users' functions."""
LOOK_S = 1.0
"""Longest look at a source: of a slow one fewer rows are looked at."""
TAKES = 4_000
"""Least rows of a source that are kept, if it has them: of twice as many every second is dropped,
and each stands for twice as many."""
EARLY = 0.1
"""Share of the time looked at: a source that ends at least that much before the last row of all
sources also ends in the run; a longer one may have more rows then."""
FAR_NS = 2**62
"""A moment by which every row is due."""


def source_times(
    stages: Sequence[Stage], rows: int, *, now_s: Callable[[], float]
) -> tuple[dict[str, SourceTimes], int]:
    """Return the times of each source's first rows, and the event time of 0, ns.

    A source without a speed is timed by its arrivals, or by its event times if it has no arrivals.

    Args:
        stages: stages of the plan; its sources can be opened again.
        rows: least number of rows to read of each, if it has them.
        now_s: time of a steady clock.
    """
    read = {
        stage.name: _read(stage, rows, now_s)
        for stage in stages
        if isinstance(stage.step, SourceStep)
    }
    origin_ns = min((int(times[1].min()) for times, *_ in read.values() if times.size), default=0)
    last_ns = {name: int(times[0].max(initial=0)) for name, (times, *_) in read.items()}
    early_ns = (1 - EARLY) * max(last_ns.values(), default=0)
    by_source = {}
    for name, (times, pace, each, ended) in read.items():
        stimulus_ns, event_ns, at_ns, promise_ns, promised_by_ns = times
        promised = (promise_ns - origin_ns) / NS_PER_SECOND
        promised[promise_ns == START_NS] = -np.inf
        by_source[name] = SourceTimes(
            stimulus_s=stimulus_ns / NS_PER_SECOND,
            event_s=(event_ns - origin_ns) / NS_PER_SECOND,
            at_s=at_ns / NS_PER_SECOND,
            promise_s=promised,
            promise_stimulus_s=promised_by_ns / NS_PER_SECOND,
            pace=pace,
            ends_s=last_ns[name] / NS_PER_SECOND if ended and last_ns[name] < early_ns else None,
            stands_for=each,
        )
    return by_source, origin_ns


def _read(
    stage: Stage, rows: int, now_s: Callable[[], float]
) -> tuple[Int64Array, float, int, bool]:
    """Return times, the pace of event time, rows for each, and the end.

    The times have shape (5, rows): stimulus, event time, time of leaving, promise, its stimulus;
    ns. The last value says whether the source has no more rows.
    """
    assert isinstance(stage.step, SourceStep), "only sources are read"
    spec: SourceSpec = stage.step.source
    pace = 1.0 if spec.speed is None else spec.speed
    holds = spec.sequence is not None
    source = SourceNode(
        stage.name,
        replace(spec, speed=pace, input=single_order(stage.name, spec.input)),
        stage.step.schema,
        writer_id=0,
        start_ns=0,
        needed=frozenset(),
        beginning_ns=None if stage.beginning is None else stage.beginning.arrival_ns,
    )
    most, until_s = rows * LOOKS, now_s() + LOOK_S
    each = 1
    parts: list[Int64Array] = []
    now_ns = START_NS
    ended = False
    try:
        while source.rows_in < most:
            has_rows = not source.is_unread or source.read(FAR_NS)
            goes_on = not has_rows and source.leaves_without_rows(FAR_NS)
            source.take_diverted(FAR_NS)
            if goes_on:  # rows that cannot be used
                if now_s() > until_s:
                    break
                continue
            if (due_ns := source.due_ns) is None:
                ended = True
                break
            if source.rows_in >= rows and now_s() > until_s:
                break
            handed = source.work(FAR_NS, max_rows=min(each, most - source.rows_in))
            if handed.progress is None or handed.progress.is_end:
                ended = handed.progress is not None
                break
            if handed.rows is not None:
                if holds:  # rows leave one after the other: one may wait for another
                    came_ns = int(handed.rows.stimulus_time_ns.max())
                    now_ns = max(now_ns, due_ns, came_ns)
                parts.append(_times(handed.rows, handed.progress, now_ns, sorts=spec.reorder.sorts))
                if len(parts) == 2 * TAKES:
                    parts, each = parts[1::2], 2 * each
    except SlackwaterError:
        if source.rows_in < rows:
            raise  # else the run raises it when it reaches the row
    finally:
        source.close()
    times = np.stack(parts, axis=1) if parts else np.zeros((5, 0), np.int64)
    ended &= not spec.traits.has_partitions  # others follow
    return (_before_the_end(times) if spec.reorder.sorts else times), pace, each, ended


def _before_the_end(times: Int64Array) -> Int64Array:
    """Return rows without those that the end of the input released."""
    at_end = times[3] > times[1]
    first = int(at_end.argmax())
    return times[:, :first] if at_end.any() and 2 * first >= times.shape[1] else times


def _times(rows: Batch, progress: Progress, now_ns: int, *, sorts: bool) -> Int64Array:
    """Return the times of the last row, shape (5,)."""
    promised_by_ns = progress.stimulus_ns
    came_ns = rows.stimulus_time_ns.item(-1)
    # Rows that are put in order leave with the promise, all others on arrival.
    at_ns = max(came_ns, promised_by_ns, now_ns) if sorts else max(came_ns, now_ns)
    event_ns = rows.event_time_ns.item(-1)
    return np.array([came_ns, event_ns, at_ns, progress.promise_ns, promised_by_ns])
