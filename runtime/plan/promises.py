"""Promises along paths: summaries of a step's ports, and traits of its output.

```
buses ──▶ filter ──▶ counts ──▶ …      filter  as it came: a promise of 7 is one of 7
          PASSES     ends of windows   counts  the last moment in the open window: a promise of
                                               7 is one of 9, until the input promises 10
```

The `OutputTraits` of a source follow from its settings. Those of a step follow from those of its
inputs and from its summaries, from the sources on, each step once. Source: path summaries, as in
timely's reachability; a flow has no circles, so one pass is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.sources.spec import SourceSpec


@dataclass(frozen=True)
class Summary:
    """Relation of a promise that leaves a step to the one that enters a port.

    Attributes:
        every_ns: step of event time by which the outgoing promise moves. 0: it equals the
            incoming one.
        from_ns: any of the times to which it moves.
        delay_ns: how much older the outgoing promise is, since rows wait so long for others.
            END_NS: before the end of the input it promises nothing.
    """

    every_ns: int = 0
    from_ns: int = 0
    delay_ns: int = 0

    def promise_ns(self, promise_ns: int) -> int:
        """Return the first time to which it moves by a promise, its delay included."""
        if promise_ns in (START_NS, END_NS):
            return promise_ns
        promise_ns = START_NS if self.delay_ns == END_NS else promise_ns - self.delay_ns
        if not self.every_ns or promise_ns <= START_NS:
            return max(promise_ns, START_NS)
        turns = -((self.from_ns - promise_ns) // self.every_ns)
        return min(turns * self.every_ns + self.from_ns, END_NS)


PASSES = Summary()
"""Summary of a step that makes no row older than its inputs: promises leave unchanged."""


@dataclass(frozen=True)
class IdleTime:
    """Longest silence of a stage by the clock, that of its sources, and their speed."""

    idle_ns: int
    source_ns: int
    speed: float


@dataclass(frozen=True)
class OutputTraits:
    """Traits of the rows and promises that leave a step.

    Attributes:
        idle_time: its longest silence; None if it may be silent for ever.
        may_be_late: rows may leave that are older than its promise.
        is_disordered: rows may leave in another order than that of their event times.
        by_clock: its silence is that of a live source that holds no rows, so time may go on.
    """

    idle_time: IdleTime | None
    may_be_late: bool
    is_disordered: bool
    by_clock: bool = False

    @property
    def idle_ns(self) -> int | None:
        """Silence by the clock that only idle sources explain; None if no silence does."""
        return None if self.idle_time is None else self.idle_time.idle_ns


def of_source(spec: SourceSpec) -> OutputTraits:
    """Return the traits of a source's output."""
    idle_time = None
    if spec.idle_ns is not None:
        speed = 1 if spec.speed is None else min(spec.speed, 1)  # a slow replay is not silent
        idle_ns = round(spec.idle_ns / speed)
        idle_time = IdleTime(idle_ns, idle_ns, speed)
    return OutputTraits(
        idle_time,
        may_be_late=spec.may_be_late,
        is_disordered=spec.promise is not None or spec.reorder.may_mix,
        by_clock=spec.goes_on_in_silence,
    )


def without_gate(came: OutputTraits, *, is_disordered: bool) -> OutputTraits:
    """Return the output traits of a step without a gate.

    Args:
        came: traits of its input.
        is_disordered: whether rows leave in no order, whatever the order of the input.
    """
    return OutputTraits(
        came.idle_time,
        may_be_late=came.may_be_late,
        is_disordered=is_disordered or came.is_disordered,
        by_clock=came.by_clock,
    )


def after_gate(
    came: Iterable[OutputTraits], summaries: Iterable[Summary], *, has_slack: bool
) -> OutputTraits:
    """Return the output traits of a step after a gate.

    All rows but the late ones are in order. The step may be silent only if all its inputs may be.
    Its silence is the longest of theirs, plus the time that a source may keep the gate waiting,
    plus the time until its promise moves, and its delay. So it is never idle while its sources send
    rows and event time goes on.

    Args:
        came: traits of each input.
        summaries: summaries of each port.
        has_slack: whether the gate may release a row before all older rows.
    """
    inputs, ports = list(came), list(summaries)
    known = [traits.idle_time for traits in inputs if traits.idle_time is not None]
    idle_time = None
    if len(known) == len(inputs) and all(port.delay_ns < END_NS for port in ports):
        source_ns = max([idle.source_ns for idle in known])
        speed = min([idle.speed for idle in known])
        waits_ns = max([port.every_ns + port.delay_ns for port in ports])
        longest_ns = max([idle.idle_ns for idle in known])
        idle_ns = longest_ns + source_ns + round(waits_ns / speed)
        idle_time = IdleTime(idle_ns, source_ns, speed)
    is_late = has_slack or any(traits.may_be_late for traits in inputs)
    return OutputTraits(idle_time, may_be_late=is_late, is_disordered=is_late)
