"""AQ-K-slack: α times the K of MP-K-slack, with α as small as quality allows.

```
rows ─▶ K, the largest delay ─▶ wait α·K ─▶ rows in order
                                  ▲    └─▶ window coverage θ, measured L later
                                  └── Δα = K_p err + K_d Δerr,  err = θ_thr − θ
```

The controller steps at the first row whose event time enters another window. It examines the
windows that ended at least L ago: L is the q-quantile of the delays of late arrivals, so that most
of a window's rows have come by then.

Source: [thesis] §2.3.3, Eq. 2.2, 2.3, Fig. 2.7, 2.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS, Duration, Int64Array, duration_ns, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.buffer import (
    Buffer,
    Buffering,
    Late,
    Released,
    check_buffer,
    check_delay_from,
)
from slackwater.runtime.order.coverage import Coverage, ErrorWithin
from slackwater.runtime.order.largest_delay import DelayFrom, LargestDelay, before, delayed_rows
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.order.settings import is_number
from slackwater.runtime.shown import shown


@checked_options
def aq_k_slack(
    *,
    window: Duration,
    coverage: float | ErrorWithin,
    gains: tuple[float, float] = (0.05, 0.005),
    quantile: float = 0.99,
    at_most: Duration = "1h",
    delay_from: DelayFrom = "next",
    late: Late = "drop",
) -> AqKSlack:
    """Return the policy that steers the mean share of rows in order.

    It keeps no bound. About half of the single windows have less, more where delays change or have
    a long tail, and the nearer `coverage` is to 1 the farther the mean is below it.

    Args:
        window: the length of the windows whose coverage counts, such as "1s".
        coverage: θ_thr, the share of a window's rows that is to come in time, as a mean over
            windows, 0 < coverage < 1; or `error_within(0.01)`, the error allowed in its result.
        gains: K_p and K_d, both times 1 − θ_thr. So with (0.05, …) α loses 0.05 with a window that
            misses nothing, and gains 0.05 for each time that the missing share exceeds the allowed
            share by the allowed share.
        quantile: q, 0 < q < 1.
        at_most: a row more than this older than the newest counts as a wrong clock.
        delay_from: start of a delay, as in `mp_k_slack`.
        late: rows older than a released one: "drop", and a late row counts in no window; or "pass",
            and it counts if its window is still open.

    Raises:
        SettingError: a setting is out of range.

    Source: [thesis] §2.3.3. Differs: gains are given by the share that may miss. With θ_thr = 0.999
    err is between −0.001 and 0.999, so gains would have to be found by hand for each θ_thr, as the
    thesis does. An error counts up to where K_p alone takes α from 0 to 1: K_d would undo a larger
    one as soon as it has passed.
    """
    return AqKSlack(
        window_ns=duration_ns(window, what="aq_k_slack: window"),
        coverage=coverage,
        gains=gains,
        quantile=quantile,
        at_most_ns=duration_ns(at_most, what="aq_k_slack: at_most"),
        delay_from=delay_from,
        late=late,
    )


@dataclass(frozen=True, kw_only=True)
class AqKSlack(Buffer):
    """Policy that holds rows for a share of the largest delay seen, steered by quality.

    Its settings are those of `aq_k_slack`.
    """

    window_ns: int
    coverage: float | ErrorWithin
    gains: tuple[float, float]
    quantile: float
    at_most_ns: int
    delay_from: DelayFrom
    late: Late

    def __post_init__(self) -> None:
        who = "aq_k_slack"
        check_buffer(who, late=self.late, window=self.window_ns, at_most=self.at_most_ns)
        check_delay_from(who, self.delay_from)
        coverage, quantile = self.coverage, self.quantile
        if not isinstance(coverage, ErrorWithin) and not (is_number(coverage) and 0 < coverage < 1):
            raise SettingError(
                f"{who}: coverage={shown(coverage)} must lie between 0 and 1, both excluded; "
                "sw.order.mp_k_slack() waits for all rows"
            )
        if not (is_number(quantile) and 0 < quantile < 1):
            raise SettingError(
                f"{who}: quantile={shown(quantile)} must lie between 0 and 1, both excluded; write "
                "0.99, say"
            )
        if not _are_gains(self.gains):
            raise SettingError(
                f"{who}: gains={shown(self.gains)} must be two numbers, K_p and K_d (more than "
                "zero, zero or more); write (0.05, 0.005), say"
            )

    def needed(self, rows: int) -> float:
        """Return θ_thr of a window with `rows` rows."""
        coverage = self.coverage
        return coverage.coverage(rows) if isinstance(coverage, ErrorWithin) else coverage

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        coverage = self.coverage
        wanted = (
            coverage.text if isinstance(coverage, ErrorWithin) else f"a share of {coverage:.6g}"
        )
        return self._with_late(f"AQ-K-slack: {wanted} of each {format_ns(self.window_ns)} in time")

    @property
    def longest_ns(self) -> int:  # noqa: D102 - see Reorder
        return self.at_most_ns

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return Buffering(Adapting(self))


def _are_gains(value: Any) -> bool:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    return is_pair and all(map(is_number, value)) and value[0] > 0 and value[1] >= 0


class Adapting:
    """Slack α·K, with α steered by the coverage of windows.

    Attributes:
        alpha: α, from 0 to 1.
    """

    STATE = Fields("_largest", "_delays", "_coverage", "_newest_window", "_error", "alpha")

    def __init__(self, settings: AqKSlack) -> None:
        self._settings = settings
        self._largest = LargestDelay(settings.at_most_ns, settings.delay_from)
        self._delays = Delays()
        self._coverage = Coverage(settings.window_ns)
        self._newest_window = START_NS
        self._error = 0.0  # of the previous window, in multiples of the share that may miss
        self.alpha = 1.0

    def reached_ns(  # noqa: D102 - see Slack
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        k_ns = self._largest.extend(event_time_ns, newest_ns)
        windows = newest_ns // self._settings.window_ns
        steps = np.flatnonzero(windows > before(windows, self._newest_window)).tolist()
        self._newest_window = int(windows[-1])
        # α changes only where a row enters another window.
        reached = []
        rows = len(newest_ns)
        at_steps = set(steps)
        for start, stop in pairwise(sorted({0, *at_steps, rows})):
            if start in at_steps:
                self._control(int(newest_ns[start]), int(k_ns[start]))
            times_ns = event_time_ns[start:stop]
            waits_ns = np.floor(self.alpha * k_ns[start:stop]).astype(np.int64)
            before_ns = released.reached_ns
            now_ns = released.extend(times_ns, newest_ns[start:stop] - waits_ns)
            self._count(times_ns, newest_ns[start:stop], before(now_ns, before_ns))
            reached.append(now_ns)
        return np.concatenate(reached)

    def _control(self, newest_ns: int, k_ns: int) -> None:
        """Change α by the windows whose result left L ago. Source: Eq. 2.3."""
        settings = self._settings
        later_ns = self._delays.quantile_ns(settings.quantile)
        left_ns = newest_ns - later_ns - int(self.alpha * k_ns)
        proportional, derivative = settings.gains
        for rows, in_time in self._coverage.take(left_ns):
            needed = settings.needed(rows)
            error = min((needed - in_time / rows) / (1 - needed), 1 / proportional)
            step = proportional * error + derivative * (error - self._error)
            self._error = error
            self.alpha = min(max(self.alpha + step, 0.0), 1.0)

    def _count(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, before_ns: Int64Array
    ) -> None:
        settings = self._settings
        in_time = event_time_ns >= before_ns
        if settings.passes_late:  # a late row counts while its window is open
            ends_ns = (event_time_ns // settings.window_ns + 1) * settings.window_ns
            in_time |= ends_ns > before_ns
        self._coverage.add(event_time_ns, in_time)
        delayed = delayed_rows(event_time_ns, newest_ns, settings.at_most_ns)
        self._delays.add(newest_ns[delayed] - event_time_ns[delayed])


_STEPS = 16  # to each doubling
_BINS = 64 * _STEPS


class Delays:
    """Histogram of delays; a quantile is at most a sixteenth too large.

    It takes 8 KiB, however many delays there are. Bins are computed exactly, so all hosts agree.
    """

    STATE = Fields("_counts")

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)

    def add(self, delay_ns: Int64Array) -> None:
        """Count delays, shape (rows,), each > 0."""
        if len(delay_ns):
            part, doublings = np.frexp(delay_ns.astype(np.float64))  # part in [1/2, 1)
            bins = (doublings - 1) * _STEPS + ((part - 0.5) * (2 * _STEPS)).astype(np.int64)
            self._counts += np.bincount(bins, minlength=_BINS)

    def quantile_ns(self, q: float) -> int:
        """Return the q-quantile of the delays, 0 < q < 1; 0 without any."""
        total = int(self._counts.sum())
        if total == 0:
            return 0
        upto = np.cumsum(self._counts)
        place = int(upto.searchsorted(q * total))
        doublings, step = divmod(min(place, _BINS - 1), _STEPS)
        return ((1 << doublings) * (_STEPS + step + 1)) // _STEPS
