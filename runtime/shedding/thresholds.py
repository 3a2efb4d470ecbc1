"""Thresholds cut utilities: how many events have each, and which are dropped.

```
utility            0     5    10    15    30    60    70
CDT              1.2   1.4   2.3   2.8   3.7   4.2   5.0      events of a window, so far up
x = 2                        ^ the first with 2 or more: the threshold
at least           all up to 10: 2.3 are dropped
exact              all below 10, 1.4; of those at 10, 0.9, each with the chance 0.6 / 0.9
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from slackwater.runtime.shedding.draws import FloatArray

Utilities = npt.NDArray[np.uint8]
"""0 to 100 each."""

MOST_UTILITY = 100
LEVELS = MOST_UTILITY + 1
_ROUNDING = 1e-9
"""Sums of shares are off by less: 0.8 + 0.2 + 0.2 is no more than 1.2."""

Cutting = Literal["exact", "at least"]


def cdt(utilities: Utilities, expected: FloatArray) -> FloatArray:
    """Return how many events of a window have each utility or less: CDT, shape (101,).

    Args:
        utilities: shape (types, cells), UT.
        expected: shape (types, cells), the events of a window that are expected in each: the
            position shares S(T, P) where a cell is a position.

    Source: [espice] Eq. 1, Algorithm 1.
    """
    counted = np.bincount(utilities.ravel(), weights=expected.ravel(), minlength=LEVELS)
    return np.cumsum(counted)


def cdt_of_partitions(utilities: Utilities, expected: FloatArray, partitions: int) -> FloatArray:
    """Return a CDT for each partition of a window, shape (partitions, 101).

    A cell in two partitions counts in each with the part that lies in it.

    Source: [espice] §3.4, *dropping interval*.
    """
    if partitions == 1:
        return cdt(utilities, expected)[np.newaxis]
    by_cell = np.stack(
        [_counted(utilities[:, n], expected[:, n]) for n in range(expected.shape[1])]
    )
    counted = _overlaps(expected.shape[1], partitions) @ by_cell
    return np.cumsum(counted, axis=1)


def _counted(utilities: Utilities, expected: FloatArray) -> FloatArray:
    return np.bincount(utilities, weights=expected, minlength=LEVELS).astype(np.float64)


def _overlaps(cells: int, partitions: int) -> FloatArray:
    """Return the share of each cell that lies in each partition, shape (partitions, cells)."""
    cell, part = np.arange(cells), np.arange(partitions)[:, np.newaxis]
    # In units of 1 / (cells · partitions), so that they are whole.
    begins = np.maximum(cell * partitions, part * cells)
    ends = np.minimum((cell + 1) * partitions, (part + 1) * cells)
    shares: FloatArray = np.maximum(ends - begins, 0) / partitions
    return shares


def thresholds(cumulated: FloatArray, drop: float) -> npt.NDArray[np.int64]:
    """Return the least utility up to which x events come, for each partition.

    Args:
        cumulated: shape (partitions, 101), their CDTs.
        drop: x, events to be dropped in each partition.

    Returns:
        shape (partitions,): −1 if nothing is to be dropped; 100 where there are too few events.

    Source: [espice] Algorithm 2, lines 1–7.
    """
    if drop <= 0:
        return np.full(len(cumulated), -1)
    reaches = cumulated >= drop - _ROUNDING
    return np.where(reaches.any(axis=1), reaches.argmax(axis=1), MOST_UTILITY)


@dataclass(frozen=True)
class Cut:
    """A cut has the chance of each utility in each partition to be dropped.

    Attributes:
        chances: shape (partitions, 101): that an event of this utility is dropped; falls with
            the utility.
        wanted: x, events of each partition.
        expected: events that it drops in a partition, in the mean of partitions.
    """

    chances: FloatArray
    wanted: float
    expected: float


def cut_of(cumulated: FloatArray, drop: float, *, how: Cutting) -> Cut:
    """Return the cut that drops x events of each partition.

    Args:
        cumulated: shape (partitions, 101), their CDTs.
        drop: x, amount to be dropped.
        how: rule. "at least": all up to the threshold. "exact": of those at the threshold each with
            the chance that makes it x in the mean.

    Source: [espice] Algorithm 2; "exact" is ours.
    """
    at = thresholds(cumulated, drop)[:, np.newaxis]
    levels = np.arange(LEVELS)
    chances = (levels <= at).astype(np.float64)
    counted = np.diff(cumulated, axis=1, prepend=0.0)
    if how == "exact" and drop > 0:
        here = np.take_along_axis(counted, at, axis=1)
        below = np.take_along_axis(cumulated, at, axis=1) - here
        # If no events are expected at the threshold there are too few: all of them go.
        share = np.divide(drop - below, here, out=np.ones_like(here), where=here > _ROUNDING)
        np.put_along_axis(chances, at, np.clip(share, 0.0, 1.0), axis=1)
    return Cut(chances, drop, float((chances * counted).sum(axis=1).mean()))
