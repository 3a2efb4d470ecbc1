"""Time exchanges of a source whose clock is off, with delays that are drawn: [thesis] §3.2.2.

The estimate is that of the time server's client, `runtime/measure/clock.py`; only the network
between the two is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.measure.clock import DRIFT_PPM, Exchange, OffsetEstimate
from slackwater.runtime.model import Int64Array

US = 1_000
EXCHANGES = 10
EVERY_NS = 10 * 10**9
LEAST_NS, MEAN_NS, HELD_NS = 50 * US, 75 * US, 5 * US
"""One way: 50 µs and an exponential of mean 75 µs behind it; what the server takes."""


@dataclass(frozen=True)
class Measured:
    """What a source knows of its clock as time goes on; each of shape (rounds,), ns.

    Attributes:
        from_ns: from when on, by the true time.
        offset_ns: what to add to its clock.
        bound_ns: how far off that can be, at that time.
    """

    from_ns: Int64Array
    offset_ns: Int64Array
    bound_ns: Int64Array

    def at(self, true_ns: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return offset and bound at these times, each of shape (rows,)."""
        last = np.maximum(np.searchsorted(self.from_ns, true_ns, side="right") - 1, 0)
        aged_ns = np.maximum(true_ns - self.from_ns[last], 0) * DRIFT_PPM // 1_000_000 + 1
        return self.offset_ns[last], self.bound_ns[last] + aged_ns


def measured(rng: np.random.Generator, *, ahead_ns: int, until_ns: int) -> Measured:
    """Return what rounds of ten exchanges show, the first before time 0, then every 10 s.

    Args:
        rng: draws the delays.
        ahead_ns: what the source's clock says at time 0.
        until_ns: when the source ends, by the true time.
    """
    estimate = OffsetEstimate()
    found = []
    now_ns = -EVERY_NS
    while now_ns < until_ns:
        for there_ns, back_ns in LEAST_NS + rng.exponential(MEAN_NS, (EXCHANGES, 2)).astype(int):
            got_ns = now_ns + int(there_ns)
            left_ns = got_ns + HELD_NS
            came_ns = left_ns + int(back_ns)
            estimate.add(Exchange(now_ns + ahead_ns, got_ns, left_ns, came_ns + ahead_ns))
            now_ns = came_ns
        found.append((now_ns, estimate.offset_ns, estimate.error_ns(now_ns + ahead_ns)))
        now_ns += EVERY_NS
    from_ns, offset_ns, bound_ns = np.array(found, dtype=np.int64).T
    return Measured(from_ns, offset_ns, bound_ns)
