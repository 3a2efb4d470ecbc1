"""Promises alone between slots: one owner in each slot, and one rate.

```
progress of a stage   3   5   6       8             9
channel to a replica  3   rows, 5     ·  withheld   ·  8 alone, a gap after the rows
```

A promise goes with rows wherever some go. Alone it waits until its channel has been silent for a
gap: `Limits.promise_gap_ns` for each channel that leaves the slot. So a slot sends a bounded number
of messages without rows, however many replicas it feeds. The last promise is never lost: the slot
wakes for it. Why: docs/decisions/2026-11-30-paced-promises.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.model import END_NS, Message
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["PacedPromises"]

_PART_OF_IDLE = 4
"""A writer is idle after silence: its promises come more often, by this factor."""


class PacedPromises:
    """Promises that the stages of a slot owe to channels.

    Args:
        stages: {name: machine}, of the slot.
        gap_ns: least time between messages without rows, for each channel that leaves the slot.

    Attributes:
        not_before_ns: time before which none is due.
    """

    def __init__(self, stages: Mapping[str, StageMachine], *, gap_ns: int) -> None:
        leaving = {
            name: [c for c in machine.outputs.promising if c.target not in stages]
            for name, machine in stages.items()
        }
        all_ns = gap_ns * sum(map(len, leaving.values()))
        for name, machine in stages.items():
            machine.outputs.pace(
                {
                    c.name: all_ns if c.idle_ns is None else min(all_ns, c.idle_ns // _PART_OF_IDLE)
                    for c in leaving[name]
                }
            )
        # A stage that was moved to its consumers may owe them promises, too.
        self._outputs = {
            name: machine.outputs
            for name, machine in stages.items()
            if leaving[name] or machine.outputs.owed_ns != END_NS
        }
        self.not_before_ns = self.next_ns()

    def note(self, stage: str) -> None:
        """Note that a stage may owe promises after a slice."""
        if (outputs := self._outputs.get(stage)) and outputs.owed_ns < self.not_before_ns:
            self.not_before_ns = outputs.owed_ns

    def next_ns(self) -> int:
        """Return when the next promise is due; END_NS if none is owed."""
        return min([outputs.owed_ns for outputs in self._outputs.values()], default=END_NS)

    def due(self, now_ns: int) -> tuple[str, list[tuple[Channel, Message]]] | None:
        """Return a stage and the promises that it sends now; None if none is due."""
        due = None
        for stage, outputs in self._outputs.items():
            if outputs.owed_ns <= now_ns and (sends := outputs.owed(now_ns)):
                due = stage, sends
                break
        self.not_before_ns = self.next_ns()
        return due
