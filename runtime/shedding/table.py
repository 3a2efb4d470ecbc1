"""A table counts finished windows, and computes utilities from the counts.

Counts are of cells, so windows of any size add up. Those of the windows since the last turn are
kept apart: at a turn they are added to the older ones, which are forgotten in part. Only whole
numbers are added between turns, so sums do not depend on how windows were cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.places import covered
from slackwater.runtime.shedding.priors import prior_rates, ratio, shares_of_types
from slackwater.runtime.shedding.scales import Scale, scaled
from slackwater.runtime.shedding.thresholds import MOST_UTILITY, Utilities
from slackwater.runtime.shedding.windows import FinishedWindows, Places

MOST_TYPES = 4096
"""Types of higher codes are unknown, and share the last row: they are dropped last."""


@dataclass(frozen=True)
class Learnt:
    """A utility model as it was built.

    Attributes:
        utilities: UT, shape (types + 1, cells); the last row is of types that were never seen.
        expected: events of a window in each cell, of the same shape: S(T, P) where cells are
            positions. They sum up to `size`.
        rates: hits for each event in each cell, of the same shape.
        size: N, the mean number of events of a window.
        is_trained: whether events can be told apart at all: else there were no matches.
    """

    utilities: Utilities
    expected: FloatArray
    rates: FloatArray
    size: float
    is_trained: bool


class UtilityTable:
    """A table has counts of finished windows.

    Args:
        cells: C, places of a window that are told apart; `bs` of the paper is N / C.
        scale: rule by which counts become utilities.
        smooth: each cell is taken to have had so many further events like its type and its place in
            general; 0: none.

    Attributes:
        recent: windows learnt since the last turn.

    Source: [espice] §3.3, §3.6.
    """

    STATE = Fields("_old", "_new")

    def __init__(self, cells: int, *, scale: Scale = "rank", smooth: float = 16.0) -> None:
        self._cells = cells
        self._scale: Scale = scale
        self._smooth = smooth
        self._old = _Counts(cells)
        self._new = _Counts(cells)

    @property
    def recent(self) -> int:
        """Windows learnt since the last turn."""
        return int(self._new.windows)

    def learn(self, finished: FinishedWindows) -> None:
        """Count windows that are over."""
        self._new.add(finished)

    def turn(self, *, keep: float) -> None:
        """Add the counts since the last turn.

        Args:
            keep: the share of older counts that still counts, 0 to 1.
        """
        self._new.take_in(self._old, keep)
        self._old, self._new = self._new, _Counts(self._cells)

    def hits_by_type(self, parts: int) -> tuple[FloatArray, FloatArray]:
        """Return hits at the last turn and since, each of shape (types, parts).

        Args:
            parts: the parts of a window, each of several cells.
        """
        types = max(len(self._old.hits), len(self._new.hits))
        part = np.arange(self._cells) * parts // self._cells
        begins = np.searchsorted(part, np.arange(min(parts, self._cells)))
        old, new = (
            np.add.reduceat(_of_types(counts.hits, types), begins, axis=1)
            for counts in (self._old, self._new)
        )
        return old, new

    def windows(self) -> tuple[float, float]:
        """Return the number of windows that count at the last turn, and of those since."""
        return self._old.windows, self._new.windows

    def rates_with(self, own: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return hits scaled to the windows whose events were seen, and rates.

        Args:
            own: shape (types, cells), the rates that cells are taken to have by default; omitted:
                by their type and their place, see `prior_rates`.

        Returns:
            both of shape (types, cells).
        """
        old = self._old
        hits = old.hits * (old.sampled / max(old.windows, 1.0))
        # A rare type may have hit in windows whose other events were not counted.
        seen = np.where(old.seen > 0, old.seen, hits)
        if own is None:
            own = prior_rates(hits, seen)
        return hits, ratio(hits + self._smooth * own, seen + self._smooth)

    def learnt(self) -> Learnt:
        """Return the model of what counts at the last turn."""
        hits, rates = self.rates_with()
        expected, size = self.expected(), self.size
        utilities = scaled(self._scale, hits, rates, expected)
        utilities[~self.seen_types()] = MOST_UTILITY
        return Learnt(
            np.vstack([utilities, np.full((1, self._cells), MOST_UTILITY, np.uint8)]),
            np.vstack([expected, np.zeros((1, self._cells))]),
            np.vstack([rates, np.zeros((1, self._cells))]),
            size,
            bool(hits.any() and self._old.sampled),
        )

    @property
    def size(self) -> float:
        """The mean number of events of a window at the last turn; 0 before it."""
        old = self._old
        return old.events / old.windows if old.windows else 0.0

    def expected(self) -> FloatArray:
        """Return the expected events of a window in each cell, shape (types, cells)."""
        return shares_of_types(self._old.seen, self._smooth) * (self.size / self._cells)

    def only(self, types: Int64Array) -> UtilityTable:
        """Return a table with the counts of these types at the last turn."""
        table = UtilityTable(self._cells, scale=self._scale, smooth=self._smooth)
        table._old = self._old.only(types)
        return table

    def seen_types(self) -> BoolArray:
        """Return which types have counts at the last turn, shape (types,)."""
        old = self._old
        seen: BoolArray = np.any(old.seen > 0, axis=1) | np.any(old.hits > 0, axis=1)
        return seen


class _Counts:
    """Windows and their events, hits and seen events by type and cell, shape (types, cells)."""

    STATE = Fields("windows", "sampled", "events", "hits", "seen")

    def __init__(self, cells: int) -> None:
        self.windows = self.sampled = self.events = 0.0
        self.hits: FloatArray = np.zeros((0, cells))
        self.seen: FloatArray = np.zeros((0, cells))

    def add(self, finished: FinishedWindows) -> None:
        self.windows += len(finished)
        self.sampled += float(finished.sampled.sum())
        self.events += float(finished.sizes.sum())
        self.hits = self._counted(self.hits, finished.hits, finished.sizes)
        self.seen = self._counted(self.seen, finished.events, finished.sizes)

    def _counted(self, counts: FloatArray, places: Places, sizes: Int64Array) -> FloatArray:
        known = (places.types >= 0) & (places.types < MOST_TYPES)
        types = places.types[known]
        if not len(types):
            return counts
        counts = _of_types(counts, int(types.max()) + 1)
        cells = counts.shape[1]
        events, cell = covered(places.positions[known], sizes[places.windows[known]], cells)
        flat = np.bincount(types[events] * cells + cell, minlength=counts.size)
        return counts + flat.reshape(counts.shape)

    def take_in(self, older: _Counts, keep: float) -> None:
        self.windows += keep * older.windows
        self.sampled += keep * older.sampled
        self.events += keep * older.events
        types = max(len(self.hits), len(older.hits), len(self.seen), len(older.seen))
        self.hits = _of_types(self.hits, types) + keep * _of_types(older.hits, types)
        self.seen = _of_types(self.seen, types) + keep * _of_types(older.seen, types)

    def only(self, types: Int64Array) -> _Counts:
        counts = _Counts(self.hits.shape[1])
        counts.windows, counts.sampled, counts.events = self.windows, self.sampled, self.events
        counts.hits, counts.seen = self.hits[types], self.seen[types]
        return counts


def _of_types(counts: FloatArray, types: int) -> FloatArray:
    if len(counts) >= types:
        return counts
    return np.vstack([counts, np.zeros((types - len(counts), counts.shape[1]))])
