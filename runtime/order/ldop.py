"""LDOP: rows wait for a window, plus a multiple of the mean delay.

Source: [thesis] §2.3.4, Eq. 2.4, 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, Int64Array, duration_ns, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.buffer import Buffer, Buffering, Late, Released, check_buffer
from slackwater.runtime.order.largest_delay import delayed_rows
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.order.settings import is_number
from slackwater.runtime.shown import shown

_US = 1_000


@checked_options
def ldop(
    *, window: Duration, factor: float = 1.0, at_most: Duration = "1h", late: Late = "drop"
) -> Ldop:
    """Return the policy that holds rows for a window plus `factor` × latency distance.

    Args:
        window: |w|: the time in which a pattern needs later rows, and over which the latency
            distance is a mean.
        factor: SF, the slack factor, from 0 to 1000.
        at_most: a row more than this older than the newest counts as a wrong clock, and does not
            count in the mean.
        late: rows older than a released one: "drop" or "pass", counted either way.

    Raises:
        SettingError: a length of time or the factor is out of range, or a word is unknown.

    Source: [thesis] §2.3.4. Differs: a delay is the newest event time less the row's, not arrival
    less event time: so clocks of sources need not agree with ours. The factor is given, not drawn
    from a range. To filter by the types of a pattern, add a `filter` after the source.
    """
    return Ldop(
        window_ns=duration_ns(window, what="ldop: window"),
        factor=factor,
        at_most_ns=duration_ns(at_most, what="ldop: at_most"),
        late=late,
    )


@dataclass(frozen=True, kw_only=True)
class Ldop(Buffer):
    """Policy that holds rows for a window and mean delays. See `ldop`."""

    window_ns: int
    factor: float
    at_most_ns: int
    late: Late

    def __post_init__(self) -> None:
        check_buffer("ldop", late=self.late, window=self.window_ns, at_most=self.at_most_ns)
        if not (is_number(self.factor) and 0 <= self.factor <= 1_000):
            raise SettingError(
                f"ldop: factor={shown(self.factor)} must lie between 0 and 1000, the mean delays "
                "that a row waits for after the window; write 1, say"
            )

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return self._with_late(
            f"LDOP: {format_ns(self.window_ns)} and {self.factor:g} times the mean delay"
        )

    @property
    def longest_ns(self) -> int:  # noqa: D102 - see Reorder
        return self.window_ns + int(self.factor * self.at_most_ns)

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return Buffering(_Distance(self))


class _Distance:
    """Slack |w| + SF · LD, with LD measured as rows come."""

    STATE = Fields("_seen_ns", "_delays_us")

    def __init__(self, settings: Ldop) -> None:
        self._settings = settings
        # For each delayed row of the last window: the newest event time then, and its delay in
        # whole microseconds, so that a sum of millions is exact.
        self._seen_ns = np.empty(0, dtype=np.int64)
        self._delays_us = np.empty(0, dtype=np.int64)

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        distance_ns = self._latency_distance_ns(event_time_ns, newest_ns)
        waits_ns = np.floor(self._settings.factor * distance_ns).astype(np.int64)
        return released.extend(event_time_ns, newest_ns - self._settings.window_ns - waits_ns)

    def _latency_distance_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return LD when each row has come, shape (rows,); 0 without late rows. Eq. 2.4."""
        window_ns = self._settings.window_ns
        delayed = delayed_rows(event_time_ns, newest_ns, self._settings.at_most_ns)
        delays_us = (newest_ns[delayed] - event_time_ns[delayed]) // _US
        delayed_ns = np.concatenate([self._seen_ns, newest_ns[delayed]])
        delays_us = np.concatenate([self._delays_us, delays_us])
        upto_us = np.concatenate([[0], np.cumsum(delays_us)])
        rows = np.arange(len(newest_ns))
        last = len(self._seen_ns) + np.searchsorted(delayed, rows, side="right")
        first = delayed_ns.searchsorted(newest_ns - window_ns, side="right")
        number = last - first
        mean_us: Int64Array = (upto_us[last] - upto_us[first]) // np.maximum(number, 1)
        first_left = int(delayed_ns.searchsorted(int(newest_ns[-1]) - window_ns, side="right"))
        self._seen_ns, self._delays_us = delayed_ns[first_left:], delays_us[first_left:]
        return mean_us * _US
