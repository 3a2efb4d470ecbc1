"""Tracking of types: the newest event time, g and d after each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.fitting import NO_GAP
from slackwater.runtime.closing.ground import TypedRows
from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs


@dataclass(frozen=True)
class Tracked:
    """Changes that rows make to their types. All arrays have shape (rows,).

    Attributes:
        newest_ns: the newest event time of its type, the row included.
        gap_ns: g, in whole ticks; NO_GAP for the first of a type.
        delay_ns: d, in whole ticks.
    """

    newest_ns: Int64Array
    gap_ns: Int64Array
    delay_ns: Int64Array


def tracked_of(rows: TypedRows, newest_of: Int64Array, tick_ns: int) -> Tracked:
    """Return the changes that rows make to their types.

    Args:
        rows: next rows of the input.
        newest_of: shape (types,), the newest event time of each type before them; further types
            have none.
        tick_ns: the resolution of g and d.
    """
    types = max(len(newest_of), int(rows.types.max(initial=-1)) + 1)
    known = np.full(types, START_NS)
    known[: len(newest_of)] = newest_of
    order = np.argsort(rows.types, kind="stable") if types > 1 else slice(None)
    mine, newest = rows.types[order], rows.event_time_ns[order].copy()
    starts = starts_of_runs(mine)
    newest[starts] = np.maximum(newest[starts], known[mine[starts]])
    steps_back = newest[1:] < newest[:-1]
    if len(starts) == 1 or bool((steps_back & (mine[1:] == mine[:-1])).any()):
        for first, last in zip(starts, [*starts[1:], len(mine)], strict=True):
            newest[first:last] = np.maximum.accumulate(newest[first:last])
    before = np.concatenate([[0], newest[:-1]])[: len(newest)]
    before[starts] = known[mine[starts]]
    gaps = newest // tick_ns * tick_ns - before // tick_ns * tick_ns
    gaps[before == START_NS] = NO_GAP
    delays = rows.tick_ns - rows.event_time_ns // tick_ns * tick_ns
    if types == 1:
        return Tracked(newest, gaps, delays)
    back = np.empty(len(mine), dtype=np.int64)
    back[order] = np.arange(len(mine))
    return Tracked(newest[back], gaps[back], delays)


def latest_of(newest_of: Int64Array, types: Int64Array, newest_ns: Int64Array) -> Int64Array:
    """Return the newest event time of each type after these rows.

    Args:
        newest_of: shape (types,), before them.
        types: numbers of types, shape (rows,).
        newest_ns: shape (rows,), the newest event time of each row's type, the row included.
    """
    if not len(types):
        return newest_of
    after = newest_of.copy()
    after[types] = newest_ns  # a type's last row is written last, and is its newest
    return after
