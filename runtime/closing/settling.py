"""Which window closes when, budget and all: what may happen is gone through in order of time.

At one tick rows count first: those that are late, then those that make windows sure. What they
change of the budget holds for the windows that may close at that tick.

```
tick    7         7        7          9         12
        row late  sure     k may      k+1 may   k may until 12 only: if the budget
        for k−1   to k−2   close,     close     did not allow it at 7, then at 9 at
                           until 12             the latest, should that have changed
```
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.closing.account import Account
from runtime.closing.budget import Budget
from runtime.closing.candidates import Candidates, unfolded
from runtime.closing.ground import Seen
from runtime.closing.windows import WindowEnds
from runtime.model import Int64Array

LATE, SURE, EARLY, FORCED = range(4)
"""What happens at one tick, in this order."""


@dataclass(frozen=True)
class Happenings:
    """All that may happen in a stretch of time, in its order. All of shape (happenings,).

    Attributes:
        tick_ns: when.
        kind: LATE: a row is behind the windows `one` … `two`, if they have closed. SURE: all
            before window `one` are complete. EARLY: window `one` may close, until `two`, a tick.
            FORCED: window `one` closes, whatever the budget.
        last_begun: the last window in which a row may lie that has come by then.
    """

    tick_ns: Int64Array
    kind: Int64Array
    one: Int64Array
    two: Int64Array
    last_begun: Int64Array


@dataclass(frozen=True)
class Settled:
    """What came of a stretch of time.

    Attributes:
        windows, at_ns: shape (closed,), those that count, and when they closed.
        is_early: shape (closed,), whether it was not sure.
        step_ns, step_open: shape (steps,), from which tick on which window is the first open one.
        broken_ns: the tick at which it stopped: the rest has to be looked at anew; None: nowhere.
    """

    windows: Int64Array
    at_ns: Int64Array
    is_early: Any
    step_ns: Int64Array
    step_open: Int64Array
    broken_ns: int | None


def happenings_of(
    rows: Seen,
    newest_ns: Int64Array,
    candidates: Candidates,
    forced: tuple[Int64Array, Int64Array],
    windows: WindowEnds,
    account: Account,
    *,
    forced_slack_ns: int | None,
) -> Happenings:
    """Return what may happen.

    Args:
        rows: that come.
        newest_ns: shape (rows + 1,), the newest event time before and with each.
        candidates: when windows may close.
        forced: (tick, window), both (forced,): when windows must.
        forced_slack_ns: what the budget may force is no earlier behind a window's end than that.
    """
    late, low, high = _perhaps_late(
        rows, candidates, forced, windows, account, forced_slack_ns=forced_slack_ns
    )
    tick_ns = np.concatenate([rows.tick_ns[late], candidates.sure_at_ns, candidates.at_ns, forced[0]])
    kind = np.repeat(
        [LATE, SURE, EARLY, FORCED],
        [len(late), len(candidates.sure_at_ns), len(candidates.at_ns), len(forced[0])],
    )
    one = np.concatenate([low, candidates.sure_open, candidates.window, forced[1]])
    two = np.concatenate([high, np.zeros_like(candidates.sure_open), candidates.until_ns, forced[1]])
    # A row that makes a window sure is past it: what counts is what had come before.
    before = np.searchsorted(rows.tick_ns, tick_ns, side="left")
    with_it = np.searchsorted(rows.tick_ns, tick_ns, side="right")
    newest = newest_ns[np.where(kind == SURE, before, with_it)]
    order = np.lexsort((one, kind, tick_ns))
    return Happenings(
        tick_ns[order], kind[order], one[order], two[order], windows.lasts_begun(newest)[order]
    )


def _perhaps_late(
    rows: Seen,
    candidates: Candidates,
    forced: tuple[Int64Array, Int64Array],
    windows: WindowEnds,
    account: Account,
    *,
    forced_slack_ns: int | None,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return rows that are late if all closes that may, and the first and last window of each."""
    assert account.open is not None
    low = np.maximum(windows.firsts_after(rows.event_time_ns), account.first)
    high = windows.lasts_begun(rows.event_time_ns)
    most = np.full(len(rows), account.open - 1)
    for ticks, last in (
        (candidates.at_ns, candidates.window),
        (candidates.sure_at_ns, candidates.sure_open - 1),
        forced,
    ):
        if len(ticks):
            so_far = np.concatenate([[account.open - 1], np.maximum.accumulate(last)])
            most = np.maximum(most, so_far[np.searchsorted(ticks, rows.tick_ns, side="left")])
    if forced_slack_ns is not None:
        most = np.maximum(most, windows.firsts_after(rows.tick_ns - forced_slack_ns) - 1)
    late = np.flatnonzero(low <= np.minimum(high, most))
    return late, low[late], high[late]


class Settling:
    """Goes through what may happen; knows which windows are not sure yet.

    Args:
        windows: which there are.
        account: what has closed. What counts as closed is for the caller to add.
        budget: what may close early.
        tick_ns: the resolution of the clock.
    """

    def __init__(
        self, windows: WindowEnds, account: Account, budget: Budget, *, tick_ns: int
    ) -> None:
        self._windows = windows
        self._account = account
        self._budget = budget
        self._tick_ns = tick_ns
        self._sure_open = 0  # the first window that is not sure to be complete
        self._open_missed: set[int] = set()  # not sure, but known to have missed a row
        self._open = 0
        self._allowed_until: dict[int, int] = {}  # {window: tick}: the budget alone holds it
        self._closed: list[tuple[int, int, int, bool]] = []  # (first, count, tick, early)
        self._steps: list[tuple[int, int]] = []

    def begin(self, window: int) -> None:
        """Take a window as the first."""
        self._sure_open = window

    def settle(
        self,
        what: Happenings,
        rows: Seen,
        newest_ns: Int64Array,
        *,
        now_ns: int,
        end_ns: int,
        last: int,
        renewable: int,
    ) -> Settled:
        """Close windows at ticks in [now_ns, end_ns).

        Args:
            what: may happen.
            rows: that come.
            newest_ns: shape (rows + 1,), the newest event time before and with each.
            last: the last window that `what` looks at; it stops once that has closed.
            renewable: after how many of the rows a budget that is spent stops it.
        """
        assert self._account.open is not None
        self._open = self._account.open
        self._allowed_until.clear()
        arrivals = rows.tick_ns.tolist()
        begun = self._windows.lasts_begun(newest_ns).tolist()
        bounded = self._budget.slack_ns is not None
        stop_ns = ask_ns = None  # stops behind the rows of this tick; asks for those allowed at it
        columns = (what.tick_ns, what.kind, what.one, what.two, what.last_begun)
        for tick, kind, one, two, last_begun in zip(*(c.tolist() for c in columns), strict=True):
            if ask_ns is not None and (tick > ask_ns or kind >= EARLY):
                if stop_ns is not None:
                    break
                self._close_allowed(ask_ns, begun[bisect_right(arrivals, ask_ns)])
                ask_ns = None
            if bounded:
                self._close_by_slack(now_ns, tick, last, arrivals, begun)
            if self._open > last:
                break
            if kind == EARLY:
                if one == self._open and self._budget.allows():
                    self._close_early(tick, last_begun)
                    self._close_allowed(tick, last_begun)
                elif one >= self._open:
                    self._allowed_until[one] = two
            elif kind == FORCED:
                while self._open <= one:
                    self._close_early(tick, last_begun)
            else:
                ask_ns = tick
                if kind == SURE:
                    self._make_sure(one, tick, last_begun)
                else:
                    self._miss(one, min(two, self._open - 1))
                    if self._budget.is_spent and bisect_right(arrivals, tick) >= renewable:
                        stop_ns = tick
        if stop_ns is None and ask_ns is not None:
            self._close_allowed(ask_ns, begun[bisect_right(arrivals, ask_ns)])
        if stop_ns is None and bounded:
            self._close_by_slack(now_ns, end_ns, last, arrivals, begun)
        if stop_ns is None and self._open > last:
            stop_ns = self._steps[-1][0]
        return self._settled(stop_ns)

    def _close_early(self, tick_ns: int, last_begun: int) -> None:
        window = self._open
        if window <= last_begun:
            self._count(window, 1, tick_ns)
            self._closed.append((window, 1, tick_ns, True))
        else:
            self._account.leap(window, window)
        self._steps.append((tick_ns, window + 1))
        self._open = window + 1
        self._budget.pending += 1

    def _close_allowed(self, tick_ns: int, last_begun: int) -> None:
        """Close what may close early at this tick, and was held by the budget alone."""
        while self._allowed_until.get(self._open, tick_ns) > tick_ns and self._budget.allows():
            self._close_early(tick_ns, last_begun)

    def _close_by_slack(
        self, now_ns: int, before_ns: int, last: int, arrivals: list[int], begun: list[int]
    ) -> None:
        """Close what the bound on slack wants closed before a tick."""
        while self._open <= last:
            slack_ns = self._budget.longest_slack_ns(self._windows.slide_ns)
            due_ns = (self._windows.end_ns(self._open) + slack_ns) // self._tick_ns * self._tick_ns
            due_ns = max(due_ns, -(-now_ns // self._tick_ns) * self._tick_ns)
            if self._steps:
                due_ns = max(due_ns, self._steps[-1][0])
            if due_ns >= before_ns:
                return
            self._close_early(due_ns, begun[bisect_right(arrivals, due_ns)])

    def _make_sure(self, window: int, tick_ns: int, last_begun: int) -> None:
        """Close what is open before a window: it is sure to be complete."""
        if window > self._open:
            counted = min(max(last_begun + 1 - self._open, 0), window - self._open)
            if counted:
                self._count(self._open, counted, tick_ns)
                self._closed.append((self._open, counted, tick_ns, False))
            if self._open + counted < window:
                self._account.leap(self._open + counted, window - 1)
            self._open = window
            self._steps.append((tick_ns, window))
        if window > self._sure_open:
            self._sure_open = window
            if self._open_missed:
                self._open_missed = {one for one in self._open_missed if one >= window}
            self._budget.pending = self._open - window - len(self._open_missed)

    def _miss(self, first: int, last: int) -> None:
        """Note that a row was behind these windows."""
        if first > last:
            return
        before = self._account.windows
        self._budget.missed += self._account.miss(first, last)
        self._budget.windows += self._account.windows - before  # those that had had no row
        self._open_missed.update(range(max(first, self._sure_open), last + 1))
        self._budget.pending = self._open - self._sure_open - len(self._open_missed)

    def _count(self, first: int, count: int, tick_ns: int) -> None:
        ends_ns = count * self._windows.end_ns(first)
        ends_ns += self._windows.slide_ns * (count * (count - 1) // 2)
        self._budget.windows += count
        self._budget.slack_sum_ns += count * tick_ns - ends_ns

    def _settled(self, broken_ns: int | None) -> Settled:
        self._account.open = self._open
        first, counts, ticks, early = (
            np.array([part[n] for part in self._closed], dtype=np.int64) for n in range(4)
        )
        index, windows = unfolded(first, counts)
        steps = np.array(self._steps, dtype=np.int64).reshape(-1, 2)
        self._closed.clear()
        self._steps.clear()
        return Settled(
            windows, ticks[index], early[index] == 1, steps[:, 0], steps[:, 1], broken_ns
        )

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        return [self._sure_open, sorted(self._open_missed)]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        self._sure_open, self._open_missed = state[0], set(state[1])
