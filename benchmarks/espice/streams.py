"""Streams of typed events, the windows over them, and what a query makes of each event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from benchmarks.espice.per_window import Alternative, Match, first_match
from slackwater.runtime.shedding.places import likely_sizes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pace:
    """How fast a stream goes, from which the size of windows of a time is predicted.

    Attributes:
        time: shape (events,), of each event.
        length: of the windows, in the same unit.
        before: shape (events,), how many events came in that time before each.
    """

    time: FloatArray
    length: float
    before: IntArray


@dataclass(frozen=True)
class Windows:
    """Windows, each a range of the stream's events.

    Attributes:
        starts, stops: shape (windows,), the first event of each, and the one behind the last.
        pace: what their sizes are predicted from; None: as many events as those trained on have,
            in the mean.
    """

    starts: IntArray
    stops: IntArray
    pace: Pace | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> IntArray:
        """Events of each, shape (windows,)."""
        return self.stops - self.starts

    def of(self, chosen: BoolArray | IntArray) -> Windows:
        """Return those that are chosen."""
        return Windows(self.starts[chosen], self.stops[chosen], self.pace)

    @cached_property
    def predicted(self) -> IntArray | None:
        """Events that each pair's window is thought to get, as its event comes; shape (pairs,)."""
        if self.pace is None:
            return None
        pairs, pace = self.pairs, self.pace
        gone = pace.time[pairs.events] - pace.time[self.starts][pairs.windows]
        return likely_sizes(pairs.positions, pace.before[pairs.events], 1.0 - gone / pace.length)

    @cached_property
    def pairs(self) -> Pairs:
        """All events of all windows."""
        sizes = self.sizes
        windows = np.repeat(np.arange(len(self)), sizes)
        positions = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Pairs(np.repeat(self.starts, sizes) + positions, windows, positions)


@dataclass(frozen=True)
class Pairs:
    """Events in windows, window by window; arrays of shape (pairs,).

    Attributes:
        events: numbers of the events.
        windows: index of the window.
        positions: among the events of the window, from 0.
    """

    events: IntArray
    windows: IntArray
    positions: IntArray


@dataclass(frozen=True)
class Query:
    """A pattern over a stream.

    Attributes:
        types: shape (events,), code of each event's type.
        alternatives: the sequences that it is.
        fits: shape (events,), whether the event can be in a match at all.
        repetitions: shape (types,), in how many places of the pattern each type can be.
        features: shape (events,), a code of what else is known of each event; None: nothing.
    """

    types: IntArray
    alternatives: Sequence[Alternative]
    fits: BoolArray
    repetitions: IntArray
    features: IntArray | None = None

    def matches(self, windows: Windows, dropped: BoolArray | None = None) -> list[Match | None]:
        """Return the match of each window, of the events that are left.

        Args:
            windows: the windows.
            dropped: shape (pairs,), of `windows.pairs`; None: nothing is dropped.
        """
        pairs = windows.pairs
        # What fits nothing changes no match: only the rest goes through the matcher.
        left = self.fits[pairs.events]
        if dropped is not None:
            left &= ~dropped
        events = pairs.events[left]
        ends = np.searchsorted(pairs.windows[left], np.arange(len(windows)), side="right")
        begins = np.concatenate(([0], ends[:-1]))
        return [
            first_match(self.alternatives, events[begin:end].tolist())
            for begin, end in zip(begins, ends, strict=True)
        ]
