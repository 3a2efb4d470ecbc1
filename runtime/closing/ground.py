"""Ground of all runs: ticks, waiting rows, windows closed before each row.

A row is seen from the tick on that its arrival falls into; a policy decides at a tick with all rows
that have come by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.closing.account import Account
from slackwater.runtime.closing.policy import ClosedWindows, ClosingCounts
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import EARLIEST_NS, END_NS, LATEST_NS, START_NS, Int64Array
from slackwater.runtime.model.state import Fields

NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class TypedRows:
    """Rows in the order in which they came. All arrays have shape (rows,).

    Attributes:
        types: the type of each.
        event_time_ns: its event time.
        tick_ns: the first tick at which it has come, never decreasing.
    """

    types: Int64Array
    event_time_ns: Int64Array
    tick_ns: Int64Array

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, part: slice) -> TypedRows:
        return TypedRows(self.types[part], self.event_time_ns[part], self.tick_ns[part])


def rows_of_types(types: Any, event_time_ns: Any, tick_ns: Any) -> TypedRows:
    """Return rows made of any array-likes of whole numbers."""
    return TypedRows(
        np.asarray(types, dtype=np.int64),
        np.asarray(event_time_ns, dtype=np.int64),
        np.asarray(tick_ns, dtype=np.int64),
    )


def _joined(first: TypedRows, second: TypedRows) -> TypedRows:
    if not len(first):
        return second
    return TypedRows(
        np.concatenate([first.types, second.types]),
        np.concatenate([first.event_time_ns, second.event_time_ns]),
        np.concatenate([first.tick_ns, second.tick_ns]),
    )


def _refuse_far(times_ns: Int64Array, *, what: str) -> None:
    """Refuse times that leave no room for the arithmetic of windows in 64 bits.

    Raises:
        SchemaError: a time lies outside the years 1824 to 2116.
    """
    if times_ns.min() < EARLIEST_NS or times_ns.max() > LATEST_NS:
        raise SchemaError(
            f"an aggregate with close= got an {what} time outside the years 1824 to 2116; most "
            "often its unit is wrong, or it stands for 'never': set time_unit=, or drop such rows"
        )


class GroundRun:
    """Base of a `ClosingRun`; a subclass decides in `_decide`.

    Args:
        windows: the windows of the aggregate.
        tick_ns: the resolution of the clock, ρ.
        promised: the share of windows that may miss a row; None if none is promised.
    """

    STATE = Fields(
        "_account",
        "_frontier_ns",
        "_waiting",
        "_newest_ns",
        "_ended",
        "_is_held",
        elements={"_waiting": TypedRows},
    )

    def __init__(self, windows: WindowEnds, *, tick_ns: int, promised: float | None) -> None:
        self._windows = windows
        self._tick_ns = tick_ns
        self._promised = promised
        self._account = Account(windows)
        self._frontier_ns = START_NS  # all ticks before this time are decided
        self._waiting = rows_of_types([], [], [])  # rows that have come since
        self._newest_ns = START_NS  # newest event time of all rows that were decided with
        self._ended = self._is_held = False
        self._steps: list[tuple[Int64Array, Int64Array]] = []  # (tick, first open from then on)

    def _decide(self, rows: TypedRows, until_ns: int) -> None:
        """Close windows at the ticks from the frontier on, before `until_ns`.

        Closed windows are noted in the account and, in order, in the steps.

        Args:
            rows: the rows that are seen from these ticks on.
            until_ns: a time, on a tick or not.
        """
        raise NotImplementedError

    def _next_tick_ns(self) -> int | None:
        """Return the tick of the next closing without further rows; None if none follows."""
        raise NotImplementedError

    def observe(  # noqa: D102 - see ClosingRun
        self, types: Int64Array, event_time_ns: Int64Array, arrival_ns: Int64Array
    ) -> Int64Array:
        if not len(types):
            return NOTHING
        _refuse_far(event_time_ns, what="event")
        _refuse_far(arrival_ns, what="arrival")
        arrival_ns = np.maximum(np.maximum.accumulate(arrival_ns), self._frontier_ns)
        tick_ns = -(-arrival_ns // self._tick_ns) * self._tick_ns
        self._waiting = _joined(self._waiting, TypedRows(types, event_time_ns, tick_ns))
        closed_ns = self._account.closed_ns
        self._advance(int(arrival_ns[-1]))
        if not self._steps:
            return np.full(len(types), closed_ns, dtype=np.int64)
        at_ns = np.concatenate([ticks for ticks, _ in self._steps])
        opens = np.concatenate([opens for _, opens in self._steps])
        self._steps.clear()
        closed = np.concatenate([[closed_ns], self._windows.end_ns(opens - 1)])
        closed_by_then: Int64Array = closed[np.searchsorted(at_ns, arrival_ns, side="left")]
        return closed_by_then

    def hold(self, is_held: bool) -> None:  # noqa: D102 - see ClosingRun
        self._is_held = is_held

    def pass_time(self, now_ns: int) -> int:  # noqa: D102 - see ClosingRun
        self._advance(now_ns)
        self._steps.clear()
        return END_NS if self._ended else self._account.closed_ns

    def next_ns(self) -> int | None:  # noqa: D102 - see ClosingRun
        if len(self._waiting):
            return int(self._waiting.tick_ns[0]) + 1  # rows that no tick has seen yet
        if self._account.open is None or self._ended:
            return None
        tick_ns = self._next_tick_ns()
        return None if tick_ns is None else tick_ns + 1

    def finish(self) -> int:  # noqa: D102 - see ClosingRun
        if len(self._waiting):
            self._advance(int(self._waiting.tick_ns[-1]) + 1)
        self._steps.clear()
        self._ended = True
        return END_NS

    def closings(self) -> ClosedWindows:  # noqa: D102 - see ClosingRun
        return self._account.closings()

    def counts(self) -> ClosingCounts:  # noqa: D102 - see ClosingRun
        return self._account.counts(self._promised)

    def _advance(self, until_ns: int) -> None:
        if until_ns <= self._frontier_ns or self._ended:
            return
        count = int(np.searchsorted(self._waiting.tick_ns, until_ns, side="left"))
        rows, self._waiting = self._waiting[:count], self._waiting[count:]
        if self._account.open is None and count:
            together = rows.tick_ns == rows.tick_ns[0]
            oldest_ns = int(rows.event_time_ns[together].min())
            self._account.begin(self._windows.first_after(oldest_ns))
            self._frontier_ns = int(rows.tick_ns[0])  # nothing closes before the first rows
        if self._account.open is not None:
            self._decide(rows, until_ns)
        if count:
            self._newest_ns = max(self._newest_ns, int(rows.event_time_ns.max()))
        self._frontier_ns = until_ns

    def _last_tick_ns(self, before_ns: int) -> int:
        return (before_ns - 1) // self._tick_ns * self._tick_ns
