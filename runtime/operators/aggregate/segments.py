"""Segments of rows of an aggregate: its windows close between them.

```
by watermark   rows of the read ──▶ windows up to the watermark close
by a policy    rows by arrival    1 3 2 │ 9 8 │ 12       │ the policy says that a window has closed
               ──▶ 1 3 2, close, 9 8, close, 12, …       so each closes at its own moment
```

A row that comes for a window that has closed is late, whoever closed it.
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
    """Return the time of arrivals between a window's end and its closing."""

    arrival_ns: int
    """How far arrivals had come."""
    speed: float
    """Arrivals go so many times faster than the clock."""

    def since_ns(self, ends_ns: Int64Array) -> Int64Array:
        """Return how long ago windows ended, by the clock; 0 for those that have not ended yet."""
        behind: Int64Array = np.maximum(self.arrival_ns - np.minimum(ends_ns, self.arrival_ns), 0)
        return behind if self.speed == 1 else (behind / self.speed).astype(np.int64)


class Segment(NamedTuple):
    """Rows that come next, and then windows close."""

    batches: Sequence[Batch | None]
    """Late ones first."""
    until_ns: int
    """Windows that end by then close behind them: never less than before. END_NS: all."""
    stimulus_ns: int
    """When what closes them reached us."""
    final_ns: int
    """No row older than this will come, not even late."""
    wait: Wait | None = None
    """How long windows have waited, by the clock; None: that is not known, or not counted."""

    def stimuli_ns(self, ends_ns: Int64Array) -> Int64Array | int:
        """Return the stimulus of windows with these ends: what they waited for counts for them.

        By the clock it is when the window ended, if it closed behind its end: from then on its
        result was waited for.
        """
        if self.wait is None:
            return self.stimulus_ns
        return self.stimulus_ns - self.wait.since_ns(ends_ns)


NOTHING = Segment((), START_NS, START_NS, START_NS)
"""Closes none: for results that leave again, whose rows alone are their stimulus."""


class Closer(Protocol):
    """Says when the windows of one aggregate close."""

    STATE: Fields

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:
        """Yield a read as segments, the last of which is as far as is known by now."""
        ...

    def sure_ns(self, frontier_ns: int) -> int:
        """Return up to which end windows have closed for good, behind the last read."""
        ...

    def due_ns(self) -> int | None:
        """Return when it closes some by the clock; None: at no time that is known.

        Only of an aggregate whose step says `has_time`.
        """
        ...

    @property
    def rows_held(self) -> int:
        """Rows that have come, and wait for their turn."""
        ...

    @property
    def waited_ns(self) -> int:
        """How long a window that closed with the last read had waited by the clock, at most."""
        ...

    def chances(self, ends_ns: Int64Array) -> npt.NDArray[np.float64]:
        """Return of windows that have closed each one's chance of missing a row, by its end."""
        ...

    def counts(self) -> ClosingCounts | None:
        """Return what closing in time has come to; None: it does not."""
        ...


class ByWatermark:
    """Closes a window once what is released in order has come to its end."""

    STATE = Fields()
    rows_held = waited_ns = 0

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:
        """Yield the read as it is."""
        del now_ns
        yield Segment(
            (*released.late, *released.ports),
            released.watermark_ns,
            released.watermark_stimulus_ns,
            released.frontier_ns,
        )

    def sure_ns(self, frontier_ns: int) -> int:
        """Return the frontier, which no watermark is behind."""
        return frontier_ns

    def due_ns(self) -> None:
        """Return None: windows close by event time."""

    def chances(self, ends_ns: Int64Array) -> npt.NDArray[np.float64]:
        """Return that it is unknown."""
        return np.full(len(ends_ns), np.nan)

    def counts(self) -> None:
        """Return None: nothing closes in time."""
