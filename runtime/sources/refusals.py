"""Errors of a source's order: a row is too old, or too many are ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.model import format_ns
from slackwater.runtime.sources.early import MOST_ROWS, EarlyRows
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["all_are_early", "older_than_promised"]

_FAR_NS = 3_600 * 10**9


def older_than_promised(
    source: str, *, row: int, writer: Any, partition: str | None, got_ns: int, floor_ns: int
) -> str:
    """Return the error text of a row that is older than promised.

    Args:
        source: name of the source.
        row: the row's place in the input, or in its partition, from 0.
        writer: its name; None if there is one writer.
        partition: name of its partition; None if the input has none.
        got_ns: event time of the row.
        floor_ns: nothing older had been promised.
    """
    late_ns = floor_ns - got_ns
    of_writer = "" if writer in (None, partition) else f" of writer {writer!r}"
    of_partition = "" if partition is None else f" of partition {partition!r}"
    text = (
        f"source {source!r}: row {row} (counted from 0){of_writer}{of_partition} "
        f"has event time {_utc(got_ns)} (event_time_ns={got_ns}), and nothing older than "
        f"{_utc(floor_ns)} ({floor_ns}) had been promised: it is "
        f"{format_ns(late_ns)} too old. "
    )
    if row == 0 and writer is not None and writer == partition:  # no row before it promised
        return (
            f"{text}It is the first of its partition: let first_ns= of that say its time, or omit "
            "first_ns=; or drop and count such rows with out_of_order='late'"
        )
    text += (
        "Sort the input; or let the source do it with out_of_order='sort' and a disorder of at "
        "least that; or drop and count such rows with out_of_order='late'"
    )
    if late_ns < _FAR_NS or partition is not None:  # partitions refuse ahead=
        return text
    return (
        f"{text}. If a row before it is to blame, by a clock that is ahead: ahead='…' holds such "
        "rows back"
    )


def all_are_early(source: str, spec: SourceSpec, early: EarlyRows) -> str:
    """Return the error text for too many rows ahead of their arrivals."""
    assert spec.ahead_ns is not None, "else nothing is held"
    arrival = "all others" if spec.arrival is None else repr(spec.arrival)
    return (
        f"source {source!r}: {early.rows:,} rows are held back, for their "
        f"{spec.time_column!r} is more than {format_ns(spec.ahead_ns)} ahead of "
        f"{arrival}, that of the nearest by {format_ns(early.first_by_ns)}; at most "
        f"{MOST_ROWS:,} are held. So many do not come of a clock ahead: look at the time zone "
        "and the unit of both columns; or give an ahead= of at least that"
    )


def _utc(event_time_ns: int) -> str:
    return f"{np.datetime64(event_time_ns, 'ns')}Z"
