"""Segments of rows of an aggregate: its windows close between them.

```
by watermark   rows of the read ──▶ windows up to the watermark close
by a policy    rows by arrival    1 3 2 │ 9 8 │ 12       │ the policy says that a window has closed
               ──▶ 1 3 2, close, 9 8, close, 12, …       so each closes at its own moment
```

A row that comes for a closed window is late, whatever closed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from slackwater.runtime.closing.policy import ClosingCounts
from slackwater.runtime.model import START_NS, Batch, GateRead, Int64Array
from slackwater.runtime.model.state import Fields


class Wait(NamedTuple):
    """The time of arrivals between a window's end and its closing."""

    arrival_ns: int
    """How far arrivals had come."""
    speed: float
    """Arrivals go so many times faster than the clock."""

    def since_ns(self, ends_ns: Int64Array) -> Int64Array:
        """Return how long ago windows ended, by the clock; 0 if they have not."""
        ago_ns: Int64Array = np.maximum(self.arrival_ns - np.minimum(ends_ns, self.arrival_ns), 0)
        return ago_ns if self.speed == 1 else (ago_ns / self.speed).astype(np.int64)


class Segment(NamedTuple):
    """A segment has the rows that come next; then windows close."""

    batches: Sequence[Batch | None]
    """Late rows first."""
    until_ns: int
    """Windows that end by then close after the rows: never less than before. END_NS: all."""
    stimulus_ns: int
    """The stimulus time of what closes them."""
    final_ns: int
    """No row older than this will come, not even late."""
    wait: Wait | None = None
    """How long windows have waited, by the clock; None: that is not known, or not counted."""

    def stimuli_ns(self, ends_ns: Int64Array) -> Int64Array | int:
        """Return the stimulus of windows with these ends, earlier by each window's wait.

        By the clock, for a window that closed after its end, it is the moment when the window
        ended: its result was waited for from then on.
        """
        if self.wait is None:
            return self.stimulus_ns
        return self.stimulus_ns - self.wait.since_ns(ends_ns)


NOTHING = Segment((), START_NS, START_NS, START_NS)
"""A segment that closes no window: results leave again, with the stimulus of their rows."""


class Closer(Protocol):
    """A closer says when the windows of one aggregate close."""

    STATE: Fields

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:
        """Yield a read as segments; the last one reaches as far as is known."""
        ...

    def sure_ns(self, frontier_ns: int) -> int:
        """Return the end up to which windows have closed for good, after the last read."""
        ...

    def due_ns(self) -> int | None:
        """Return when windows close by the clock; None if that is not known.

        Only called for an aggregate whose traits have `uses_clock`.
        """
        ...

    @property
    def rows_held(self) -> int:
        """Rows that have come, and wait for their turn."""
        ...

    def codes(self) -> Sequence[Int64Array]:
        """Return the codes of the keys of these rows."""
        ...

    @property
    def waited_ns(self) -> int:
        """The longest wait, by the clock, of the windows that closed with the last read."""
        ...

    def chances(self, ends_ns: Int64Array) -> npt.NDArray[np.float64]:
        """Return the chances of missing a row, of closed windows with these ends."""
        ...

    def counts(self) -> ClosingCounts | None:
        """Return the counts of closing in time; None if windows close by the watermark."""
        ...


class ByWatermark:
    """ByWatermark closes a window once the watermark has reached its end."""

    STATE = Fields()
    rows_held = waited_ns = 0

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:  # noqa: D102 - see Closer
        yield Segment(
            (*released.late, *released.ports),
            released.watermark_ns,
            released.progress.stimulus_ns,
            released.progress.promise_ns,
        )

    def codes(self) -> Sequence[Int64Array]:
        """Return nothing: no row waits here."""
        return ()

    def sure_ns(self, frontier_ns: int) -> int:  # noqa: D102 - see Closer
        return frontier_ns

    def due_ns(self) -> None:
        """Return None: windows close by event time."""

    def chances(self, ends_ns: Int64Array) -> npt.NDArray[np.float64]:  # noqa: D102 - see Closer
        return np.full(len(ends_ns), np.nan)

    def counts(self) -> None:
        """Return None: nothing closes in time."""
