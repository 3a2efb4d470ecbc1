"""When a window of event time closes: the interface of the policies, and what they tell.

A policy, a `Closing`, is frozen and travels in the plan. What it knows while an aggregate runs is
in the `ClosingRun` that it begins. That one is told of rows in the order of their arrival, and of
time that passes without one; it says how far windows have closed.

```
arrival     1   2   3   4   5   6   7     what comes at one time is seen before it decides there
row of      2   1       4       3
closed      -   -   -   2   2   2   4     before each time: windows that end by then
                            ^ the row of 3 is in time for the window that ends at 4
```

Decisions fall on whole ticks of the clock, as in [probslack] §2 (timepoints). What is closed at a
tick holds for rows that arrive after it. So the same rows give the same closings, however they are
cut into calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClosedWindows:
    """Windows that have closed, oldest first. Those that had no row so far are left out.

    Attributes:
        end_ns: shape (windows,), the end of each.
        closed_at_ns: shape (windows,), when it closed, in the time of arrivals.
        chance_missing: shape (windows,), how likely it was that something was still to come;
            0 where the policy was sure, NaN where it makes no estimate.
    """

    end_ns: Int64Array
    closed_at_ns: Int64Array
    chance_missing: FloatArray


@dataclass(frozen=True)
class ClosingCounts:
    """What closing has come to so far.

    Attributes:
        windows: that have closed and had a row, when they closed or later.
        early: of these, closed before the policy was sure.
        missed: of these, known to have missed at least one row.
        slack_ns: sum over windows of when they closed less their end; may be negative.
        promised: the share of windows that may miss something; None: none is promised.
        empty: windows that have closed and had no row: in none of the other counts.
    """

    windows: int
    early: int
    missed: int
    slack_ns: int
    promised: float | None
    empty: int = 0

    @property
    def missed_share(self) -> float:
        """The share of windows that missed something: MER, [probslack] Eq. 1; 0 of none."""
        return self.missed / self.windows if self.windows else 0.0

    @property
    def mean_slack_ns(self) -> float:
        """The mean slack: SL, [probslack] Eq. 2, by window; 0 of none."""
        return self.slack_ns / self.windows if self.windows else 0.0

    @property
    def means(self) -> dict[str, float]:
        """{name: value} of what follows from the others."""
        return {"missed_share": self.missed_share, "mean_slack_ns": self.mean_slack_ns}


class ClosingRun(Protocol):
    """What one aggregate, or one of its replicas, knows of closing. It looks at no clock.

    Its class declares its state in STATE, or has `snapshot()` and `restore(state)`; see
    `runtime/model/state.py`.
    """

    def observe(
        self, types: Int64Array, event_time_ns: Int64Array, arrival_ns: Int64Array
    ) -> Int64Array:
        """Take the next rows, in the order of their arrival.

        Args:
            types: shape (rows,), the type of each: 0, 1, … in order of appearance.
            event_time_ns: shape (rows,).
            arrival_ns: shape (rows,); one that runs back counts as the newest so far.

        Returns:
            Shape (rows,), never decreasing: all windows that end at or before this time had
            closed just before the row came; START_NS: none.
        """
        ...

    def hold(self, is_held: bool) -> None:
        """Close nothing for being complete, while a source of the plan has not been heard yet.

        It holds from the time passed by now on. What closes whatever comes still does.
        """
        ...

    def pass_time(self, now_ns: int) -> int:
        """No row came before `now_ns` but those observed; return how far windows have closed."""
        ...

    def next_ns(self) -> int | None:
        """Return a time to be passed before which no window closes if nothing comes; None: none."""
        ...

    def closings(self) -> ClosedWindows:
        """Return the windows that have closed since this was asked last."""
        ...

    def counts(self) -> ClosingCounts:
        """Return what closing has come to so far."""
        ...

    def finish(self) -> int:
        """The end of input: everything closes. Returns END_NS.

        What only the end closes is neither in the counts nor among `closings`: it was no decision,
        and nothing can be missing. (One event that is years ahead would make it no end of windows.)
        """
        ...


class Closing(Protocol):
    """When windows close. Frozen; must pickle."""

    @property
    def text(self) -> str:
        """How `explain` says it."""
        ...

    def part(self, of: int) -> Closing:
        """Return what each of so many replicas runs, that together they keep what it promises."""
        ...

    def begin(self, windows: WindowEnds) -> ClosingRun:
        """Return what closes these windows, from now on."""
        ...
