"""Policies that estimate no chance: ignore, event-driven, mean delay ([probslack] §2, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slackwater.runtime.closing.first_rows import FirstRows
from slackwater.runtime.closing.ground import GroundRun, TypedRows
from slackwater.runtime.closing.policy import ClosingRun
from slackwater.runtime.closing.windows import WindowEnds, merged
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS, Int64Array, format_ns
from slackwater.runtime.model.state import Fields

TICK_NS = 1_000_000
"""Default resolution of clocks: 1 ms, as in [probslack] §3.1."""


def refuse_no_tick(tick_ns: int) -> None:
    """Refuse a resolution of clocks that is not positive.

    Raises:
        SettingError: it is not positive.
    """
    if tick_ns <= 0:
        raise SettingError(f"tick={tick_ns} ns must be more than zero; omit it for 1 ms")


@dataclass(frozen=True)
class EventDriven:
    """Policy that closes a window once each type has an event after its end.

    It misses nothing where events of a type come in order; else `disorder_ns` bounds their
    disorder. A type that has fallen silent holds all windows open.

    Args:
        disorder_ns: how far events of a type may be out of order.
        tick_ns: the resolution of clocks.
        is_sure: whether no event surely is more out of order, and no new type comes: then the
            chance of a miss is 0, else no chance is stated.

    Raises:
        SettingError: a length of time is out of range.

    Source: [probslack] §2, *event-driven*. Differs: several types; `disorder_ns`.
    """

    disorder_ns: int = 0
    tick_ns: int = TICK_NS
    is_sure: bool = False

    def __post_init__(self) -> None:
        refuse_no_tick(self.tick_ns)
        if self.disorder_ns < 0:
            raise SettingError(
                f"event_driven: disorder={self.disorder_ns} ns must be zero or more; write it like "
                "'30s'"
            )

    @property
    def text(self) -> str:  # noqa: D102 - see Closing
        if not self.disorder_ns:
            return "once each type has an event past its end"
        return f"once each type has an event {format_ns(self.disorder_ns)} past its end"

    def part(self, of: int) -> EventDriven:  # noqa: D102 - see Closing
        del of  # it promises no share of windows, so there is nothing to split
        return self

    def of_sources(self, most_disorder_ns: int) -> EventDriven:
        """Return the policy for sources, each a type, whose disorder is surely no more."""
        return replace(self, is_sure=most_disorder_ns <= self.disorder_ns)

    def begin(self, windows: WindowEnds) -> ClosingRun:  # noqa: D102 - see Closing
        return _EventDrivenRun(windows, self)


@dataclass(frozen=True)
class ByTime:
    """Policy that closes a window a slack after its end, by arrivals.

    Args:
        slack_ns: u, the time after the end; the mean delay of the rows so far if None.

    Raises:
        SettingError: a length of time is out of range.

    Source: [probslack] §2, *ignore* (0) and *user-defined*; §4.1, BL-AD (the mean).
    """

    slack_ns: int | None = None
    tick_ns: int = TICK_NS

    def __post_init__(self) -> None:
        refuse_no_tick(self.tick_ns)
        if self.slack_ns is not None and self.slack_ns < 0:
            raise SettingError(
                f"mean_delay: slack={self.slack_ns} ns must be zero or more; write it like '5s'"
            )

    @property
    def text(self) -> str:  # noqa: D102 - see Closing
        if self.slack_ns is None:
            return "the mean delay after its end"
        return f"{format_ns(self.slack_ns)} after its end" if self.slack_ns else "at its end"

    def part(self, of: int) -> ByTime:  # noqa: D102 - see Closing
        del of  # it promises no share of windows, so there is nothing to split
        return self

    def begin(self, windows: WindowEnds) -> ClosingRun:  # noqa: D102 - see Closing
        return _ByTimeRun(windows, self)


class _SimpleRun(GroundRun):
    """Run that decides all spans between rows at once: no decision depends on missed rows."""

    STATE = GroundRun.STATE + Fields("_rowed")

    def __init__(self, windows: WindowEnds, *, tick_ns: int, is_sure: bool = False) -> None:
        super().__init__(windows, tick_ns=tick_ns, promised=None)
        self._rowed = FirstRows(windows)
        self._chance = 0.0 if is_sure else np.nan  # of a miss, of each window

    def _close_until(self, opens: Int64Array, at_ns: Any, rows: TypedRows) -> None:
        """Close windows span by span; the first span is before any of these rows.

        Args:
            opens: shape (rows + 1,), the first open window at the end of each span.
            at_ns: (windows, their spans) -> the ticks at which they close.
            rows: the rows that begin all spans but the first.
        """
        before = np.maximum.accumulate(np.concatenate([[self._account.open], opens]))
        first, after = before[:-1], before[1:]
        windows, first_row = self._rowed.among(
            rows.event_time_ns, int(first[0]), int(after[-1]) - 1
        )
        spans = after.searchsorted(windows, side="right")
        counted = first_row < spans  # windows that had a row when they closed
        windows, spans = windows[counted], spans[counted]
        self._account.leap_between(windows, int(first[0]), int(after[-1]) - 1)
        closed_at_ns = at_ns(windows, spans)
        self._account.close(windows, closed_at_ns, np.full(len(windows), self._chance))
        moved = np.flatnonzero(after > first)
        ticks = np.concatenate([closed_at_ns, at_ns(after[moved] - 1, moved)])
        opened = np.concatenate([windows + 1, after[moved]])
        order = np.argsort(opened, kind="stable")
        self._steps.append((ticks[order], opened[order]))
        self._miss_rows(first[1:], rows)
        self._account.open = int(after[-1])
        self._rowed.add(rows.event_time_ns, open_from=self._account.open)

    def _miss_rows(self, opens: Int64Array, rows: TypedRows) -> None:
        """Note the windows that rows missed; `opens` is each row's first open window, (rows,)."""
        low = self._windows.first_after(rows.event_time_ns)
        high = np.minimum(opens - 1, self._windows.last_begun(rows.event_time_ns))
        high[opens == self._account.first] = START_NS  # no window had closed
        self._account.miss_all(*merged(low, high))


class _EventDrivenRun(_SimpleRun):
    """Run whose windows close with rows, never between them."""

    STATE = _SimpleRun.STATE + Fields("_newest_of")

    def __init__(self, windows: WindowEnds, policy: EventDriven) -> None:
        super().__init__(windows, tick_ns=policy.tick_ns, is_sure=policy.is_sure)
        self._disorder_ns = policy.disorder_ns
        self._newest_of = np.empty(0, dtype=np.int64)  # (types,), event time

    def _decide(self, rows: TypedRows, until_ns: int) -> None:
        del until_ns
        if not len(rows):
            return
        begun = rows.tick_ns
        least, self._newest_of = least_newest(rows, self._newest_of)
        opens = np.maximum(
            self._windows.first_after(np.maximum(least, START_NS // 2) - self._disorder_ns),
            self._account.first,
        )
        # All rows of a tick are seen before windows close at it, so its last row decides.
        last = np.concatenate([begun[1:] != begun[:-1], [True]])
        opens = np.where(last & ~np.bool_(self._is_held), opens, self._account.first)
        ticks = np.concatenate([[self._frontier_ns], begun])
        self._close_until(
            np.concatenate([[self._account.first], opens]),
            lambda _windows, spans: ticks[spans],
            rows,
        )

    def _next_tick_ns(self) -> None:
        return None


class _ByTimeRun(_SimpleRun):
    """Run whose windows close between rows, after the slack of the rows so far."""

    STATE = _SimpleRun.STATE + Fields("_delays_ns", "_rows")

    def __init__(self, windows: WindowEnds, policy: ByTime) -> None:
        super().__init__(windows, tick_ns=policy.tick_ns)
        self._slack_of = policy.slack_ns
        self._delays_ns = 0.0  # the sum, which may exceed 64 bits as a whole number
        self._rows = 0

    def _decide(self, rows: TypedRows, until_ns: int) -> None:
        slack_ns = self._slacks_ns(rows)
        begun = np.concatenate([[self._frontier_ns], rows.tick_ns])
        last_ns = np.concatenate(
            [rows.tick_ns - self._tick_ns, [self._last_tick_ns(until_ns)]]
        )  # the last tick of each span, before its begin where rows come at one tick
        opens = np.where(
            last_ns >= begun, self._windows.first_after(last_ns - slack_ns), self._account.first
        )

        def at_ns(windows: Int64Array, spans: Int64Array) -> Int64Array:
            due_ns = self._windows.end_ns(windows) + slack_ns[spans]
            on_tick = -(-due_ns // self._tick_ns) * self._tick_ns
            closed_ns: Int64Array = np.maximum(on_tick, begun[spans])
            return closed_ns

        self._close_until(opens, at_ns, rows)

    def _slacks_ns(self, rows: TypedRows) -> Int64Array:
        """Return the slack of each span, shape (rows + 1,)."""
        if self._slack_of is not None:
            return np.full(len(rows) + 1, self._slack_of, dtype=np.int64)
        delays_ns = rows.tick_ns - rows.event_time_ns
        # Added one by one: the sum must not depend on how rows are cut into calls.
        sums = np.cumsum(np.concatenate([[self._delays_ns], delays_ns]))
        counts = self._rows + np.arange(len(rows) + 1)
        self._delays_ns, self._rows = float(sums[-1]), int(counts[-1])
        means: Int64Array = np.floor(sums / np.maximum(counts, 1)).astype(np.int64)
        return means

    def _next_tick_ns(self) -> int:
        assert self._account.open is not None
        slack_ns = int(self._slacks_ns(_NO_ROWS)[0])
        due_ns = self._windows.end_ns(self._account.open) + slack_ns
        return max(-(-due_ns // self._tick_ns) * self._tick_ns, self._frontier_ns)


_NO_ROWS = TypedRows(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def least_newest(rows: TypedRows, newest_of: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the least, over types, of the newest event time of each, after each row.

    Args:
        rows: next rows of the input.
        newest_of: shape (types,), the newest event time of each type before them.

    Returns:
        Shape (rows,), over the types that have come by then; and (types,), the newest after all
        rows.
    """
    types = max(len(newest_of), int(rows.types.max(initial=-1)) + 1)
    newest = np.full(types, START_NS)
    newest[: len(newest_of)] = newest_of
    if types == 1:
        after = np.maximum(np.maximum.accumulate(rows.event_time_ns), newest[0])
        return after, after[-1:].copy()
    least = np.full(len(rows), 2**63 - 1)
    for kind in range(types):
        mine = np.where(rows.types == kind, rows.event_time_ns, START_NS)
        after = np.maximum(np.maximum.accumulate(mine), newest[kind])
        least = np.where(after > START_NS, np.minimum(least, after), least)
        newest[kind] = after[-1]
    return least, newest
