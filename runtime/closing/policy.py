"""Policies that close windows of event time: their interface, and what they report.

A policy, a `Closing`, is frozen and travels in the plan. It begins a `ClosingRun`, which holds its
state while an aggregate runs. The run is given rows in the order of their arrival, and times up to
which no row came; it returns how far windows have closed.

```
arrival     1   2   3   4   5   6   7     rows of one time are seen before a decision at that time
row of      2   1       4       3
closed      -   -   -   2   2   2   4     before each time: windows that end by then
                            ^ the row of 3 is in time for the window that ends at 4
```

Decisions fall on whole ticks of the clock, as in [probslack] §2 (timepoints). A window that closes
at a tick is closed for rows that arrive after it. So the same rows give the same closings, however
they are cut into calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.model import Int64Array

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClosedWindows:
    """Windows that have closed, oldest first, without those that had no row so far.

    Attributes:
        end_ns: shape (windows,), the end of each.
        closed_at_ns: shape (windows,), when it closed, in the time of arrivals.
        chance_missing: shape (windows,), the chance that a row was still to come; 0 where the
            policy was sure, NaN where it makes no estimate.
    """

    end_ns: Int64Array
    closed_at_ns: Int64Array
    chance_missing: FloatArray


@dataclass(frozen=True)
class ClosingCounts(JsonObject):
    """Counts of closed windows so far.

    Attributes:
        windows: windows that have closed and had a row, when they closed or later.
        early: the part that closed before the policy was sure.
        missed: the part that is known to have missed at least one row.
        slack_ns: sum over windows of the closing time less the end; may be negative.
        promised: the share of windows that may miss a row; None if none is promised.
        empty: windows that have closed and had no row: in none of the other counts.
    """

    windows: int
    early: int
    missed: int
    slack_ns: int
    promised: float | None
    empty: int = 0

    DERIVED: ClassVar = {"missed_share": "missed_share", "mean_slack_ns": "mean_slack_ns"}

    @property
    def missed_share(self) -> float:
        """Share of windows that missed a row: MER, [probslack] Eq. 1; 0 without windows."""
        return self.missed / self.windows if self.windows else 0.0

    @property
    def mean_slack_ns(self) -> float:
        """Mean slack of a window: SL, [probslack] Eq. 2; 0 without windows."""
        return self.slack_ns / self.windows if self.windows else 0.0


class ClosingRun(Protocol):
    """State of closing in an aggregate or a replica. It reads no clock.

    Its class declares its state in STATE, or has `snapshot()` and `restore(state)`; see
    `runtime/model/state.py`.
    """

    def observe(
        self, types: Int64Array, event_time_ns: Int64Array, arrival_ns: Int64Array
    ) -> Int64Array:
        """Take the next rows, in the order of their arrival.

        Args:
            types: shape (rows,), the type of each: 0, 1, … in order of appearance.
            event_time_ns: event times, shape (rows,).
            arrival_ns: shape (rows,); one that runs back counts as the newest so far.

        Returns:
            Shape (rows,), never decreasing: all windows that end at or before this time had
            closed just before the row came; START_NS: none.

        Raises:
            SchemaError: a time lies outside the years 1824 to 2116.
        """
        ...

    def hold(self, is_held: bool) -> None:
        """Close no window for being complete while a source of the plan is unheard.

        It holds from the time passed by now on. Windows that close whatever comes still close.
        """
        ...

    def pass_time(self, now_ns: int) -> int:
        """Pass time up to `now_ns`; return how far windows have closed.

        No row came before `now_ns` but those observed.
        """
        ...

    def next_ns(self) -> int | None:
        """Return a time before which no row means no closing; None if none follows."""
        ...

    def closings(self) -> ClosedWindows:
        """Return the windows that have closed since the last call."""
        ...

    def counts(self) -> ClosingCounts:
        """Return the counts so far."""
        ...

    def finish(self) -> int:
        """Close all windows at the end of input; return END_NS.

        Windows that only the end closes are neither counted nor among `closings`: it was no
        decision, and no row can be missing. (One event that is years ahead would make it an endless
        number of windows.)
        """
        ...


class Closing(Protocol):
    """Policy that closes windows. Frozen; must pickle."""

    @property
    def text(self) -> str:
        """Text of the policy in `explain`."""
        ...

    def part(self, of: int) -> Closing:
        """Return the policy of each of `of` replicas, which together keep its promise."""
        ...

    def begin(self, windows: WindowEnds) -> ClosingRun:
        """Return a run that closes these windows."""
        ...
