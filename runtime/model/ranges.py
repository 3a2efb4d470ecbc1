"""Ranges of whole numbers, unfolded into all their numbers."""

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
