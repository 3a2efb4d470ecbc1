"""Settling: decide which window closes at which tick, going through happenings in order of time.

At one tick late rows count first, then rows that make windows sure. Their changes of the budget
hold for the windows that may close at that tick.

```
tick    7         7        7          9         12
        row late  sure     k may      k+1 may   k may until 12 only: if the budget
        for k−1   to k−2   close,     close     did not allow it at 7, then at 9 at
                           until 12             the latest, should that have changed
```
A sure window needs no step: the next happening looks it up.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from slackwater.runtime.closing.account import Account
from slackwater.runtime.closing.budget import Budget
from slackwater.runtime.closing.happenings import EARLY, LATE, Happenings, Settled, Stretch, Sure
from slackwater.runtime.closing.windows import WindowEnds, exact_sum, merged
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

_FEWEST_AT_ONCE = 16  # fewer cost less in the loop of `settle`


class Settling:
    """Settling of windows, one happening after the other.

    Args:
        windows: the windows of the aggregate.
        account: the closed windows. The caller adds those that count.
        budget: the windows that may still close early.
        tick_ns: the resolution of the clock.
        lead_ns: a window closes after its end less this.

    Attributes:
        sure_open: the first window that is not known to be complete.
    """

    STATE = Fields("sure_open", "_open_missed", "_held_to")

    def __init__(
        self,
        windows: WindowEnds,
        account: Account,
        budget: Budget,
        *,
        tick_ns: int,
        lead_ns: int,
    ) -> None:
        self._windows = windows
        self._account = account
        self._budget = budget
        self._tick_ns = tick_ns
        self._lead_ns = lead_ns
        self.sure_open = 0
        self._open_missed: set[int] = set()  # not sure, but known to have missed a row
        self._held_to = -(2**62)  # the last window that the budget has held
        # State of one stretch:
        self._open = self._opened = 0  # the first open window, now and when it began
        self._closed: list[int] = []  # windows that closed early, counted or not
        self._closed_ns: list[int] = []
        self._held: dict[int, int] = {}  # {window: last tick + 1}: held by the budget alone
        self._missed_first, self._missed_last = 0, -1  # the windows that the last late row missed
        self._again_ns: int | None = None  # the tick at which to ask the budget again
        self._stop_ns: int | None = None  # the tick after whose rows the stretch stops

    def begin(self, window: int) -> None:
        """Start at a window."""
        self.sure_open = window

    def settle(  # noqa: PLR0912 - one loop, a branch for each thing that may happen
        self, stretch: Stretch, what: Happenings, sure: Sure, *, renewable: int
    ) -> Settled:
        """Close windows.

        Args:
            stretch: the stretch of time.
            what: the happenings in it.
            sure: when windows are complete.
            renewable: the number of rows after which a spent budget stops the stretch.
        """
        self._enter(stretch, sure)
        done = self._settle_at_once(what)
        budget, bounded = self._budget, self._budget.slack_ns is not None
        renewable_ns = stretch.tick_of_row(renewable - 1)
        columns = (what.tick_ns, what.kind, what.window, what.limit, what.sure_open)
        for tick, kind, window, limit, sure_open in zip(
            *(column[done:].tolist() for column in columns), strict=True
        ):
            if self._stop_ns is not None and (tick > self._stop_ns or kind != LATE):
                break
            if self._again_ns is not None:
                self._ask_again(tick)
            elif kind == LATE and window >= self._open and window >= sure_open and not bounded:
                continue  # the usual case: late only if more windows had closed
            if bounded:
                self._close_by_slack(tick)
            if sure_open > self.sure_open:
                self._make_sure(sure_open)
            if self._open > stretch.last:
                break
            if kind == EARLY:
                if window == self._open and budget.allows():
                    self._close_early(tick)
                elif window >= self._open:
                    self._hold(window, tick, limit)
            elif kind == LATE:
                self._miss(window, min(limit, self._open - 1), tick)
                if tick >= renewable_ns and budget.is_spent:
                    self._stop_ns = tick
            else:
                while self._open <= window:
                    self._close_early(tick)
        return self._leave(stretch.end_ns)

    def _enter(self, stretch: Stretch, sure: Sure) -> None:
        self._stretch, self._sure = stretch, sure
        self._rowed = dict(zip(stretch.rowed.tolist(), stretch.rowed_ns.tolist(), strict=True))
        self._open = self._opened = stretch.first
        # For each sure window the number of counted ones before it.
        self._counted = [0, *np.cumsum(sure.counts).tolist()]
        self._step_ns, self._step_open = sure.step_ns.tolist(), sure.step_open.tolist()
        self._closed, self._closed_ns = [], []
        self._held.clear()
        self._missed_first, self._missed_last = 0, -1
        self._again_ns = self._stop_ns = None

    def _settle_at_once(self, what: Happenings) -> int:
        """Close all windows that may, while the budget has room whatever follows.

        Returns the number of happenings done: none of them needs a decision.
        """
        if not self._budget.allows_all(0) or not len(what.kind):
            return 0
        stretch, sure = self._stretch, self._sure
        late = what.kind == LATE
        closes = np.where(late, stretch.first, what.window + 1)
        closed = np.maximum.accumulate(np.concatenate([[stretch.first], closes]))
        open_then = np.maximum(closed[:-1], what.sure_open)
        open_after = np.maximum(closed[1:], what.sure_open)
        may_miss = np.where(
            late & (open_then > self._account.first),
            np.minimum(what.limit, open_then - 1) - what.window + 1,
            0,
        )
        has_row = stretch.have_row(what.window, what.tick_ns)
        leaps = int((~has_row & ~late).sum()) + int((~sure.counts).sum())
        room = self._budget.has_room(
            missed=np.maximum(may_miss, 0).cumsum(),
            pending=open_after - what.sure_open,
            windows=open_then - stretch.first - leaps,
        )
        stops = ~room | (~late & (what.window > open_then)) | (open_after > stretch.last)
        done = int(np.argmax(stops)) if stops.any() else len(stops)
        if done < _FEWEST_AT_ONCE:
            return 0
        after, sure_open = int(open_after[done - 1]), int(what.sure_open[done - 1])
        early = np.flatnonzero(~late[:done] & (what.window[:done] == open_then[:done]))
        windows, counts = what.window[early], has_row[early]
        self._closed, self._closed_ns = windows.tolist(), what.tick_ns[early].tolist()
        by_time = np.ones(after - stretch.first, dtype=np.bool_)
        by_time[windows - stretch.first] = False
        rest = np.flatnonzero(by_time)  # windows that were sure before they could close early
        self._leap(windows[~counts], early=True)
        self._leap(stretch.first + rest[~sure.counts[rest]])
        before = self._account.windows
        self._open, self.sure_open = after, max(sure_open, self.sure_open)
        self._open_missed = {window for window in self._open_missed if window >= self.sure_open}
        missed = np.flatnonzero(may_miss[:done] > 0)
        firsts, lasts = merged(what.window[missed], what.window[missed] + may_miss[missed] - 1)
        self._budget.missed += self._account.miss_all(firsts, lasts)
        for at in np.flatnonzero(lasts >= self.sure_open).tolist():
            first = max(int(firsts[at]), self.sure_open)
            self._open_missed.update(range(first, int(lasts[at]) + 1))
        more = int(counts.sum()) + int(sure.counts[rest].sum())
        self._budget.early += len(windows)
        self._budget.denied += int((stretch.first + rest <= self._held_to).sum())
        self._budget.windows += more + self._account.windows - before
        self._budget.pending = after - self.sure_open - len(self._open_missed)
        return done

    def _leave(self, end_ns: int) -> Settled:
        if self._stop_ns is None:
            if self._again_ns is not None:
                self._ask_again(end_ns)
            if self._budget.slack_ns is not None:
                self._close_by_slack(end_ns)
            if (
                self._step_open
                and self._step_open[-1] > self.sure_open
                and self._open <= self._stretch.last
            ):
                self._make_sure(self._step_open[-1])
        return self._settled()

    def _close_early(self, tick_ns: int) -> None:
        window = self._open
        self._closed.append(window)
        self._closed_ns.append(tick_ns)
        self._open = window + 1
        self._budget.pending += 1
        self._budget.early += 1
        if self._rowed.get(window, tick_ns + 1) <= tick_ns:
            self._budget.windows += 1
            if self._budget.slack_ns is not None:
                self._budget.slack_sum_ns += tick_ns - self._windows.end_ns(window)
        else:
            self._account.leap(window, window, early=True)

    def _hold(self, window: int, tick_ns: int, until_ns: int) -> None:
        self._held[window] = until_ns
        self._held_to = max(self._held_to, window)
        if self._again_ns is None:
            self._again_ns = self._next_step_ns(tick_ns, until_ns)

    def _next_step_ns(self, tick_ns: int, until_ns: int) -> int | None:
        # Budgets change only where windows become sure.
        at = bisect_right(self._step_ns, tick_ns)
        is_in_time = at < len(self._step_ns) and self._step_ns[at] < until_ns
        return self._step_ns[at] if is_in_time else None

    def _ask_again(self, before_ns: int) -> None:
        """Close windows that the budget held and now allows, at ticks before `before_ns`."""
        while self._again_ns is not None and self._again_ns < before_ns:
            tick_ns = self._again_ns
            at = bisect_right(self._step_ns, tick_ns)
            if at:
                self._make_sure(self._step_open[at - 1])
            while self._held.get(self._open, tick_ns) > tick_ns and self._budget.allows():
                self._close_early(tick_ns)
            until_ns = self._held.get(self._open, tick_ns)
            self._again_ns = self._next_step_ns(tick_ns, until_ns)

    def due_by_slack_ns(self, window: int) -> int:
        """Return the tick at which the bound on slack closes the next window."""
        end_ns, tick_ns = self._windows.end_ns(window), self._tick_ns
        slack_ns = self._budget.longest_slack_ns(self._windows.slide_ns)
        opens_ns = ((end_ns - self._lead_ns) // tick_ns + 1) * tick_ns
        return max((end_ns + slack_ns) // tick_ns * tick_ns, opens_ns)

    def _close_by_slack(self, before_ns: int) -> None:
        """Close windows by the bound on slack, at ticks before `before_ns`."""
        now_ns = -(-self._stretch.now_ns // self._tick_ns) * self._tick_ns
        while self._open <= self._stretch.last:
            due_ns = max(self.due_by_slack_ns(self._open), now_ns, *self._closed_ns[-1:])
            at = bisect_right(self._step_open, self._open)
            if at < len(self._step_ns) and self._step_ns[at] <= due_ns:
                if self._step_ns[at] >= before_ns:
                    return
                self._make_sure(self._step_open[at])
            elif due_ns >= before_ns:
                return
            else:
                self._close_early(due_ns)

    def _make_sure(self, window: int) -> None:
        """Close the open windows before `window`: each is known to be complete."""
        if window <= self.sure_open:
            return
        if window > self._open:
            first = self._open - self._stretch.first
            last = window - self._stretch.first
            counted = self._counted[last] - self._counted[first]
            self._budget.windows += counted
            self._budget.denied += max(min(window - 1, self._held_to) - self._open + 1, 0)
            if counted < last - first:
                self._leap(self._open + np.flatnonzero(~self._sure.counts[first:last]))
            if self._budget.slack_ns is not None:
                part = slice(first, last)
                number = np.arange(self._open, window)[self._sure.counts[part]]
                at_ns = self._sure.at_ns[part][self._sure.counts[part]]
                slack_ns = exact_sum(at_ns - self._windows.end_ns(number))
                self._budget.slack_sum_ns += slack_ns
            self._open = window
        self.sure_open = window
        if self._open_missed:
            self._open_missed = {missed for missed in self._open_missed if missed >= window}
        self._budget.pending = self._open - window - len(self._open_missed)

    def leap(self, window: int) -> None:
        """Close the open windows before `window`: none has a row, and all are sure."""
        assert self._account.open is not None
        first, last = self._account.open, window - 1
        self._budget.denied += max(min(last, self._held_to) - first + 1, 0)
        self._account.leap(first, last)
        self._account.open = self.sure_open = window
        self._open_missed.clear()
        self._budget.pending = 0

    @property
    def standing(self) -> tuple[int, ...]:
        """State relative to the first open window, without counts that only rise."""
        assert self._account.open is not None
        first, budget = self._account.open, self._budget
        return (
            self.sure_open - first,
            max(self._held_to - first, -1),
            *(budget.windows, budget.missed, budget.pending, budget.slack_sum_ns),
            *sorted(missed - first for missed in self._open_missed),
        )

    def repeat(self, windows: int, *, early: int, denied: int) -> None:
        """Close more windows without a row, all early or none."""
        assert self._account.open is not None
        first = self._account.open
        if self._held_to >= first:
            self._held_to += windows
        self._account.leap(first, first + windows - 1, early=early > 0)
        self._budget.early += early
        self._budget.denied += denied
        self._account.open = first + windows
        self.sure_open += windows
        self._open_missed = {missed + windows for missed in self._open_missed}

    def _leap(self, windows: Int64Array, *, early: bool = False) -> None:
        if not len(windows):
            return
        for run in np.split(windows, np.flatnonzero(np.diff(windows) > 1) + 1):
            self._account.leap(int(run[0]), int(run[-1]), early=early)

    def _miss(self, first: int, last: int, tick_ns: int) -> None:
        """Note that a row was late for these windows."""
        if self._open == self._account.first:
            return  # no window has closed
        if first > last or (first >= self._missed_first and last <= self._missed_last):
            return  # nothing new since the row before
        self._missed_first, self._missed_last = first, last
        before = self._account.windows
        self._budget.missed += self._account.miss(first, last)
        if self._account.windows > before:  # windows got their first row: the budget may allow more
            self._budget.windows += self._account.windows - before
            self._again_ns = tick_ns
        self._open_missed.update(range(max(first, self.sure_open), last + 1))
        self._budget.pending = self._open - self.sure_open - len(self._open_missed)

    def _settled(self) -> Settled:
        """Return the windows that closed early, merged with those that were sure."""
        first = self._opened
        early = np.array(self._closed, dtype=np.int64)
        at_ns = np.empty(self._open - first, dtype=np.int64)
        counts = np.ones(len(at_ns), dtype=np.bool_)
        known = min(len(self._sure.at_ns), len(at_ns))
        at_ns[:known], counts[:known] = self._sure.at_ns[:known], self._sure.counts[:known]
        at_ns[early - first] = self._closed_ns
        is_early = np.zeros(len(at_ns), dtype=np.bool_)
        is_early[early - first] = True
        counts[early - first] = self._stretch.have_row(early, at_ns[early - first])
        numbers = np.arange(first, self._open)
        stop_ns = self._stop_ns
        if stop_ns is None and self._open > self._stretch.last:
            stop_ns = int(at_ns[-1])
        self._account.open = self._open
        return Settled(
            numbers[counts], at_ns[counts], is_early[counts], at_ns, numbers + 1, stop_ns
        )
