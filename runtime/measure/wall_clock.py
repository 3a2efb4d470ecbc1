"""A wall clock that was set while a job ran: noticed, and said. No wait goes by it.

```
wall    12:00:00 ── 12:00:07 ║ 11:00:07 ── 11:00:08     set back by an hour
steady        +0 ──       +7 ║       +7 ──       +8     nobody can set it: all slots go by this one
ahead          a            a ║   a − 1 h                what is looked at
```
"""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.report import ClockReport
from slackwater.runtime.model import format_ns

__all__ = ["STEP_NS", "WallClock", "clock_notes"]

STEP_NS = 100_000_000
"""A change by more than this is a step. What keeps clocks right (chrony, ntpd) turns smaller
errors into a slightly different speed, of both clocks alike; and two clocks that are read one
after the other on a busy machine may look some milliseconds apart."""


class WallClock:
    """How often a wall clock was set since the start, and by how much in all.

    Args:
        ahead_ns: the wall clock's time less the steady one's, at the start.

    Attributes:
        steps: how often.
        stepped_ns: forward, less back.
    """

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns
        self.steps = 0
        self.stepped_ns = 0

    def look(self, ahead_ns: int, *, error_ns: int = 0) -> None:
        """Compare with now: the same difference, and how far off reading two clocks may be.

        Always with the last step, so small ones add up until they are one.
        """
        by_ns = ahead_ns - self._ahead_ns
        if abs(by_ns) > STEP_NS + error_ns:
            self._ahead_ns = ahead_ns
            self.steps += 1
            self.stepped_ns += by_ns


def clock_notes(clocks: Iterable[ClockReport]) -> list[str]:
    """Return what a report says of clocks that were set; nodes of one host, in one sentence."""
    together: list[list[ClockReport]] = []
    for clock in clocks:
        if not clock.steps:
            continue
        for some in together:
            if abs(some[0].stepped_ns - clock.stepped_ns) <= STEP_NS:
                some.append(clock)
                break
        else:
            together.append([clock])
    return [_note([clock.node for clock in some], some[0]) for some in together]


def _note(nodes: list[str], clock: ClockReport) -> str:
    by_ns = clock.stepped_ns
    what = f"{'forward' if by_ns > 0 else 'back'} by {format_ns(abs(by_ns))}"
    often = "" if clock.steps == 1 else f" in {clock.steps:,} steps"
    return (
        f"the clock of {', '.join(nodes)} was set {what}{often} while the job ran, or its host "
        "slept. No wait and no latency changed: slots go by the time of the start, and by a clock "
        "that nobody can set from there on"
    )
