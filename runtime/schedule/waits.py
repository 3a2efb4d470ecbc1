"""When the rows that a gate holds came: how long each has waited, and whose time is up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from runtime.model import START_NS, Batch, Int64Array

_MANY = 256

_Came = tuple[int, Int64Array]  # (when, the rows' event times, sorted)


class WaitLog:
    """The messages whose rows a gate still holds, by channel, in the order of their coming.

    Args:
        is_mixed: for each channel, whether its rows may come in any order.
    """

    def __init__(self, is_mixed: Sequence[bool]) -> None:
        self._is_mixed = list(is_mixed)
        self._channels: list[deque[_Came]] = [deque() for _ in is_mixed]
        self._swept = [_MANY] * len(self._channels)  # how long each may be before it is swept
        self._left_ns = START_NS  # rows older than this have left

    def add(self, channel: int, batch: Batch, came_ns: int) -> None:
        """Take note of rows that came on a channel; late ones leave with the next read."""
        times = batch.event_time_ns
        if self._is_mixed[channel] and len(times) > 1:
            times = np.sort(times)
        self._channels[channel].append((came_ns, times))

    def left(self, bound_ns: int) -> int | None:
        """Take note that rows older than `bound_ns` have left.

        Returns:
            When the one of them came that had waited longest; None if none have left. Rows that
            were late have not waited.
        """
        if bound_ns <= self._left_ns:
            return None
        since_ns: int | None = None
        for number, channel in enumerate(self._channels):
            while channel and channel[0][1].item(-1) < bound_ns:
                came_ns, times = channel.popleft()
                if times.item(-1) >= self._left_ns and (since_ns is None or came_ns < since_ns):
                    since_ns = came_ns
            for came_ns, times in channel:
                is_ahead = times.item(0) >= bound_ns
                if (since_ns is not None and came_ns >= since_ns) or (
                    is_ahead and not self._is_mixed[number]
                ):
                    break
                if not is_ahead and _has_between(times, self._left_ns, bound_ns):
                    since_ns = came_ns
                    break
            if len(channel) > self._swept[number]:  # one that stays, and many behind it that left
                kept = [came for came in channel if came[1].item(-1) >= bound_ns]
                self._channels[number] = deque(kept)
                self._swept[number] = _MANY + 2 * len(kept)
        self._left_ns = bound_ns
        return since_ns

    def oldest_ns(self) -> int | None:
        """Return when the row came that has waited longest; None if nothing is held."""
        return min((channel[0][0] for channel in self._channels if channel), default=None)

    def due(self, until_ns: int) -> int | None:
        """Return the newest event time among what came up to then and is held; None: nothing."""
        newest_ns: int | None = None
        for channel in self._channels:
            for came_ns, times in channel:
                if came_ns > until_ns:
                    break
                last_ns = times.item(-1)
                if newest_ns is None or last_ns > newest_ns:
                    newest_ns = last_ns
        return newest_ns


class ReadLog:
    """When rows of each read of its gate came to a replica, of those that it has not done with."""

    def __init__(self) -> None:
        self._came_ns: dict[int, int] = {}  # {number of the read: when the first rows of it came}

    def add(self, number: int, came_ns: int) -> None:
        """Take note that rows of a read have come."""
        self._came_ns.setdefault(number, came_ns)

    def left(self, unread: int, held: int) -> int | None:
        """Take note that all reads before `unread` go on, and those before `held` to their end.

        Returns:
            When rows came that had waited longest of those that go on; None if there are none.
        """
        since_ns = min([at for n, at in self._came_ns.items() if n < unread], default=None)
        for number in [n for n in self._came_ns if n < held]:
            del self._came_ns[number]
        return since_ns

    def oldest_ns(self) -> int | None:
        """Return when the row came that has waited longest; None if nothing is held."""
        return min(self._came_ns.values(), default=None)


def _has_between(times_ns: Int64Array, first_ns: int, bound_ns: int) -> bool:
    """Whether one of these times, sorted, is in [first, bound)."""
    start = int(times_ns.searchsorted(first_ns))
    return start < len(times_ns) and times_ns.item(start) < bound_ns
