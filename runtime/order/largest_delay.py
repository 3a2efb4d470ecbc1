"""Largest delay seen so far, as MP-K-slack keeps it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields

DelayFrom = Literal["next", "newest"]
"""Start of a row's delay: the next row that moves the newest, as in [thesis], or the newest when
the row came."""


class LargestDelay:
    """K of MP-K-slack: the largest delay of any row, updated when the newest moves.

    Args:
        at_most_ns: a row more than this older than the newest does not count: its clock is wrong.
        delay_from: start of a delay, see `DelayFrom`. With "next" a silence after a late row counts
            as delay, up to `at_most_ns`.

    Source: [thesis] §2.3.2, action (1). Differs: the bound; and a row with exactly the newest's
    event time has no delay.
    """

    STATE = Fields("_k_ns", "_newest_ns", "_pending_ns")

    def __init__(self, at_most_ns: int, delay_from: DelayFrom) -> None:
        self._at_most_ns, self._delay_from = at_most_ns, delay_from
        self._k_ns = 0
        self._newest_ns = START_NS
        self._pending_ns: int | None = None  # oldest time, or largest delay, not counted yet

    def extend(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return K once each row has come, shape (rows,).

        Args:
            event_time_ns: shape (rows,), rows > 0.
            newest_ns: shape (rows,), the newest event time up to each row.
        """
        moves = newest_ns > before(newest_ns, self._newest_ns)
        self._newest_ns = int(newest_ns[-1])
        k_ns = np.full(len(newest_ns), self._k_ns, dtype=np.int64)
        moved = np.flatnonzero(moves)
        if self._pending_ns is not None and len(moved):
            first = int(moved[0])
            k_ns[first] = max(self._k_ns, self._delay_ns(self._pending_ns, int(newest_ns[first])))
            self._pending_ns = None
        delayed = delayed_rows(event_time_ns, newest_ns, self._at_most_ns)
        if len(delayed):
            place = moved.searchsorted(delayed)
            counted = delayed[: int(place.searchsorted(len(moved)))]
            at = moved[place[: len(counted)]]
            from_ns = newest_ns[counted if self._delay_from == "newest" else at]
            delay_ns = np.minimum(from_ns - event_time_ns[counted], self._at_most_ns)
            np.maximum.at(k_ns, at, delay_ns)
            self._remember(delayed[len(counted) :], event_time_ns, newest_ns)
        k_ns = np.maximum.accumulate(k_ns)
        self._k_ns = int(k_ns[-1])
        return k_ns

    def _delay_ns(self, pending_ns: int, newest_ns: int) -> int:
        if self._delay_from == "newest":
            return pending_ns
        return min(newest_ns - pending_ns, self._at_most_ns)

    def _remember(self, rows: Int64Array, event_time_ns: Int64Array, newest_ns: Int64Array) -> None:
        """Keep the oldest time, or largest delay, of rows before the newest moves."""
        if not len(rows):
            return
        known_ns = [] if self._pending_ns is None else [self._pending_ns]
        if self._delay_from == "newest":
            self._pending_ns = max([int((newest_ns[rows] - event_time_ns[rows]).max()), *known_ns])
        else:
            self._pending_ns = min([int(event_time_ns[rows].min()), *known_ns])


def before(values: Int64Array, first: int) -> Int64Array:
    """Return the value before each, shape (rows,); `first` comes before the first."""
    ahead = np.empty_like(values)
    ahead[0] = first
    ahead[1:] = values[:-1]
    return ahead


def delayed_rows(event_time_ns: Int64Array, newest_ns: Int64Array, at_most_ns: int) -> Int64Array:
    """Return the positions of rows older than the newest by at most `at_most_ns`, ascending."""
    delay_ns = newest_ns - event_time_ns
    rows: Int64Array = np.flatnonzero((delay_ns > 0) & (delay_ns <= at_most_ns))
    return rows
