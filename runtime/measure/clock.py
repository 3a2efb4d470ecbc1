"""Reference clock of all slots: the offset of a host's clock, with its error.

```
ours        t1 ───────────────────── t4        round trip  (t4 − t1) − (t3 − t2)
              ╲                     ╱          offset      ((t2 − t1) + (t3 − t4)) / 2
reference      t2 ─────────────── t3           error       half the round trip, and 100 ppm of age
```

`actors/slot/clock_sync.py` carries the four times; `actors/slot/host.py` reads its time only here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.runtime.measure.report import ClockReport

DRIFT_PPM = 100
"""Largest drift between two clocks. Quartz is within 20 to 50 ppm, each of them."""
SLEW_BITS = 8
"""A correction is made at 2^-8 (0.4 %) of the passing time, 4 ms in a second: so a time span
within one slot is off by less than a histogram's bucket is wide (0.8 %)."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Exchange with the reference: four times of a question and its answer, ns.

    Source: [thesis] §3.2.2, Fig. 3.2.
    """

    t1_ns: int
    """Our time when the question left."""
    t2_ns: int
    """The reference's time when the question arrived."""
    t3_ns: int
    """The reference's time when the answer left."""
    t4_ns: int
    """Our time when the answer arrived."""

    @property
    def round_trip_ns(self) -> int:
        """Time on the way, there and back. Source: [thesis] Eq. 3.12."""
        return (self.t4_ns - self.t1_ns) - (self.t3_ns - self.t2_ns)

    @property
    def offset_ns(self) -> int:
        """Reference's time less ours. Source: [thesis] Eq. 3.13."""
        return ((self.t2_ns - self.t1_ns) + (self.t3_ns - self.t4_ns)) // 2

    @property
    def is_sound(self) -> bool:
        """Whether no time ran backwards: else a clock was set meanwhile."""
        return self.t1_ns <= self.t4_ns and self.t2_ns <= self.t3_ns and self.round_trip_ns >= 0

    def error_ns(self, now_ns: int) -> int:
        """Return the largest error of the offset at `now_ns`, whatever the delays.

        Source: [thesis] Eq. 3.14. Differs: clocks drift, so it grows with age, from t1 on:
        with d for the drift, |offset − true| ≤ round trip / 2 + d · (now − t2), and t1 ≤ t2.
        """
        aged_ns = max(0, now_ns - self.t1_ns) * DRIFT_PPM // 1_000_000
        return self.round_trip_ns // 2 + aged_ns + 4  # 4: the roundings


class OffsetEstimate:
    """Best of all exchanges: the one with the least error now.

    Only the best exchange is kept. All errors grow equally with age, so of two exchanges the better
    one stays better; a window of a minute would only replace it by a worse one. After a minute its
    error includes 6 ms for its age, and any usual exchange is better.

    Source: [thesis] §3.2.2, minimum filter. Differs: weighted by age.
    """

    def __init__(self) -> None:
        self.best: Exchange | None = None
        self.exchanges = 0

    @property
    def offset_ns(self) -> int:
        """Reference's time less ours; 0 before the first exchange."""
        return 0 if self.best is None else self.best.offset_ns

    @property
    def round_trip_ns(self) -> int:
        """Round trip of the best exchange; 0 before the first."""
        return 0 if self.best is None else self.best.round_trip_ns

    def error_ns(self, now_ns: int) -> int:
        """Return the largest error of `offset_ns` at `now_ns`; 0 before the first exchange."""
        return 0 if self.best is None else self.best.error_ns(now_ns)

    def add(self, exchange: Exchange) -> bool:
        """Add a sound exchange; return whether it agrees with the best.

        If not, a clock has been set (or drifts faster than `DRIFT_PPM`), and the earlier best is
        forgotten.
        """
        self.exchanges += 1
        best, now_ns = self.best, exchange.t4_ns
        if best is None:
            self.best = exchange
            return True
        known_ns, new_ns = best.error_ns(now_ns), exchange.error_ns(now_ns)
        agrees = abs(exchange.offset_ns - best.offset_ns) <= known_ns + new_ns
        if new_ns <= known_ns or not agrees:
            self.best = exchange
        return agrees


class ReferenceClock:
    """Reference's time, computed from our clock and its estimated offset.

    Without exchanges it is our own time: right where ours is the reference's clock. One thread
    reads it while another one may call `learn`.

    A better estimate is *slewed* to (`SLEW_BITS`): a step back would give negative latencies
    within one slot, a step forward would lengthen them, and both would be wrong. Only an exchange
    that contradicts the estimate is stepped to: then a clock has been set, and times are already
    wrong by as much.

    Args:
        local_ns: clock of this process.
    """

    def __init__(self, local_ns: Callable[[], int]) -> None:
        self._local_ns = local_ns
        self._estimate = OffsetEstimate()
        # (our time at which the correction is complete, the offset then, the whole correction).
        # One tuple, so that the thread that reads never sees half a change.
        self._course = (-(2**63), 0, 0)
        self._largest_error_ns = 0

    def now_ns(self) -> int:
        """Return the reference's time."""
        local_ns = self._local_ns()
        course = self._course
        if local_ns >= course[0]:
            return local_ns + course[1]
        return local_ns + course[1] - _left_ns(course, local_ns)

    @property
    def largest_error_ns(self) -> int:
        """Largest error of any time read so far."""
        return max(self._largest_error_ns, self.error_ns())

    def error_ns(self) -> int:
        """Return the largest error of the time now: the estimate's, and the rest to slew.

        0 before the first exchange.
        """
        local_ns = self._local_ns()
        return self._estimate.error_ns(local_ns) + abs(_left_ns(self._course, local_ns))

    def learn(self, exchange: Exchange, *, at_once: bool = False) -> None:
        """Use a sound exchange.

        Args:
            exchange: exchange, with t1 and t4 of our clock.
            at_once: the time has not been read yet, so the clock may be stepped.
        """
        local_ns = self._local_ns()
        in_use_ns = self._course[1] - _left_ns(self._course, local_ns)
        before_ns = self.error_ns()
        agrees = self._estimate.add(exchange)
        offset_ns = self._estimate.offset_ns
        left_ns = offset_ns - in_use_ns
        if agrees and not at_once:
            self._course = (local_ns + (abs(left_ns) << SLEW_BITS), offset_ns, left_ns)
        else:
            self._course = (local_ns, offset_ns, 0)
        if not at_once:
            # Times read until now were off by less than either bound, old or new; but the old
            # bound is void if a clock was set.
            after_ns = self._estimate.error_ns(local_ns) + abs(left_ns)
            self._largest_error_ns = max(self._largest_error_ns, before_ns, after_ns)

    def report(self, node: str, *, refused: int = 0) -> ClockReport:
        """Return the report of a node's clock."""
        estimate = self._estimate
        return ClockReport(
            node=node,
            offset_ns=estimate.offset_ns,
            error_ns=self.error_ns(),
            largest_error_ns=self.largest_error_ns,
            round_trip_ns=estimate.round_trip_ns,
            exchanges=estimate.exchanges,
            is_reference=estimate.best is None,
            refused=refused,
        )


def _left_ns(course: tuple[int, int, int], local_ns: int) -> int:
    """Return the rest of a correction: offset aimed at, less the offset in use."""
    until_ns, _, whole_ns = course
    if local_ns >= until_ns:
        return 0
    left_ns = (until_ns - local_ns) >> SLEW_BITS
    # Never more than at first, even if our clock has been set back.
    if whole_ns > 0:
        return left_ns if left_ns < whole_ns else whole_ns
    return -left_ns if -left_ns > whole_ns else whole_ns
