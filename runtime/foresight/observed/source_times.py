"""Times of a source's first rows: arrivals, event times, promises.

No stage is run: the input is opened, read further than the sample goes, and closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.model import END_NS, NS_PER_SECOND, START_NS, Int64Array, Message
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sources.machine import SourceMachine
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["source_times"]

LOOKS = 100
"""Of so many rows for one of the sample: reading costs little beside what users' functions do."""
LOOK_S = 1.0
"""But for no longer than that at a source: one that is slow is looked at as far as it got."""
TAKES = 4_000
"""Rows of a source that are kept, at least, where there are as many: of twice as many every other
goes, and each stands for twice as many."""
EARLY = 0.1
"""Of the time that was looked at: a source that ended so much before the last row of any other is
taken to end so in the run; others, as long as they, may be a part of what will come."""
FAR_NS = 2**62
"""A moment by which every row is due."""


def source_times(
    stages: Sequence[Stage], rows: int, *, now_s: Callable[[], float]
) -> tuple[dict[str, SourceTimes], int]:
    """Return the times of each source's first rows, and the event time of 0, ns.

    A source that is to be read as fast as can be is looked at as it came: by its arrivals, or, it
    having none, by its event times.

    Args:
        stages: of the plan; sources can be opened again.
        rows: how many of each to read at least, if there are as many.
        now_s: a steady clock.
    """
    read = {
        stage.name: _read(stage, rows, now_s)
        for stage in stages
        if isinstance(stage.step, SourceStep)
    }
    origin_ns = min((int(one[1].min()) for one, *_ in read.values() if one.size), default=0)
    last_ns = {name: int(one[0].max(initial=0)) for name, (one, *_) in read.items()}
    early_ns = (1 - EARLY) * max(last_ns.values(), default=0)
    found = {}
    for name, (times, pace, each, ended) in read.items():
        stimulus_ns, event_ns, at_ns, promise_ns, told_ns = times
        promised = (promise_ns - origin_ns) / NS_PER_SECOND
        promised[promise_ns == START_NS] = -np.inf
        found[name] = SourceTimes(
            stimulus_s=stimulus_ns / NS_PER_SECOND,
            event_s=(event_ns - origin_ns) / NS_PER_SECOND,
            at_s=at_ns / NS_PER_SECOND,
            promise_s=promised,
            promise_stimulus_s=told_ns / NS_PER_SECOND,
            pace=pace,
            ends_s=last_ns[name] / NS_PER_SECOND if ended and last_ns[name] < early_ns else None,
            stands_for=each,
        )
    return found, origin_ns


def _read(
    stage: Stage, rows: int, now_s: Callable[[], float]
) -> tuple[Int64Array, float, int, bool]:
    """Return rows' times, the pace of event time, and how many each stands for.

    Shape (5, rows): stimulus, event time, when handed over, promise, its stimulus; ns. And whether
    these are all that the source has.
    """
    assert isinstance(stage.step, SourceStep), "others are fed by stages"
    spec: SourceSpec = stage.step.source
    pace = 1.0 if spec.speed is None else spec.speed
    holds = spec.sequence is not None
    machine = SourceMachine(
        stage.name,
        replace(spec, speed=pace),
        stage.step.schema,
        writer_id=0,
        start_ns=0,
        needed=frozenset(),
    )
    most, until_s = rows * LOOKS, now_s() + LOOK_S
    each = 1
    taken: list[Int64Array] = []
    now_ns = START_NS
    ended = False
    try:
        while machine.rows_in < most:
            if machine.is_unread:
                machine.read(FAR_NS)
            if (due_ns := machine.due_ns) is None:
                ended = True
                break
            if machine.rows_in >= rows and now_s() > until_s:
                break
            message = machine.take(FAR_NS, max_rows=min(each, most - machine.rows_in))
            if message is None or message.promise_ns == END_NS:
                ended = message is not None
                break
            if message.batch is not None:
                if holds:  # rows leave one after the other: one may wait for another
                    came_ns = int(message.batch.stimulus_time_ns.max())
                    now_ns = max(now_ns, due_ns, came_ns)
                taken.append(_times(message, now_ns, sorts=spec.reorder.sorts))
                if len(taken) == 2 * TAKES:
                    taken, each = taken[1::2], 2 * each
    except SlackwaterError:
        if machine.rows_in < rows:
            raise  # else the run will say so, as it gets there
    finally:
        machine.close()
    found = np.stack(taken, axis=1) if taken else np.zeros((5, 0), np.int64)
    return (_before_the_end(found) if spec.reorder.sorts else found), pace, each, ended


def _before_the_end(times: Int64Array) -> Int64Array:
    """Return rows without those that the end of the input released."""
    at_end = times[3] > times[1]
    first = int(at_end.argmax())
    return times[:, :first] if at_end.any() and 2 * first >= times.shape[1] else times


def _times(message: Message, now_ns: int, *, sorts: bool) -> Int64Array:
    """Return the times of a message's last row, shape (5,)."""
    batch, told_ns = message.batch, message.promise_stimulus_ns
    assert batch is not None, "it has rows"
    came_ns = batch.stimulus_time_ns.item(-1)
    # What is put in order goes as the promise lets it, all else as it comes.
    at_ns = max(came_ns, told_ns, now_ns) if sorts else max(came_ns, now_ns)
    return np.array([came_ns, batch.event_time_ns.item(-1), at_ns, message.promise_ns, told_ns])
