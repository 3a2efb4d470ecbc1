"""Finished windows that nothing was dropped of: models learn from them."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.model import BoolArray, Int64Array


@dataclass(frozen=True)
class Places:
    """Events in windows: pairs, by their type and position.

    Attributes:
        windows: shape (pairs,), the index of the window among those of its batch.
        types: shape (pairs,), the code of the event's type, 0 or more.
        positions: shape (pairs,), among the events of the window, from 0.
        features: shape (pairs,), a code of the event's feature; None if it has no features.
    """

    windows: Int64Array
    types: Int64Array
    positions: Int64Array
    features: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.types)

    def of_windows(self, first: int, end: int) -> Places:
        """Return the places of the windows in this range, with indices from its begin."""
        chosen = (self.windows >= first) & (self.windows < end)
        return Places(
            self.windows[chosen] - first,
            self.types[chosen],
            self.positions[chosen],
            None if self.features is None else self.features[chosen],
        )


@dataclass(frozen=True)
class FinishedWindows:
    """Windows that are over, in the order in which they ended.

    Attributes:
        sizes: shape (windows,), events of each, 1 or more.
        hits: the events of each match of a window, match by match; an event of several matches
            comes in each.
        matches: shape (hits,), the match of each hit, among those of these windows; ascending.
        sampled: shape (windows,), whether all events of the window are in `events`.
        events: all events of the sampled windows.
    """

    sizes: Int64Array
    hits: Places
    matches: Int64Array
    sampled: BoolArray
    events: Places

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, first: int, end: int) -> FinishedWindows:
        """Return the windows in this range."""
        chosen = (self.hits.windows >= first) & (self.hits.windows < end)
        return FinishedWindows(
            self.sizes[first:end],
            self.hits.of_windows(first, end),
            self.matches[chosen],
            self.sampled[first:end],
            self.events.of_windows(first, end),
        )
