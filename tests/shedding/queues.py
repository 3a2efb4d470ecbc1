"""An operator with a queue in virtual time: events come at a rate, and are shed as it is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from slackwater.runtime.shedding.overload import Load, OverloadDetector, Verdict

SECOND = 1_000_000_000


@dataclass
class Operator:
    """Its costs, what waits, and what was seen.

    `said` has (seconds, events that wait, latency of what comes now in s, verdict).
    """

    detector: OverloadDetector
    whole_ns: float  # of an event that is kept
    fixed_ns: float = 0.0  # of that, what an event takes that is dropped
    by_age: bool = False
    upstream_ns: int = 0
    rest_ns: int = 0
    off: float = 1.0  # of what is to be dropped, what is: a shedder may miss its aim
    size: float = 100.0
    queued: float = 0.0
    now_ns: int = 0
    came: deque[list[int]] = field(default_factory=deque)  # [when, how many of them wait]
    said: list[tuple[float, float, float, Verdict]] = field(default_factory=list)

    def run(
        self, seconds: float, rate: Callable[[float], float], step_ns: int = SECOND // 50
    ) -> None:
        """Go on for so long; the rate is of the time in seconds."""
        share = 0.0
        if self.said and self.said[-1][3].amount:
            share = self.said[-1][3].amount.share * self.off
        for _ in range(round(seconds * SECOND / step_ns)):
            self.now_ns += step_ns
            arrived = round(rate(self.now_ns / SECOND) * step_ns / SECOND)
            cost_ns = self.fixed_ns + (1 - share) * (self.whole_ns - self.fixed_ns)
            processed = min(int(self.queued + arrived), round(step_ns / max(cost_ns, 1.0)))
            self.queued += arrived - processed
            wait_ns = (
                self._age_ns(arrived, processed) if self.by_age else int(self.queued * cost_ns)
            )
            verdict = self.detector.observe(
                Load(
                    self.now_ns,
                    arrived,
                    processed,
                    round(processed * cost_ns),
                    share,
                    queued=None if self.by_age else int(self.queued),
                    age_ns=wait_ns + self.upstream_ns if self.by_age or self.upstream_ns else None,
                    youngest_ns=self._youngest_ns() if self.by_age else None,
                    idle_ns=max(step_ns - round(processed * cost_ns), 0),
                    rest_ns=self.rest_ns,
                ),
                size=self.size,
            )
            latency = (wait_ns + cost_ns + self.upstream_ns + self.rest_ns) / SECOND
            self.said.append((self.now_ns / SECOND, self.queued, latency, verdict))
            share = min(verdict.amount.share * self.off, 1.0) if verdict.amount else 0.0

    def _youngest_ns(self) -> int:
        """Return how old the youngest is of those that were done; it came in order."""
        return self.upstream_ns + (self.now_ns - self.came[0][0] if self.came else 0)

    def _age_ns(self, arrived: int, processed: int) -> int:
        """Return how long ago the oldest that waits came."""
        self.came.append([self.now_ns, arrived])
        while self.came and processed >= self.came[0][1]:
            processed -= self.came.popleft()[1]
        if not self.came:
            return 0
        self.came[0][1] -= processed
        return self.now_ns - self.came[0][0]

    def after(self, seconds: float) -> list[tuple[float, float, float, Verdict]]:
        """Return what was seen from then on."""
        return [one for one in self.said if one[0] > seconds]
