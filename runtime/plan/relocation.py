"""From one placement of a running flow to another: what moves, and who must hold still for it.

```
node-1  a ──┐              node-1  a ──┐         moves    pairs: node-2 ─▶ node-3
node-2  pairs, out   ──▶   node-3  pairs ─┐      rewired  a→pairs, pairs→out
node-3                     node-2  out ◀──┘      slots    node-1, node-2, node-3
```
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from slackwater.runtime.errors import FlowError
from slackwater.runtime.plan.plan import Plan

__all__ = ["Relocation", "StageMove"]


class StageMove(NamedTuple):
    """A stage that goes on in another slot."""

    stage: str
    origin: str
    target: str


@dataclass(frozen=True)
class Relocation:
    """Two plans of the same stages.

    Attributes:
        old: where they run now.
        new: where they are to run.
        ended: slots that have ended, all their stages being finished.
    """

    old: Plan
    new: Plan
    ended: frozenset[str] = frozenset()

    @classmethod
    def between(cls, old: Plan, wanted: Plan, *, ended: Collection[str] = ()) -> Relocation:
        """Return what is to move; stages of slots that have ended are finished, and stay.

        Raises:
            FlowError: a stage is to move to a slot that has ended.
        """
        over = frozenset(ended)
        slots = {
            name: slot if slot in over else wanted.slots[name] for name, slot in old.slots.items()
        }
        places = {**old.places, **wanted.places}  # those without stages have their end to come
        found = cls(old, replace(wanted, slots=slots, places=places), over)
        for one in found.moves:
            if one.target in over:
                raise FlowError(
                    f"stage {one.stage!r} cannot move to slot {one.target!r}: all stages of that "
                    "have finished, and it has ended; choose another slot"
                )
        return found

    @property
    def moves(self) -> tuple[StageMove, ...]:
        """The stages that change their slot, in topological order."""
        before, after = self.old.slots, self.new.slots
        return tuple(
            StageMove(one.name, before[one.name], after[one.name])
            for one in self.old.stages
            if before[one.name] != after[one.name]
        )

    @property
    def rewired(self) -> frozenset[str]:
        """The channels that join other slots than before, by name."""
        moved = {one.stage for one in self.moves}
        return frozenset(
            one.name for one in self.old.channels if one.source in moved or one.target in moved
        )

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that hold still meanwhile: of stages that move, and of their neighbours."""
        rewired = self.rewired
        ends = [
            end
            for one in self.old.channels
            if one.name in rewired
            for end in (one.source, one.target)
        ]
        ends += [one.stage for one in self.moves]
        held = {plan.slots[end] for plan in (self.old, self.new) for end in ends} - self.ended
        return tuple(slot for slot in self.all_slots if slot in held)

    def leaving(self, slot: str) -> tuple[str, ...]:
        """Return the stages that move out of a slot."""
        return tuple(one.stage for one in self.moves if one.origin == slot)

    @property
    def all_slots(self) -> tuple[str, ...]:
        """The slots of the old plan, then those that are new."""
        return tuple(dict.fromkeys([*self.old.slot_names, *self.new.slot_names]))

    @property
    def new_slots(self) -> tuple[str, ...]:
        """The slots that had no stage before."""
        known = self.old.slot_names
        return tuple(slot for slot in self.new.slot_names if slot not in known)
