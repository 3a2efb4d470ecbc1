"""One clock for all slots: how far ours is from the reference's, and the reference's time.

```
ours        t1 ───────────────────── t4        round trip  (t4 − t1) − (t3 − t2)
              ╲                     ╱          offset      ((t2 − t1) + (t3 − t4)) / 2
reference      t2 ─────────────── t3           error       half the round trip, and 100 ppm of age
```

`actors/slot/clock_sync.py` carries the four times; `actors/slot/host.py` reads its time here, only
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.runtime.measure.report import ClockReport

DRIFT_PPM = 100
"""How fast two clocks may drift apart. Quartz is within 20 to 50 ppm, each of them."""
SLEW_BITS = 8
"""A correction is made at 2^-8 (0.4 %) of the passing time, 4 ms in a second: so a time span
within one slot is off by less than a histogram's bucket is wide (0.8 %)."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question to the reference: sent and answered by our clock, got and left by its own (ns).

    Source: [thesis] §3.2.2, Fig. 3.2.
    """

    t1_ns: int
    """Ours, when the question left."""
    t2_ns: int
    """The reference's, when it arrived."""
    t3_ns: int
    """The reference's, when the answer left."""
    t4_ns: int
    """Ours, when it arrived."""

    @property
    def round_trip_ns(self) -> int:
        """Time on the way, there and back. Source: [thesis] Eq. 3.12."""
        return (self.t4_ns - self.t1_ns) - (self.t3_ns - self.t2_ns)

    @property
    def offset_ns(self) -> int:
        """What to add to our time to have the reference's. Source: [thesis] Eq. 3.13."""
        return ((self.t2_ns - self.t1_ns) + (self.t3_ns - self.t4_ns)) // 2

    @property
    def is_sound(self) -> bool:
        """Whether no time ran backwards: else a clock was set in the midst of it."""
        return self.t1_ns <= self.t4_ns and self.t2_ns <= self.t3_ns and self.round_trip_ns >= 0

    def error_ns(self, now_ns: int) -> int:
        """Return how far off the offset can be at `now_ns` of our clock, whatever the delays.

        Source: [thesis] Eq. 3.14. Differs: clocks drift, so it grows with age, from t1 on:
        with d for the drift, |offset − true| ≤ round trip / 2 + d · (now − t2), and t1 ≤ t2.
        """
        aged_ns = max(0, now_ns - self.t1_ns) * DRIFT_PPM // 1_000_000
        return self.round_trip_ns // 2 + aged_ns + 4  # 4: what the roundings may lose


class OffsetEstimate:
    """The best of all exchanges: the one with the least error by now.

    It takes the memory of one. All errors grow alike with age, so of two exchanges the better
    one stays the better one; a window of a minute would only forget it for a worse one. After
    a minute it has 6 ms of age in its error, and any usual exchange is better.

    Source: [thesis] §3.2.2, minimum filter. Differs: weighted by age.
    """

    def __init__(self) -> None:
        self.best: Exchange | None = None
        self.exchanges = 0

    @property
    def offset_ns(self) -> int:
        """What to add to our time; 0 before the first exchange."""
        return 0 if self.best is None else self.best.offset_ns

    @property
    def round_trip_ns(self) -> int:
        """The round trip of the best exchange; 0 before the first."""
        return 0 if self.best is None else self.best.round_trip_ns

    def error_ns(self, now_ns: int) -> int:
        """Return how far off `offset_ns` can be at `now_ns` of our clock; 0 before the first."""
        return 0 if self.best is None else self.best.error_ns(now_ns)

    def add(self, exchange: Exchange) -> bool:
        """Take in a sound exchange; return whether it can be true together with the best.

        If it cannot, a clock has been set (or drifts faster than `DRIFT_PPM`), and what was
        known before is forgotten.
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
    """The reference's time, by our clock and what we know of its offset.

    Without exchanges it is our own time: right where ours is the reference's clock. It is
    read by one thread while another one may make it `learn`.

    A better estimate is *slewed* to (`SLEW_BITS`): a step back would give negative latencies
    within one slot, a step forward would lengthen them, and neither has happened to anybody.
    Only an exchange that contradicts the estimate is stepped to: then a clock has been set,
    and times are already wrong by as much.

    Args:
        local_ns: our own clock.
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
        """How far off any time can be that has been read so far."""
        return max(self._largest_error_ns, self.error_ns())

    def error_ns(self) -> int:
        """Return how far off the time can be now: the estimate's error, and what is left to slew.

        0 before the first exchange.
        """
        local_ns = self._local_ns()
        return self._estimate.error_ns(local_ns) + abs(_left_ns(self._course, local_ns))

    def learn(self, exchange: Exchange, *, at_once: bool = False) -> None:
        """Take in a sound exchange.

        Args:
            exchange: with t1 and t4 of our clock.
            at_once: nobody has read the time yet, so the clock may be set.
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
            # What was read until now was off by less than either bound, old or new; but the old
            # one is void if a clock was set.
            after_ns = self._estimate.error_ns(local_ns) + abs(left_ns)
            self._largest_error_ns = max(self._largest_error_ns, before_ns, after_ns)

    def report(self, node: str, *, refused: int = 0) -> ClockReport:
        """Return what there is to say of the clock of a node."""
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
    """Return by how much the offset in use is still short of the one it goes to."""
    until_ns, _, whole_ns = course
    if local_ns >= until_ns:
        return 0
    left_ns = (until_ns - local_ns) >> SLEW_BITS
    # Never more than at first, even if our clock has been set back.
    if whole_ns > 0:
        return left_ns if left_ns < whole_ns else whole_ns
    return -left_ns if -left_ns > whole_ns else whole_ns
