"""What may happen in a stretch of time, in its order: what `Settling` goes through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.candidates import Candidates
from slackwater.runtime.closing.ground import Seen
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import END_NS, START_NS, BoolArray, Int64Array

LATE, EARLY, FORCED = range(3)
"""What happens at one tick, in this order."""


@dataclass(frozen=True)
class Forced:
    """When windows close whatever the budget says; both of shape (forced,), ascending."""

    at_ns: Int64Array
    window: Int64Array


@dataclass(frozen=True)
class Sure:
    """When it is sure that windows are complete.

    Attributes:
        step_ns, step_open: shape (steps,): from this tick on all before window `open` are.
        at_ns: shape (windows,), from the first that is looked at on: when each is.
        counts: shape (windows,), whether a row of it had come by then.
    """

    step_ns: Int64Array
    step_open: Int64Array
    at_ns: Int64Array
    counts: BoolArray


@dataclass(frozen=True)
class Happenings:
    """All but what is sure, in order of time. All of shape (happenings,).

    Attributes:
        tick_ns: when.
        kind: LATE: a row is behind the windows `one` … `two`, if they have closed. EARLY: window
            `one` may close, until `two`, a tick. FORCED: window `one` closes.
        sure_open: the first window that is not sure by then; of a row that is late: before it.
    """

    tick_ns: Int64Array
    kind: Int64Array
    one: Int64Array
    two: Int64Array
    sure_open: Int64Array


@dataclass(frozen=True)
class Stretch:
    """The rows that come in a stretch of time, and what is looked at in it.

    Attributes:
        rows: that come.
        rowed, rowed_ns: shape (windows,), the windows that have a row by the end of it, ascending,
            and the tick at which the first was there.
        now_ns, end_ns: ticks in [now, end) are decided.
        pending: the first window of which it is not sure yet that it is complete.
        first, last: the windows that are looked at; `first` is the first open one.
    """

    rows: Seen
    rowed: Int64Array
    rowed_ns: Int64Array
    now_ns: int
    end_ns: int
    pending: int
    first: int
    last: int

    def have_row(self, windows: Int64Array, tick_ns: Int64Array) -> BoolArray:
        """Return whether windows had a row by ticks; both of shape (n,)."""
        if not len(self.rowed):
            return np.zeros(len(windows), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.rowed, windows), len(self.rowed) - 1)
        found: BoolArray = (self.rowed[place] == windows) & (self.rowed_ns[place] <= tick_ns)
        return found

    def tick_of_row(self, row: int) -> int:
        """Return when a row comes; of one before the stretch or behind it: long ago, or never."""
        if not 0 <= row < len(self.rows):
            return START_NS if row < 0 else END_NS
        return int(self.rows.tick_ns[row])


def sure_of(stretch: Stretch, candidates: Candidates) -> Sure:
    """Return when windows are sure."""
    step_ns, step_open = candidates.sure_at_ns, candidates.sure_open
    if not len(step_ns):
        none = np.empty(0, dtype=np.int64)
        return Sure(step_ns, step_open, none, none.astype(np.bool_))
    number = np.arange(stretch.first, int(step_open[-1]))
    step = np.searchsorted(step_open, number, side="right")
    return Sure(step_ns, step_open, step_ns[step], stretch.have_row(number, step_ns[step]))


def happenings_of(
    stretch: Stretch,
    candidates: Candidates,
    forced: Forced,
    windows: WindowEnds,
    *,
    forced_slack_ns: int | None,
) -> Happenings:
    """Return what may happen.

    Args:
        stretch: where.
        candidates: when windows may close.
        forced: when they must.
        windows: which there are.
        forced_slack_ns: what a budget of slack forces is no earlier behind an end than that.
    """
    rows = stretch.rows
    late, low, high = _perhaps_late(
        stretch, candidates, forced, windows, forced_slack_ns=forced_slack_ns
    )
    early, must = len(candidates.at_ns), len(forced.at_ns)
    tick_ns = np.concatenate([rows.tick_ns[late], candidates.at_ns, forced.at_ns])
    kind = np.repeat([LATE, EARLY, FORCED], [len(late), early, must])
    one = np.concatenate([low, candidates.window, forced.window])
    two = np.concatenate([high, candidates.until_ns, forced.window])
    if len(late) or must:
        order = np.lexsort((one, kind, tick_ns))
        tick_ns, kind, one, two = tick_ns[order], kind[order], one[order], two[order]
    opens = np.concatenate([[stretch.pending], candidates.sure_open])
    # On whole ticks, "before this tick" is "by the nanosecond before it".
    step = np.searchsorted(candidates.sure_at_ns, tick_ns - (kind == LATE), side="right")
    return Happenings(tick_ns, kind, one, two, opens[step])


def _perhaps_late(
    stretch: Stretch,
    candidates: Candidates,
    forced: Forced,
    windows: WindowEnds,
    *,
    forced_slack_ns: int | None,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return rows that are late if all closes that may, and the first and last window of each."""
    rows = stretch.rows
    low = windows.firsts_after(rows.event_time_ns)
    high = windows.lasts_begun(rows.event_time_ns)
    most = np.full(len(rows), stretch.first - 1)
    for ticks, last in (
        (candidates.at_ns, candidates.window),
        (candidates.sure_at_ns, candidates.sure_open - 1),
        (forced.at_ns, forced.window),
    ):
        if len(ticks):
            so_far = np.concatenate([[stretch.first - 1], np.maximum.accumulate(last)])
            most = np.maximum(most, so_far[np.searchsorted(ticks, rows.tick_ns, side="left")])
    if forced_slack_ns is not None:
        most = np.maximum(most, windows.firsts_after(rows.tick_ns - forced_slack_ns) - 1)
    late = np.flatnonzero(low <= np.minimum(high, most))
    return late, low[late], high[late]


@dataclass(frozen=True)
class Settled:
    """What came of a stretch of time.

    Attributes:
        windows, at_ns: shape (closed,), those that count, ascending, and when they closed.
        is_early: shape (closed,), whether it was not sure.
        step_ns, step_open: shape (steps,), from which tick on which window is the first open one.
        broken_ns: the tick at which it stopped: the rest has to be looked at anew; None: nowhere.
    """

    windows: Int64Array
    at_ns: Int64Array
    is_early: BoolArray
    step_ns: Int64Array
    step_open: Int64Array
    broken_ns: int | None
