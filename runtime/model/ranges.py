"""Ranges of whole numbers, unfolded into all their numbers, and runs of equal ones."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model.batch import Int64Array


def unfold(starts: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return, for every number in the ranges [start, start + count), its range and itself.

    ```
    starts 5 9    ranges 0 0 0 1 1
    counts 3 2    values 5 6 7 9 10
    ```
    """
    return np.arange(len(counts)).repeat(counts), unfolded(starts, counts)


def unfolded(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """Return every number in the ranges [start, start + count), as `unfold` does."""
    shifts = starts - counts.cumsum()
    shifts += counts
    values: Int64Array = shifts.repeat(counts)
    values += np.arange(len(values))
    return values


def starts_of_runs(values: Int64Array, *others: Int64Array) -> Int64Array:
    """Return where runs of equal values begin, shape (runs,); empty if there are no values.

    Args:
        values: whole numbers, shape (rows,).
        others: further columns, shape (rows,) each, whose values are equal in a run, too.
    """
    if not len(values):
        return np.empty(0, dtype=np.int64)
    if not others and values[0] == values[-1] and bool((values == values[0]).all()):
        return np.zeros(1, dtype=np.int64)
    differs = values[1:] != values[:-1]
    for other in others:
        differs |= other[1:] != other[:-1]
    return np.concatenate(([0], differs.nonzero()[0] + 1))
