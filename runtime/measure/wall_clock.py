"""Steps of a wall clock while a job runs: reported, and without effect on waits.

```
wall    12:00:00 ── 12:00:07 ║ 11:00:07 ── 11:00:08     set back by an hour
steady        +0 ──       +7 ║       +7 ──       +8     cannot be set: all slots use this one
ahead          a            a ║   a − 1 h                the difference that is watched
```
"""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.report import ClockReport
from slackwater.runtime.model import format_ns

__all__ = ["STEP_NS", "WallClock", "clock_notes"]

STEP_NS = 100_000_000
"""A change by more than this is a step. Clock daemons (chrony, ntpd) turn smaller errors into a
slightly different speed of both clocks; and two clocks that are read one after the other on a busy
machine may look some milliseconds apart."""


class WallClock:
    """Counts how often a wall clock was set since the start, and how far.

    Args:
        ahead_ns: the wall clock's time less the steady clock's, at the start.

    Attributes:
        steps: number of steps.
        stepped_ns: sum of the steps, forward less back.
    """

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns
        self.steps = 0
        self.stepped_ns = 0

    def look(self, ahead_ns: int, *, error_ns: int = 0) -> None:
        """Compare the clocks now.

        The comparison is with the last step, so small changes add up until they are one.

        Args:
            ahead_ns: the wall clock's time less the steady clock's, now.
            error_ns: largest error of reading the two clocks one after the other.
        """
        by_ns = ahead_ns - self._ahead_ns
        if abs(by_ns) > STEP_NS + error_ns:
            self._ahead_ns = ahead_ns
            self.steps += 1
            self.stepped_ns += by_ns


def clock_notes(clocks: Iterable[ClockReport]) -> list[str]:
    """Return a note on each clock that was set; nodes of one host together."""
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
        "slept. No wait and no latency changed: slots use the time of the start, and from there on "
        "a clock that cannot be set"
    )
