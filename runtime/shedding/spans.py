"""Spans are a read in shedding: events in a row, and windows over stretches.

```
events        0   1   2   3   4   5   6
window 0      [-----------------)             begin 0, end 4, first −3: event 0 is its fourth
window 1              [-------------------)   begin 2, end 7, first  2
```

So the positions of a stretch are consecutive too, and what is known of an event is looked up once,
not once for each of its windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfolded


@dataclass(frozen=True)
class Spans:
    """Windows, and the events of each; arrays of shape (windows,).

    Attributes:
        firsts: the place of each window's first event; negative: it came before these.
        begins, ends: the window's events among these: [begin, end).
        sizes: the events that each window has, or is likely to have.
    """

    firsts: Int64Array
    begins: Int64Array
    ends: Int64Array
    sizes: Int64Array

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def lengths(self) -> Int64Array:
        """The number of events of each."""
        return self.ends - self.begins

    @property
    def are_alike(self) -> bool:
        """Whether all windows have one size, and none outgrew it."""
        sizes = self.sizes
        return bool(
            len(sizes) and (sizes == sizes[0]).all() and (self.ends - self.firsts <= sizes).all()
        )

    def placed(self, pairs: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the number of given pairs in each span, and the event of each.

        Args:
            pairs: their numbers among all pairs, span by span; ascending.
        """
        lengths = self.lengths
        behind = np.cumsum(lengths)
        counts = np.diff(pairs.searchsorted(behind), prepend=0)
        return counts, pairs + np.repeat(self.begins - (behind - lengths), counts)

    def within(self, begins: Int64Array, ends: Int64Array) -> Spans:
        """Return the part of each span within these bounds, perhaps empty."""
        begins = np.maximum(self.begins, begins)
        ends = np.maximum(np.minimum(self.ends, ends), begins)
        return Spans(self.firsts, begins, ends, self.sizes)

    def cut(self, parts: int) -> tuple[Spans, Int64Array, Int64Array]:
        """Return the spans cut where one of so many parts of a window ends.

        Returns:
            the pieces; the span of each; and the part that it lies in.
        """
        low, high = (
            np.minimum(at - self.firsts, self.sizes - 1) * parts // self.sizes
            for at in (self.begins, np.maximum(self.ends - 1, self.begins))
        )
        counts = high - low + 1
        which = np.repeat(np.arange(len(self)), counts)
        part = unfolded(low, counts)
        firsts, sizes = self.firsts[which], self.sizes[which]
        begins = np.maximum(firsts + starts_of(part, sizes, parts), self.begins[which])
        # Events after the predicted end are in the last part.
        ends = np.where(
            part == high[which],
            self.ends[which],
            np.minimum(firsts + starts_of(part + 1, sizes, parts), self.ends[which]),
        )
        return Spans(firsts, begins, ends, sizes), which, part


@dataclass(frozen=True)
class Dropped:
    """The dropped pairs of a read.

    Attributes:
        surely: shape (events,), which events are dropped of all windows that have them.
        looked_at: other pairs that were looked at, one by one, as stretches of `among`.
        of: shape (stretches,), the index of the window of each.
        among: shape (n,), indices of events, ascending; None if all events are.
        is_dropped: shape (pairs,), of these, stretch by stretch.
    """

    surely: BoolArray
    looked_at: Spans
    of: Int64Array
    among: Int64Array | None
    is_dropped: BoolArray

    def pairs(self) -> tuple[Int64Array, Int64Array]:
        """Return the windows and the events of dropped pairs, without the sure ones.

        Returns:
            indices, of shape (dropped,) each, by window, events ascending.
        """
        dropped = np.flatnonzero(self.is_dropped)
        counts, at = self.looked_at.placed(dropped)
        return np.repeat(self.of, counts), at if self.among is None else self.among.take(at)


def starts_of(part: Int64Array, sizes: Int64Array, parts: int) -> Int64Array:
    """Return the first position P of each part: the least with P·parts ≥ part·size."""
    starts: Int64Array = -(-part * sizes // parts)
    return starts
