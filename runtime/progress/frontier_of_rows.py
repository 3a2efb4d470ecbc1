"""The frontier of all rows of a block, by the rule of `frontier.py`.

```
step       0    1    2    3    4       a value holds from its step to the next one of its writer,
a          1              21           or until its writer is silent
b               12   ·    ·    ·       (silent from step 3 on)
frontier   1    1    1    21   21
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, BoolArray, Int64Array

__all__ = ["WriterEntries", "frontier_of_rows"]


@dataclass(frozen=True, slots=True)
class WriterEntries:
    """Entries of some writers, each of shape (entries,), in any order.

    Attributes:
        writer: numbers from 0 on; each writer has an entry.
        step: step of each entry, >= 0; entries of one writer and step count in their order here.
        value: how far the writer is, in nanoseconds.
        speaks_until: the step from which on its writer is silent, unless it speaks again.
        is_value: shape (entries,), whether an entry has a value, or keeps that before; None if all
            have.
        is_spoken: shape (entries,), whether an entry tells how long its writer speaks; None if all
            do.
    """

    writer: Int64Array
    step: Int64Array
    value: Int64Array
    speaks_until: Int64Array
    is_value: BoolArray | None = None
    is_spoken: BoolArray | None = None


def frontier_of_rows(
    entries: WriterEntries, *, steps: int, unknown_until: int = 0
) -> tuple[Int64Array, Int64Array]:
    """Return the frontier at each step, and the last value of each writer.

    Args:
        entries: entries of the writers.
        steps: number of all steps.
        unknown_until: step up to which a writer may be there that has not been heard.

    Returns:
        Shape (steps,), END_NS where no writer speaks; and shape (writers,), by number.
    """
    writers = int(entries.writer.max(initial=0)) + 1
    if np.count_nonzero(entries.step[1:] < entries.step[:-1]):
        order = entries.step.argsort(kind="stable")
        order = order[by_writer(entries.writer[order], writers)]
    else:
        order = by_writer(entries.writer, writers)
    writer, step = entries.writer[order], entries.step[order]
    value, until = entries.value[order], entries.speaks_until[order]
    if entries.is_value is not None:
        value = value[_latest(entries.is_value[order])]
    if entries.is_spoken is not None:
        until = until[_latest(entries.is_spoken[order])]
    is_last = np.append(writer[1:] != writer[:-1], True)
    next_step = np.where(is_last, steps, np.append(step[1:], steps))
    stop = np.maximum(np.minimum(next_step, until), step)
    least = least_over(
        np.append(step, 0), np.append(stop, unknown_until), np.append(value, START_NS), rows=steps
    )
    return least, value[is_last]


def by_writer(writers: Int64Array, count: int) -> Int64Array:
    """Return the rows by writer, and in their order within each: positions, shape (rows,).

    Args:
        writers: shape (rows,), numbers from 0 to count - 1.
        count: number of all writers.
    """
    # 16-bit keys sort by radix, in linear time.
    return np.argsort(writers.astype(np.uint16) if count <= 2**16 else writers, kind="stable")


def _latest(is_given: BoolArray) -> Int64Array:
    """Return for each position the latest one up to it that is told."""
    latest: Int64Array = np.maximum.accumulate(np.where(is_given, np.arange(len(is_given)), 0))
    return latest


def least_over(
    starts: Int64Array, stops: Int64Array, values: Int64Array, *, rows: int
) -> Int64Array:
    """Return the least value over the intervals that each position lies in.

    Args:
        starts: shape (intervals,), the first position of each.
        stops: shape (intervals,), the one after its last; starts <= stops <= rows.
        values: value of each, shape (intervals,).
        rows: number of all positions.

    Returns:
        Shape (rows,); END_NS where a position is in no interval.
    """
    # A sparse table backwards: an interval is two overlapping ones whose length is a power of
    # two; then each level is handed down to the next, half by half.
    some = stops > starts
    starts, stops, values = starts[some], stops[some], values[some]
    level = np.frexp(stops - starts)[1].astype(np.int64) - 1
    levels = int(level.max(initial=0)) + 1
    table = np.full((levels, rows), END_NS, dtype=np.int64)
    flat = table.reshape(-1)
    np.minimum.at(flat, level * rows + starts, values)
    np.minimum.at(flat, level * rows + stops - (1 << level), values)
    for upper in range(levels - 1, 0, -1):
        half = 1 << (upper - 1)
        np.minimum(table[upper - 1], table[upper], out=table[upper - 1])
        lower = table[upper - 1, half:]
        np.minimum(lower, table[upper, : rows - half], out=lower)
    least: Int64Array = table[0]
    return least
