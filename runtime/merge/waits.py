"""Log of when a gate's rows came: how long each has waited."""

from __future__ import annotations

import heapq
from typing import TypeAlias

import numpy as np

from slackwater.runtime.merge.reader import Cut, Key
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import Fields

_MANY = 256

Came: TypeAlias = tuple[int, int, Int64Array]
"""(when it came, the writer's place in the tie order, the rows' event times, sorted)."""


class _Message:
    """Rows that came together; `start` of them have left."""

    __slots__ = ("came_ns", "place", "start", "times_ns")

    def __init__(self, came_ns: int, place: int, times_ns: Int64Array) -> None:
        self.came_ns, self.place, self.times_ns = came_ns, place, times_ns
        self.start = 0

    @property
    def is_gone(self) -> bool:
        return self.start == len(self.times_ns)


class WaitLog:
    """Log of the messages of which a gate still holds rows."""

    STATE = Fields("_late_since_ns", "_came")

    def __init__(self) -> None:
        # Both heaps have a number before the message, so that messages are never compared.
        self._by_next: list[tuple[int, int, int, _Message]] = []  # (oldest row held, place, …)
        self._by_coming: list[tuple[int, int, _Message]] = []  # and some that have gone
        self._number = 0
        self._late_since_ns: int | None = None

    def add(self, place: int, batch: Batch, came_ns: int, *, is_mixed: bool, last_key: Key) -> None:
        """Take note of rows that came.

        Args:
            place: place of their writer in the tie order.
            batch: batch of at least one row.
            came_ns: arrival of the rows.
            is_mixed: whether they may be in any order.
            last_key: rows before it are late, and leave with the next read.
        """
        times = batch.event_time_ns
        if is_mixed and len(times) > 1:
            times = np.sort(times)
        late = _before(times, place, last_key[:2])
        if batch.writers is not None and place == last_key[1]:  # of one time: by writer
            at_once = batch.event_time_ns == last_key[0]
            late += int(np.count_nonzero(at_once & (batch.writers < last_key[2])))
        if late:
            since_ns = self._late_since_ns
            self._late_since_ns = came_ns if since_ns is None else min(since_ns, came_ns)
            times = times[late:]
        if len(times):
            self._keep(_Message(came_ns, place, times))

    def left(self, cut: Cut, *, has_late: bool = False) -> int | None:
        """Take note that the rows before the cut have left, and those that were late.

        Args:
            cut: cut of the read.
            has_late: late rows are left, which a limit has kept back.

        Returns:
            When the one of them came that had waited longest; None if none have left.
        """
        since_ns = self._late_since_ns
        if not has_late:
            self._late_since_ns = None
        by_next = self._by_next
        while by_next and by_next[0][:2] < cut:
            _, place, number, message = by_next[0]
            if since_ns is None or message.came_ns < since_ns:
                since_ns = message.came_ns
            times = message.times_ns
            message.start = _before(times, place, cut)
            if message.is_gone:
                heapq.heappop(by_next)
            else:
                heapq.heapreplace(by_next, (times.item(message.start), place, number, message))
        if len(self._by_coming) > 2 * len(by_next) + _MANY:  # one that stays, others have gone
            self._by_coming = [(m.came_ns, number, m) for _, _, number, m in by_next]
            heapq.heapify(self._by_coming)
        return since_ns

    def oldest_ns(self) -> int | None:
        """Return when the row came that has waited longest; None if nothing is held."""
        by_coming = self._by_coming
        while by_coming and by_coming[0][2].is_gone:
            heapq.heappop(by_coming)
        return by_coming[0][0] if by_coming else None

    def due(self, until_ns: int) -> int | None:
        """Return the newest event time held of rows up to then; None if none exists."""
        newest_ns: int | None = None
        at, by_coming = [0], self._by_coming
        while at:  # down the heap as far as it came early enough
            index = at.pop()
            if index >= len(by_coming) or by_coming[index][0] > until_ns:
                continue
            message = by_coming[index][2]
            last_ns = message.times_ns.item(-1)
            if not message.is_gone and (newest_ns is None or last_ns > newest_ns):
                newest_ns = last_ns
            at += (2 * index + 1, 2 * index + 2)
        return newest_ns

    def held(self) -> list[Came]:
        """Return what is held, in the order of its coming."""
        live = sorted(entry for entry in self._by_coming if not entry[2].is_gone)
        return [(m.came_ns, m.place, m.times_ns[m.start :]) for _, _, m in live]

    @property
    def _came(self) -> list[Came]:
        return self.held()

    @_came.setter
    def _came(self, held: list[Came]) -> None:
        for came in held:
            self._keep(_Message(*came))

    def _keep(self, message: _Message) -> None:
        self._number += 1
        first_ns = message.times_ns.item(0)
        heapq.heappush(self._by_next, (first_ns, message.place, self._number, message))
        heapq.heappush(self._by_coming, (message.came_ns, self._number, message))


def _before(times_ns: Int64Array, place: int, cut: Cut) -> int:
    """Return how many of a writer's sorted rows are before a cut."""
    if (times_ns.item(0), place) >= cut:
        return 0
    if (times_ns.item(-1), place) < cut:
        return len(times_ns)
    cut_ns, ties = cut
    return int(times_ns.searchsorted(cut_ns, side="right" if place < ties else "left"))
