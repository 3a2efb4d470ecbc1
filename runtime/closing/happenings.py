"""Possible happenings in a stretch of time, in the order in which `Settling` takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.candidates import Candidates
from slackwater.runtime.closing.ground import TypedRows
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import END_NS, START_NS, BoolArray, Int64Array

LATE, EARLY, FORCED = range(3)
"""Kinds of happenings, in the order in which they count at one tick."""


@dataclass(frozen=True)
class Forced:
    """Ticks at which windows close whatever the budget; both of shape (forced,), ascending."""

    at_ns: Int64Array
    window: Int64Array


@dataclass(frozen=True)
class Sure:
    """Ticks from which windows are known to be complete.

    Attributes:
        step_ns, step_open: shape (steps,): from this tick on all windows before `open` are
            complete.
        at_ns: shape (windows,), the tick of each window, from the first open one on.
        counts: shape (windows,), whether it had a row by then.
    """

    step_ns: Int64Array
    step_open: Int64Array
    at_ns: Int64Array
    counts: BoolArray


@dataclass(frozen=True)
class Happenings:
    """Happenings in order of time, save those that make windows sure. Shape (happenings,).

    Attributes:
        tick_ns: the tick of each.
        kind: LATE: a row is late for the windows `window` … `limit`, if they have closed. EARLY:
            `window` may close until the tick `limit`. FORCED: `window` closes.
        sure_open: the first window that is not sure by then; for a late row: not sure before it.
    """

    tick_ns: Int64Array
    kind: Int64Array
    window: Int64Array
    limit: Int64Array
    sure_open: Int64Array


@dataclass(frozen=True)
class Stretch:
    """Rows of a stretch of time, and the windows that are decided in it.

    Attributes:
        rows: the rows that come.
        rowed, rowed_ns: shape (windows,), the windows that have a row by the end of the stretch,
            ascending, and the tick of each one's first row.
        now_ns, end_ns: ticks in [now, end) are decided.
        pending: the first window that is not known to be complete.
        first, last: the windows that are decided; `first` is the first open one.
    """

    rows: TypedRows
    rowed: Int64Array
    rowed_ns: Int64Array
    now_ns: int
    end_ns: int
    pending: int
    first: int
    last: int

    def have_row(self, windows: Int64Array, tick_ns: Int64Array) -> BoolArray:
        """Return whether windows had a row by given ticks; both of shape (n,)."""
        if not len(self.rowed):
            return np.zeros(len(windows), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.rowed, windows), len(self.rowed) - 1)
        have: BoolArray = (self.rowed[place] == windows) & (self.rowed_ns[place] <= tick_ns)
        return have

    def tick_of_row(self, row: int) -> int:
        """Return the tick of a row: START_NS before the stretch, END_NS after it."""
        if not 0 <= row < len(self.rows):
            return START_NS if row < 0 else END_NS
        return int(self.rows.tick_ns[row])


def sure_of(stretch: Stretch, candidates: Candidates) -> Sure:
    """Return the ticks from which windows are sure."""
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
    """Return the possible happenings of a stretch.

    Args:
        stretch: the stretch of time.
        candidates: when windows may close.
        forced: when windows must close.
        windows: the windows of the aggregate.
        forced_slack_ns: a budget of slack forces no window earlier than this after its end; None if
            no slack is bounded.
    """
    rows = stretch.rows
    late, low, high = _perhaps_late(
        stretch, candidates, forced, windows, forced_slack_ns=forced_slack_ns
    )
    early, must = len(candidates.at_ns), len(forced.at_ns)
    tick_ns = np.concatenate([rows.tick_ns[late], candidates.at_ns, forced.at_ns])
    kind = np.repeat([LATE, EARLY, FORCED], [len(late), early, must])
    window = np.concatenate([low, candidates.window, forced.window])
    limit = np.concatenate([high, candidates.until_ns, forced.window])
    if len(late) or must:
        order = np.lexsort((window, kind, tick_ns))
        tick_ns, kind, window, limit = tick_ns[order], kind[order], window[order], limit[order]
    opens = np.concatenate([[stretch.pending], candidates.sure_open])
    # A late row counts before a tick's sure windows: on whole ticks, by the nanosecond before it.
    step = np.searchsorted(candidates.sure_at_ns, tick_ns - (kind == LATE), side="right")
    return Happenings(tick_ns, kind, window, limit, opens[step])


def _perhaps_late(
    stretch: Stretch,
    candidates: Candidates,
    forced: Forced,
    windows: WindowEnds,
    *,
    forced_slack_ns: int | None,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return rows that may be late, each with its first and last window."""
    rows = stretch.rows
    low = windows.first_after(rows.event_time_ns)
    high = windows.last_begun(rows.event_time_ns)
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
        most = np.maximum(most, windows.first_after(rows.tick_ns - forced_slack_ns) - 1)
    late = np.flatnonzero(low <= np.minimum(high, most))
    return late, low[late], high[late]


@dataclass(frozen=True)
class Settled:
    """Result of a stretch of time.

    Attributes:
        windows, at_ns: shape (closed,), the counted windows, ascending, and when they closed.
        is_early: shape (closed,), whether it closed before it was sure.
        step_ns, step_open: shape (steps,), the first open window from each tick on.
        broken_ns: the tick after which the rest has to be decided again; None if all is decided.
    """

    windows: Int64Array
    at_ns: Int64Array
    is_early: BoolArray
    step_ns: Int64Array
    step_open: Int64Array
    broken_ns: int | None
