"""Spans: times from one event of a type to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.ground import TypedRows
from slackwater.runtime.model import START_NS, Int64Array

_LONG_AGO_NS = START_NS // 2
"""A time before any event time; it may have a window's length subtracted."""


@dataclass(frozen=True)
class Spans:
    """Spans of all types, ordered by type and time. All arrays have shape (spans,).

    Attributes:
        types: the type of each.
        newest_ns: the newest event time of the type during the span.
        known_ns: the same, rounded down to a tick: e_l.gts as histograms know it.
        begin_ns, end_ns: the span has the ticks in [begin, end); the begin is on a tick.
        is_first: whether the span is the first of its type, which began earlier.
    """

    types: Int64Array
    newest_ns: Int64Array
    known_ns: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array
    is_first: Int64Array


def spans_of(
    rows: TypedRows,
    newest_ns: Int64Array,
    newest_of: Int64Array,
    *,
    tick_ns: int,
    now_ns: int,
    end_ns: int,
) -> Spans:
    """Return the spans of all types from `now_ns` to `end_ns`.

    Args:
        rows: the rows that come in that time.
        newest_ns: shape (rows,), the newest event time of each row's type, the row included.
        newest_of: shape (types,), the newest event time of each type before the rows; START_NS if
            none has come.
        tick_ns: the resolution of the clock.
        now_ns: a time, on a tick or not.
        end_ns: a later time, on a tick or not.
    """
    count = len(newest_of)
    now_ns = -(-now_ns // tick_ns) * tick_ns
    types = np.concatenate([np.arange(count), rows.types])
    newest = np.maximum(np.concatenate([newest_of, newest_ns]), _LONG_AGO_NS)
    begin = np.concatenate([np.full(count, now_ns), np.maximum(rows.tick_ns, now_ns)])
    if count > 1:
        order = np.argsort(types, kind="stable")
        types, newest, begin = types[order], newest[order], begin[order]
    same = np.concatenate([types[1:] == types[:-1], [False]])
    end = np.where(same, np.concatenate([begin[1:], [end_ns]]), end_ns)
    is_first = np.concatenate([[True], ~same[:-1]])
    return Spans(types, newest, newest // tick_ns * tick_ns, begin, end, is_first)


def spans_at(spans: Spans, types: Int64Array, at_ns: Int64Array) -> Int64Array:
    """Return the span of a type that contains each tick.

    Args:
        spans: spans of all types, from number 0 on, each type with at least one.
        types: numbers of types, shape (n,).
        at_ns: shape (n,), no tick before the first span of its type.

    Returns:
        Shape (n,), indices of spans.
    """
    if not spans.types[-1]:
        only: Int64Array = np.searchsorted(spans.begin_ns, at_ns, side="right") - 1
        return only
    begins_ns, rank = np.unique(spans.begin_ns, return_inverse=True)
    base = len(begins_ns) + 1  # one line of numbers for all types, in order
    wanted = types * base + np.searchsorted(begins_ns, at_ns, side="right")
    indices: Int64Array = np.searchsorted(spans.types * base + rank, wanted) - 1
    return indices
