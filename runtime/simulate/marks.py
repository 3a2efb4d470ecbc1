"""Checkpoints in virtual time, by marks in the ways between slots.

```
take(n) ─▶ each slot, once between two slices ─▶ cut, marks after its messages ─▶ its part ─▶ job
job: all parts came ─▶ complete(n) ─▶ each slot releases what its sinks held until then
```

Each arrow takes a while, drawn by a seed, so that faults strike between any two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from slackwater.runtime.plan.plan import Channel, Plan
from slackwater.runtime.recovery.checkpoint import SlotPart, consistent_parts, saved_results
from slackwater.runtime.schedule import Slot, SlotResults

__all__ = ["CompleteCheckpoint", "SimulatedMarks"]

DELAY_NS = 20_000_000
"""Longest time of the job's word to a slot, or of a slot's part to where it is kept."""

KEYS, GAP_NS = 3, 1_000_000
"""Keys of a slot's cut that are saved in one step, and time between two steps."""


class CompleteCheckpoint(NamedTuple):
    """A checkpoint that is complete.

    Attributes:
        parts: the parts of the slots, by slot.
        plan: plan at that time, whose slots they are.
        at_ns: when it was complete.
    """

    parts: dict[str, SlotPart]
    plan: Plan
    at_ns: int


class World(Protocol):
    """Simulator, as checkpoints see it."""

    now_ns: int

    @property
    def plan(self) -> Plan:
        """Present plan of the job."""
        ...

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt."""
        ...

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        ...

    def may_cut(self, slot: str) -> bool:
        """Whether a slot works, or has ended well."""
        ...

    def slot(self, name: str) -> tuple[Slot, SlotResults]:
        """Return the machines of a slot."""
        ...

    def send_mark(self, channel: Channel, arrive: Callable[[], None]) -> None:
        """Carry a mark on a channel, after all that was sent there."""
        ...

    def checkpoint_is_complete(self, number: int) -> None:
        """Take note that a checkpoint is complete."""
        ...

    def release(self, slot: str, number: int) -> None:
        """Let a slot's sinks have what a complete checkpoint contains."""
        ...

    def all_released(self, number: int) -> None:
        """Take note that all slots have released what a checkpoint contains."""
        ...


class SimulatedMarks:
    """Takes checkpoints of a simulated job.

    Args:
        world: simulator that runs it.
        rng: draws the delays of words and parts.
        delay_ns: longest of these.

    Attributes:
        taken: {number: a complete checkpoint}.
        number: number of the last checkpoint that was begun; 0 before the first.
        is_under_way: whether that one may still be complete, or is, and not all slots know it.
    """

    def __init__(self, world: World, rng: np.random.Generator, *, delay_ns: int = DELAY_NS) -> None:
        self._world, self._rng, self._delay_ns = world, rng, delay_ns
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._saves: dict[str, Slot] = {}  # that save more of a cut once their slices are over
        self._results: dict[str, dict[str, Any]] = {}  # {slot: its results at its cut}
        self._parts: dict[str, SlotPart] = {}  # of the checkpoint that is being taken
        self._unreleased: set[str] = set()  # slots, of the last complete checkpoint
        self.number, self.is_under_way = 0, False
        self.taken: dict[int, CompleteCheckpoint] = {}

    def take(self) -> int:
        """Begin a checkpoint in all slots, and give up an incomplete one; return its number."""
        self.number += 1
        self.is_under_way = True
        self._parts = {}
        for slot in self._world.plan.slot_names:
            cut = partial(self._cut, slot, self.number)
            self._later(partial(self.between_slices, slot, cut))
        return self.number

    @property
    def is_complete(self) -> bool:
        """Whether the last checkpoint that was begun is complete."""
        return self.number in self.taken

    def give_up(self) -> None:
        """Give up the checkpoint that is under way: its slots have other stages now."""
        self.is_under_way = False

    def begin_again(self) -> None:
        """Begin a new attempt: all slots are new."""
        self.give_up()
        self._waiting.clear()
        self._saves.clear()
        self._results.clear()

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
        if (machine := self._saves.pop(slot, None)) is not None:
            self._save(slot, machine)

    def look(self, slot: str) -> None:
        """Send the part of a slot to the job if it is complete."""
        cut = self._world.slot(slot)[0].take_cut()
        if cut is not None:
            part = SlotPart.of(slot, cut, self._results.pop(slot), {})
            self._later(partial(self._part_came, part))

    def _cut(self, slot: str, number: int, channel: str | None = None) -> None:
        if not self._world.may_cut(slot):
            return
        machine, results = self._world.slot(slot)
        if is_first := number > machine.marked:
            self._results[slot] = saved_results(results, number)
        marks = machine.mark(number) if channel is None else machine.mark_came(channel, number)
        for sent in marks:
            self._world.send_mark(sent, partial(self._came, sent, number))
        self.look(slot)
        if is_first:
            self._save_later(slot, machine)

    def _save_later(self, slot: str, machine: Slot) -> None:
        if machine.is_saving:
            self._world.at(self._world.now_ns + GAP_NS, partial(self._save, slot, machine))

    def _save(self, slot: str, machine: Slot) -> None:
        """Save a few more keys of a slot's cut, unless another attempt has its place."""
        if not self._world.may_cut(slot) or self._world.slot(slot)[0] is not machine:
            return
        if self._world.is_busy(slot):
            self._saves[slot] = machine
            return
        machine.save_more(KEYS)
        self.look(slot)
        self._save_later(slot, machine)

    def _came(self, channel: Channel, number: int) -> None:
        slot = self._world.plan.slots[channel.target]
        self.between_slices(slot, partial(self._cut, slot, number, channel.name))

    def _part_came(self, part: SlotPart) -> None:
        if part.number != self.number or not self.is_under_way:
            return
        plan = self._world.plan
        self._parts[part.slot] = part
        if self._parts.keys() < set(plan.slot_names):
            return
        now_ns, parts = self._world.now_ns, consistent_parts(self._parts)
        self.taken[part.number] = CompleteCheckpoint(parts, plan, now_ns)
        self._world.checkpoint_is_complete(part.number)
        self._unreleased = set(plan.slot_names)
        for slot in plan.slot_names:
            release = partial(self._release, slot, part.number)
            self._later(partial(self.between_slices, slot, release))

    def _release(self, slot: str, number: int) -> None:
        self._world.release(slot, number)
        self._unreleased.discard(slot)
        if not self._unreleased:
            self.is_under_way &= number < self.number
            self._world.all_released(number)

    def _later(self, happen: Callable[[], None]) -> None:
        self._world.at(self._world.now_ns + int(self._rng.integers(self._delay_ns)), happen)
