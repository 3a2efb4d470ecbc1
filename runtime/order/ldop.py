"""LDOP: rows wait for a window, and for some times the mean delay of rows that were behind.

Source: [thesis] §2.3.4, Eq. 2.4, 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, Int64Array, duration_ns, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.buffer import Buffer, Buffering, Late, Released, check_buffer
from slackwater.runtime.order.largest_delay import behind_rows
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.order.settings import is_number

_US = 1_000


def ldop(
    *, window: Duration, factor: float = 1.0, at_most: Duration = "1h", late: Late = "drop"
) -> Ldop:
    """Return the policy that holds rows for a window, and `factor` times the latency distance.

    Args:
        window: |w|: what a pattern needs of the rows behind one, and over which the latency
            distance is a mean.
        factor: SF, the slack factor, >= 0.
        at_most: a row further behind the newest than this is taken for a wrong clock, and does
            not count in the mean.
        late: what becomes of rows behind what was released: "drop" or "pass", counted either way.

    Raises:
        SettingError: no length of time, zero, a factor below zero, or no such word.

    Source: [thesis] §2.3.4. Differs: a delay is how far a row is behind the newest event time, not
    arrival less event time: clocks of sources need not agree with ours then. The factor is given,
    not drawn from a range. Filtering by the types of a pattern is a `filter` behind the source.
    """
    return Ldop(
        window_ns=duration_ns(window, what="ldop: window"),
        factor=factor,
        at_most_ns=duration_ns(at_most, what="ldop: at_most"),
        late=late,
    )


@dataclass(frozen=True, kw_only=True)
class Ldop(Buffer):
    """Rows are held for a window and some times the mean delay. Settings are those of `ldop`."""

    window_ns: int
    factor: float
    at_most_ns: int
    late: Late

    def __post_init__(self) -> None:
        check_buffer("ldop", late=self.late, window=self.window_ns, at_most=self.at_most_ns)
        if not (is_number(self.factor) and 0 <= self.factor <= 1_000):
            raise SettingError(
                f"ldop: factor={self.factor!r} must lie between 0 and 1000: so many mean delays a "
                "row waits for beyond the window"
            )

    @property
    def text(self) -> str:
        """How `explain` says it."""
        return self._said(
            f"LDOP: {format_ns(self.window_ns)} and {self.factor:g} times the mean delay"
        )

    @property
    def longest_ns(self) -> int:
        """What it may come to."""
        return self.window_ns + int(self.factor * self.at_most_ns)

    def begin(self) -> Reordering:
        """Hold rows for the window, to begin with."""
        return Buffering(_Distance(self))


class _Distance:
    """The slack |w| + SF · LD, as it goes."""

    STATE = Fields("_seen_ns", "_delays_us")

    def __init__(self, settings: Ldop) -> None:
        self._settings = settings
        # Of the rows that were behind within the last window: the newest then, and by how much,
        # in whole microseconds, so that a sum of millions is exact.
        self._seen_ns = np.empty(0, dtype=np.int64)
        self._delays_us = np.empty(0, dtype=np.int64)

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        """Return the newest event time released, as `Slack` says."""
        distance_ns = self._latency_distance_ns(event_time_ns, newest_ns)
        waits_ns = np.floor(self._settings.factor * distance_ns).astype(np.int64)
        return released.extend(event_time_ns, newest_ns - self._settings.window_ns - waits_ns)

    def _latency_distance_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return LD when each row has come, shape (rows,); 0 without a late one. Eq. 2.4."""
        window_ns = self._settings.window_ns
        behind = behind_rows(event_time_ns, newest_ns, self._settings.at_most_ns)
        delays_us = (newest_ns[behind] - event_time_ns[behind]) // _US
        seen_ns = np.concatenate([self._seen_ns, newest_ns[behind]])
        delays_us = np.concatenate([self._delays_us, delays_us])
        upto_us = np.concatenate([[0], np.cumsum(delays_us)])
        last = len(self._seen_ns) + np.searchsorted(behind, np.arange(len(newest_ns)), side="right")
        first = seen_ns.searchsorted(newest_ns - window_ns, side="right")
        number = last - first
        mean_us: Int64Array = (upto_us[last] - upto_us[first]) // np.maximum(number, 1)
        kept = int(seen_ns.searchsorted(int(newest_ns[-1]) - window_ns, side="right"))
        self._seen_ns, self._delays_us = seen_ns[kept:], delays_us[kept:]
        return mean_us * _US
