"""Checkpoints in virtual time, by marks in the ways between slots.

```
take(n) ─▶ each slot, once between two slices ─▶ cut, marks after its messages ─▶ parts ─▶ done
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.recovery.checkpoint import SlotPart, consistent_parts, saved_results
from slackwater.runtime.schedule import Slot, SlotResults

__all__ = ["SimulatedMarks"]


class World(Protocol):
    """Simulator, as checkpoints see it."""

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        ...

    def slot(self, name: str) -> tuple[Slot, SlotResults]:
        """Return the machines of a slot."""
        ...

    def slot_of(self, stage: str) -> str:
        """Return the slot of a stage."""
        ...

    def send_mark(self, channel: Channel, arrive: Callable[[], None]) -> None:
        """Carry a mark on a channel, after all that was sent there."""
        ...


class SimulatedMarks:
    """Takes checkpoints of a simulated job.

    Args:
        slots: names of the slots.
        world: simulator that runs them.

    Attributes:
        taken: {number: the parts of a complete checkpoint, by slot}.
    """

    def __init__(self, slots: Sequence[str], world: World) -> None:
        self._slots, self._world = tuple(slots), world
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._results: dict[str, dict[str, Any]] = {}  # {slot: its results at its cut}
        self._parts: dict[str, SlotPart] = {}  # of the checkpoint that is being taken
        self._number = 0
        self.taken: dict[int, dict[str, SlotPart]] = {}

    def take(self) -> int:
        """Begin a checkpoint in all slots, and give up an incomplete one; return its number."""
        self._number += 1
        self._parts = {}
        for slot in self._slots:
            self.between_slices(slot, partial(self._cut, slot, self._number))
        return self._number

    def between_slices(self, slot: str, happen: Callable[[], None], *, waits: bool = True) -> None:
        """Let something happen to a slot, in order, between its slices if it must wait.

        Args:
            slot: name of the slot.
            happen: called once, at once or when the slot is between two slices.
            waits: whether it must not happen in the middle of a slice.
        """
        waiting = self._waiting.get(slot)
        if waiting:
            waiting.append(happen)
        elif waits and self._world.is_busy(slot):
            self._waiting.setdefault(slot, deque()).append(happen)
        else:
            happen()

    def slice_over(self, slot: str) -> None:
        """Let what waited for the end of a slot's slice happen, in order."""
        waiting = self._waiting.pop(slot, None)
        while waiting:
            waiting.popleft()()

    def look(self, slot: str) -> None:
        """Take the part of a slot if it is complete."""
        cut = self._world.slot(slot)[0].take_cut()
        if cut is None or cut.number != self._number:
            return
        self._parts[slot] = SlotPart.of(slot, cut, self._results.pop(slot), {})
        if len(self._parts) == len(self._slots):
            self.taken[self._number] = consistent_parts(self._parts)

    def _cut(self, slot: str, number: int, channel: str | None = None) -> None:
        machine, results = self._world.slot(slot)
        if number > machine.marked:
            self._results[slot] = saved_results(results, number)
        marks = machine.mark(number) if channel is None else machine.mark_came(channel, number)
        for sent in marks:
            self._world.send_mark(sent, partial(self._came, sent, number))
        self.look(slot)

    def _came(self, channel: Channel, number: int) -> None:
        slot = self._world.slot_of(channel.target)
        self.between_slices(slot, partial(self._cut, slot, number, channel.name))
