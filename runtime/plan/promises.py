"""What becomes of promises on their way: a summary for each port of a step, put together by paths.

```
buses ──▶ filter ──▶ counts ──▶ …      filter  as it came: a promise of 7 is one of 7
          PASSES     ends of windows   counts  the last moment in the window that is open: one of
                                               7 is one of 9, till the input has promised 10
```

A source's `OutputTraits` is known from its settings. That of a step follows from those of its
inputs and from its summaries, from the sources on, each step once. Source: path summaries, as in
timely's reachability; here there are no circles, so one pass is all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.sources.spec import SourceSpec


@dataclass(frozen=True)
class Summary:
    """How a promise that comes in at a port goes out.

    Attributes:
        every_ns: of event time; what goes out moves only by this much at a time. 0: it is what
            came in.
        from_ns: one of the times to which it moves.
    """

    every_ns: int = 0
    from_ns: int = 0

    def promise_ns(self, promise_ns: int) -> int:
        """Return the first of the times to which it moves that is not older than a promise."""
        if not self.every_ns or promise_ns in (START_NS, END_NS):
            return promise_ns
        turns = -((self.from_ns - promise_ns) // self.every_ns)
        return min(turns * self.every_ns + self.from_ns, END_NS)


PASSES = Summary()
"""As it came: of whatever makes nothing older than what it takes."""


@dataclass(frozen=True)
class IdleTime:
    """How long a stage may be silent by the clock, the longest of its sources', and their speed."""

    idle_ns: int
    source_ns: int
    speed: float


@dataclass(frozen=True)
class OutputTraits:
    """What may be expected of the rows and promises that leave a step.

    Attributes:
        silence: None: it may be silent for ever.
        may_be_late: rows may leave behind what it has promised.
        is_disordered: rows may leave in another order than that of their event times.
        has_writers: rows carry writers of their own.
    """

    idle_time: IdleTime | None
    may_be_late: bool
    is_disordered: bool
    has_writers: bool

    @property
    def idle_ns(self) -> int | None:
        """After how long by the clock its silence is that of its sources; None: never."""
        return None if self.idle_time is None else self.idle_time.idle_ns


def of_source(spec: SourceSpec) -> OutputTraits:
    """Return what may be expected of a source."""
    idle_time = None
    if spec.idle_ns is not None:
        speed = 1 if spec.speed is None else min(spec.speed, 1)  # a slow replay is no silence
        idle_ns = round(spec.idle_ns / speed)
        idle_time = IdleTime(idle_ns, idle_ns, speed)
    return OutputTraits(
        idle_time,
        may_be_late=spec.idle_ns is not None or spec.flags_silent or spec.reorder.passes_late,
        is_disordered=spec.promise is not None or spec.reorder.may_mix,
        has_writers=spec.writer is not None,
    )


def without_gate(came: OutputTraits, *, from_several: bool, is_disordered: bool) -> OutputTraits:
    """Return what may be expected behind a step that passes rows on as they come.

    Args:
        came: of its input.
        from_several: whether that is several stages, whose rows flow together.
        is_disordered: whether rows come in no order, whatever is said of the input.
    """
    return OutputTraits(
        came.idle_time,
        may_be_late=came.may_be_late,
        is_disordered=is_disordered or came.is_disordered,
        has_writers=from_several or came.has_writers,
    )


def behind_gate(
    came: Iterable[OutputTraits], summaries: Iterable[Summary], *, has_slack: bool
) -> OutputTraits:
    """Return what may be expected behind a gate: rows in order, those apart that are late.

    It may be silent only if all inputs may: for the longest of them, for as long again as a source
    may keep the gate waiting, and until its promise moves. So none is idle while its sources
    speak, event time going on.

    Args:
        came: of each input.
        summaries: of each port.
        has_slack: whether it lets rows go before all that is older is there.
    """
    inputs = list(came)
    known = [one.idle_time for one in inputs if one.idle_time is not None]
    idle_time = None
    if len(known) == len(inputs):
        source_ns = max([one.source_ns for one in known])
        speed = min([one.speed for one in known])
        every_ns = round(max([one.every_ns for one in summaries]) / speed)
        longest_ns = max([one.idle_ns for one in known])
        idle_time = IdleTime(longest_ns + source_ns + every_ns, source_ns, speed)
    is_late = has_slack or any(one.may_be_late for one in inputs)
    return OutputTraits(idle_time, may_be_late=is_late, is_disordered=is_late, has_writers=False)
