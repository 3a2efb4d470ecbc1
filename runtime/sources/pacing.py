"""Due times of a replay: arrivals, some times faster than they were.

```
arrivals of a    0.0   0.4   0.9          both begin at 0.0, so that
arrivals of b          0.6   0.8          rows come in the order in which they came
due              0.0 0.4 0.6 0.8 0.9
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max

_LONGEST_NS = 2**62
"""A due time further off than this (146 years) is cut, so that adding the start cannot wrap."""


class Pace:
    """Turns arrivals into due times; remembers where the replay began, and the newest arrival.

    Args:
        speed: how many times faster than the arrivals were, > 0.
        beginning_ns: arrival that is due at the start, and earlier ones with it; the first if None.
    """

    STATE = Fields("_first_ns", "_newest_ns")

    def __init__(self, speed: float, *, beginning_ns: int | None = None) -> None:
        self._speed = speed
        self._first_ns = beginning_ns
        self._newest_ns = START_NS if beginning_ns is None else beginning_ns

    @property
    def has_begun(self) -> bool:
        """Whether it is known which arrival is due at the start."""
        return self._first_ns is not None

    def begin(self, arrival_ns: int) -> int:
        """Begin at this arrival, unless the beginning is known; return where the replay began."""
        if self._first_ns is None:
            self._first_ns = self._newest_ns = arrival_ns
        return self._first_ns

    def due_ns(self, arrival_ns: Int64Array, *, start_ns: int) -> Int64Array:
        """Return when the next rows are due, shape (rows,), in order.

        Args:
            arrival_ns: shape (rows,), rows > 0; where it runs backwards, the newest counts.
            start_ns: wall clock at which the replay begins.
        """
        first_ns = self.begin(int(arrival_ns[0]))
        in_order_ns = running_max(arrival_ns, self._newest_ns)
        self._newest_ns = int(in_order_ns[-1])
        return self._mapped(in_order_ns, first_ns, start_ns)

    def at_ns(self, times_ns: Int64Array, *, start_ns: int) -> Int64Array:
        """Return when moments between arrivals are due, shape (moments,); they are not rows.

        Args:
            times_ns: shape (moments,); those before the beginning are due with it.
            start_ns: start of the replay by the wall clock, as above.
        """
        assert self._first_ns is not None, "rows came before"
        return self._mapped(np.maximum(times_ns, self._first_ns), self._first_ns, start_ns)

    def _mapped(self, in_order_ns: Int64Array, first_ns: int, start_ns: int) -> Int64Array:
        # Unsigned, so that any two int64 can be subtracted.
        since = in_order_ns.view(np.uint64) - np.int64(first_ns).view(np.uint64)
        scaled = since if self._speed == 1 else np.rint(since / self._speed)
        due: Int64Array = np.minimum(scaled, _LONGEST_NS).astype(np.int64) + start_ns
        return due

    def arrival_ns(self, now_ns: int, *, start_ns: int) -> int | None:
        """Return the arrival that is due now; None if it has not started."""
        if self._first_ns is None or now_ns < start_ns:
            return None
        return self._first_ns + int((now_ns - start_ns) * self._speed)
