"""A source in its stage: when it is asked for rows, and how urgent these are.

```
a's rows due  |   |   |   |   |        paced sources are looked at once in `source_gap_ns`, all of
b's rows due    |    |    |    |       a slot's at one time: it sleeps and wakes once for them
looks         |      |      |      |
```
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.model import END_NS, START_NS, Message
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.arrivals import teller_of
from slackwater.runtime.sources.machine import SourceMachine

__all__ = ["Looks", "StageSource", "source_of"]


class Looks:
    """When a slot looks at its paced sources: to wake up costs more than to look.

    Args:
        gap_ns: between two looks, at least.
    """

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._last_ns = START_NS
        self.next_ns = START_NS
        """No look before."""

    def look(self, now_ns: int) -> int:
        """Return when to look at a source again that is looked at now."""
        if not self._last_ns <= now_ns < self.next_ns:
            self._last_ns, self.next_ns = now_ns, now_ns + self._gap_ns
        return self.next_ns

    def snapshot(self) -> tuple[int, int]:
        """Return when it last looked, and when it does next."""
        return self._last_ns, self.next_ns

    def restore(self, state: Sequence[int]) -> None:
        """Continue from a snapshot."""
        self._last_ns, self.next_ns = state


class StageSource:
    """When a source is asked.

    Args:
        machine: of the source.
        is_paced: whether it replays arrivals at the speed of a clock.
        start_ns: of the job.
        looks: of its slot.
        wakes: its input ends the slot's sleep when it has something: nobody need ask before.

    Attributes:
        machine: of the source.
        is_paced: see there.
        next_take_ns: a paced source is not asked before.
        looks: of its slot.
        wakes: see there.
        is_waiting: it wakes, and had nothing when it was asked last.
    """

    def __init__(
        self,
        machine: SourceMachine,
        *,
        is_paced: bool,
        start_ns: int,
        looks: Looks,
        wakes: bool = False,
    ) -> None:
        self.machine, self.is_paced = machine, is_paced
        self.next_take_ns = start_ns
        self.looks = looks
        self.wakes = wakes
        self.is_waiting = False

    def urgency_ns(self, now_ns: int) -> int | None:
        """Return since when rows that can be had now are due; None: there are none."""
        known_ns = self.machine.known_due_ns
        if known_ns is not None and self.is_paced and known_ns <= now_ns >= self.next_take_ns:
            return known_ns
        due_ns = self.due_ns(now_ns)
        self.is_waiting = due_ns is None and self.wakes
        if due_ns is None or due_ns > now_ns:
            return None
        # When it may be asked next says nothing about how long its row has been waiting.
        return self.machine.due_ns(now_ns) if self.is_paced else now_ns

    def due_ns(self, now_ns: int) -> int | None:
        """Return when it has its next rows; None: unknown, or never. May open or poll the input."""
        if self.machine.is_ended:
            return None
        due_ns = self.machine.due_ns(now_ns)
        if due_ns is None or due_ns > self.next_take_ns:
            return due_ns
        return self.next_take_ns

    @property
    def quiet_until_ns(self) -> int:
        """Until then it has nothing, whatever comes; START_NS: nobody knows; END_NS: for ever."""
        if self.machine.is_ended:
            return END_NS
        known_ns = self.machine.known_due_ns
        if known_ns is None:
            return START_NS
        return known_ns if known_ns > self.next_take_ns else self.next_take_ns

    def is_polling(self, now_ns: int) -> bool:
        """Whether it may get something at a time that it cannot tell."""
        if self.machine.is_ended or self.wakes:
            return False
        return self.machine.is_polling(now_ns)

    def take(self, now_ns: int, *, max_rows: int) -> Message | None:
        """Return what it has now, about `max_rows` rows at most."""
        message = self.machine.take(now_ns, max_rows=max_rows)
        self.has_looked(now_ns)
        return message

    def has_looked(self, now_ns: int) -> None:
        """Note when it may be asked again, having been asked now."""
        if self.is_paced:
            self.next_take_ns = self.looks.look(now_ns)


def source_of(stage: Stage, *, start_ns: int, looks: Looks) -> StageSource | None:
    """Return the source of a stage; None: it is another kind of stage."""
    step = stage.step
    if not isinstance(step, SourceStep):
        return None
    machine = SourceMachine(
        stage.name,
        step.source,
        step.schema,
        writer_id=stage.number,
        start_ns=start_ns,
        needed=stage.needed,
        teller=teller_of(stage, step),
    )
    return StageSource(
        machine,
        is_paced=step.source.speed is not None,
        start_ns=start_ns,
        looks=looks,
        wakes=getattr(step.source.input, "wakes", False),
    )
