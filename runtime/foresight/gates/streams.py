"""Rows on their way to a gate, a few for all, and promises.

```
event time   ─▶ order in a gate              stimulus ─▶ start of latency
handed on    ─▶ arrival at the next stage    count    ─▶ number of rows it stands for
```

Times are seconds: event times from the earliest of the flow's, all others from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = [
    "Promises",
    "Rows",
    "Series",
    "counted",
    "earliest_s",
    "gathered",
    "longest_s",
    "thinned",
    "whole",
]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, each of which stands for several.

    Attributes:
        event_s: shape (k,), event times.
        stimulus_s: shape (k,), stimulus times.
        left_s: shape (k,), when they left the last gate, or their source.
        at_s: shape (k,), when they leave the stage; infinite: after all known times.
        count: shape (k,), number of rows that each stands for, >= 0.
    """

    event_s: FloatArray
    stimulus_s: FloatArray
    left_s: FloatArray
    at_s: FloatArray
    count: FloatArray

    def take(self, places: npt.NDArray[Any]) -> Rows:
        """Return some rows, by places or a mask."""
        return Rows(
            self.event_s[places],
            self.stimulus_s[places],
            self.left_s[places],
            self.at_s[places],
            self.count[places],
        )


@dataclass(frozen=True, eq=False)
class Promises:
    """Promises of a stage: no older row follows.

    Attributes:
        event_s: shape (m,), ascending; infinite: the stage has ended.
        stimulus_s: shape (m,), the stimulus time of each.
        left_s: shape (m,), when each left the last gate, or its source.
        at_s: shape (m,), ascending, when each leaves the stage.
    """

    event_s: FloatArray
    stimulus_s: FloatArray
    left_s: FloatArray
    at_s: FloatArray

    def reached_s(self, event_s: FloatArray) -> FloatArray:
        """Return when promises reach these times; infinite: never.

        Args:
            event_s: event times, shape (k,).
        """
        places = np.searchsorted(self.event_s, event_s, side="left")
        return np.asarray(np.append(self.at_s, np.inf)[places])

    def known_stimulus_s(self, at_s: FloatArray) -> FloatArray:
        """Return the stimulus time of the newest promise by these moments; −inf: none yet."""
        places = np.searchsorted(self.at_s, at_s, side="right")
        return np.asarray(np.append(-np.inf, self.stimulus_s)[places])


@dataclass(frozen=True, eq=False)
class Series:
    """Rows and promises that leave a source or a stage."""

    rows: Rows
    promises: Promises


def gathered(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts."""
    return Rows(
        np.concatenate([rows.event_s for rows in parts]),
        np.concatenate([rows.stimulus_s for rows in parts]),
        np.concatenate([rows.left_s for rows in parts]),
        np.concatenate([rows.at_s for rows in parts]),
        np.concatenate([rows.count for rows in parts]),
    )


def thinned(rows: Rows, width_s: float, most: int) -> Rows:
    """Return at most `most` rows of each subinterval of stimulus time, for all rows.

    It keeps the rows with the longest and the shortest wait, and others at even steps between. Each
    also stands for the rows nearest to it, whose waits are nearly as long.
    """
    if not len(rows.at_s):
        return rows
    cell = np.floor(rows.stimulus_s / width_s).astype(np.int64)
    order = np.lexsort((rows.at_s - rows.stimulus_s, cell))
    rows, cell = rows.take(order), cell[order]
    starts = np.flatnonzero(np.diff(cell, prepend=cell[0] - 1))
    sizes = np.diff(starts, append=len(cell))
    if sizes.max() <= most:
        return rows
    within = np.arange(len(cell)) - np.repeat(starts, sizes)
    steps = np.repeat(np.maximum((sizes - 1) / max(most - 1, 1), 1.0), sizes)
    # The first, the last, and those at which the number of steps goes up.
    is_chosen = (np.floor(within / steps) > np.floor((within - 1) / steps)) | (within == 0)
    is_chosen |= within == np.repeat(sizes - 1, sizes)
    chosen = np.flatnonzero(is_chosen)
    halfway = np.concatenate([chosen[:1], (chosen[:-1] + chosen[1:] + 1) // 2])
    return replace(rows.take(is_chosen), count=np.add.reduceat(rows.count, halfway))


def whole(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows that stand for at least one; rows that stand for less are drawn.

    If a filter keeps one row of many, a slack waits for the next newer row, whose distance is a
    matter of chance.
    """
    few = rows.count < 1
    if not few.any():
        return rows
    is_drawn = ~few | (rng.random(len(rows.count)) < rows.count)
    drawn = rows.take(is_drawn)
    count = np.maximum(drawn.count, 1.0)
    scale = rows.count.sum() / count.sum() if len(count) else 1.0
    return replace(drawn, count=count * scale)


def counted(times_s: FloatArray, count: FloatArray, width_s: float, d: int) -> FloatArray:
    """Return the rows in each subinterval, shape (d,); rows outside are omitted."""
    known = np.isfinite(times_s)
    cell = np.floor(times_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    return np.asarray(np.bincount(cell[inside], count[known][inside], minlength=d), np.float64)


def longest_s(rows: Rows, width_s: float, d: int) -> FloatArray:
    """Return the longest time since the stimulus, by subinterval of the stimulus; (d,).

    It is 0 for a subinterval without rows; rows with unknown times are omitted.
    """
    known = np.isfinite(rows.at_s) & (rows.count > 0)
    cell = np.floor(rows.stimulus_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    longest = np.zeros(d)
    np.maximum.at(longest, cell[inside], (rows.at_s - rows.stimulus_s)[known][inside])
    return longest


def earliest_s(rows: Rows, width_s: float, d: int) -> FloatArray:
    """Return the earliest stimulus of rows that leave in each subinterval or later; (d,).

    In a queue that keeps its order, a row before an older one is as urgent as that.
    """
    begins_s = np.arange(d) * width_s
    earliest = begins_s.copy()
    known = np.isfinite(rows.left_s) & (rows.count > 0)
    cell = np.floor(rows.left_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    np.minimum.at(earliest, cell[inside], rows.stimulus_s[known][inside])
    return np.asarray(np.minimum.accumulate(earliest[::-1])[::-1])
