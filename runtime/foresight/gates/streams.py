"""Rows on their way to a gate: a few that stand for all, and what their stage has promised.

```
event time   ─▶ what a gate goes by          stimulus ─▶ what latency counts from
handed on    ─▶ when the next stage may have it          stands for ─▶ how many rows
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
    """Rows, each of which stands for some.

    Attributes:
        event_s: shape (k,), event times.
        stimulus_s: shape (k,), stimulus times.
        left_s: shape (k,), when they left the last gate, or their source.
        at_s: shape (k,), when they are handed on; infinite: not within what is known.
        count: shape (k,), how many rows each stands for, >= 0.
    """

    event_s: FloatArray
    stimulus_s: FloatArray
    left_s: FloatArray
    at_s: FloatArray
    count: FloatArray

    def take(self, places: npt.NDArray[Any]) -> Rows:
        """Return some of them: by their places, or a mask."""
        return Rows(
            self.event_s[places],
            self.stimulus_s[places],
            self.left_s[places],
            self.at_s[places],
            self.count[places],
        )


@dataclass(frozen=True, eq=False)
class Promises:
    """What a stage has promised when: nothing older than this will follow.

    Attributes:
        event_s: shape (m,), ascending; infinite: it has ended.
        stimulus_s: shape (m,), the stimulus time of each.
        left_s: shape (m,), when each left the last gate, or its source.
        at_s: shape (m,), ascending, when each is handed on.
    """

    event_s: FloatArray
    stimulus_s: FloatArray
    left_s: FloatArray
    at_s: FloatArray

    def reached_s(self, event_s: FloatArray) -> FloatArray:
        """Return when nothing older than these times could follow any more; infinite: never.

        Args:
            event_s: shape (k,).
        """
        places = np.searchsorted(self.event_s, event_s, side="left")
        return np.asarray(np.append(self.at_s, np.inf)[places])

    def known_stimulus_s(self, at_s: FloatArray) -> FloatArray:
        """Return the stimulus time of the newest promise by these moments; −inf: none yet."""
        places = np.searchsorted(self.at_s, at_s, side="right")
        return np.asarray(np.append(-np.inf, self.stimulus_s)[places])


@dataclass(frozen=True, eq=False)
class Series:
    """What leaves a source or a stage: rows and promises."""

    rows: Rows
    promises: Promises


def gathered(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several."""
    return Rows(
        np.concatenate([one.event_s for one in parts]),
        np.concatenate([one.stimulus_s for one in parts]),
        np.concatenate([one.left_s for one in parts]),
        np.concatenate([one.at_s for one in parts]),
        np.concatenate([one.count for one in parts]),
    )


def thinned(rows: Rows, width_s: float, most: int) -> Rows:
    """Return at most so many rows of each subinterval of stimulus time, for as many in all.

    Kept are those that waited longest and shortest, and of the others every so many; each stands
    for those nearest to it, too, that waited nearly as long.
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
    kept = (np.floor(within / steps) > np.floor((within - 1) / steps)) | (within == 0)
    kept |= within == np.repeat(sizes - 1, sizes)
    chosen = np.flatnonzero(kept)
    halfway = np.concatenate([chosen[:1], (chosen[:-1] + chosen[1:] + 1) // 2])
    return replace(rows.take(kept), count=np.add.reduceat(rows.count, halfway))


def whole(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows that stand for one at least: of those that stand for less some are drawn.

    Where a filter leaves one row of many, a slack waits for the next one that is newer, and how far
    that is off is a matter of chance.
    """
    few = rows.count < 1
    if not few.any():
        return rows
    kept = ~few | (rng.random(len(rows.count)) < rows.count)
    found = rows.take(kept)
    count = np.maximum(found.count, 1.0)
    scale = rows.count.sum() / count.sum() if len(count) else 1.0
    return replace(found, count=count * scale)


def counted(times_s: FloatArray, count: FloatArray, width_s: float, d: int) -> FloatArray:
    """Return how many there are in each subinterval, shape (d,); those outside are left out."""
    known = np.isfinite(times_s)
    cell = np.floor(times_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    return np.asarray(np.bincount(cell[inside], count[known][inside], minlength=d), np.float64)


def longest_s(rows: Rows, width_s: float, d: int) -> FloatArray:
    """Return the longest from stimulus until handed on, by subinterval of the stimulus; (d,).

    0 where there is none; rows of which it is not known are left out.
    """
    known = np.isfinite(rows.at_s) & (rows.count > 0)
    cell = np.floor(rows.stimulus_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    found = np.zeros(d)
    np.maximum.at(found, cell[inside], (rows.at_s - rows.stimulus_s)[known][inside])
    return found


def earliest_s(rows: Rows, width_s: float, d: int) -> FloatArray:
    """Return the earliest stimulus of what leaves in each subinterval, or later; (d,).

    Where a queue is worked off in its order, what is in front of an older row is as urgent.
    """
    begins_s = np.arange(d) * width_s
    found = begins_s.copy()
    known = np.isfinite(rows.left_s) & (rows.count > 0)
    cell = np.floor(rows.left_s[known] / width_s + 1e-9).astype(np.int64)
    inside = (cell >= 0) & (cell < d)
    np.minimum.at(found, cell[inside], rows.stimulus_s[known][inside])
    return np.asarray(np.minimum.accumulate(found[::-1])[::-1])
