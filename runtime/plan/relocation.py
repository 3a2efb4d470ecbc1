"""Relocation of a running flow: the stages that move, and the slots that stand still.

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
    """Move of a stage, which continues in another slot."""

    stage: str
    origin: str
    target: str


@dataclass(frozen=True)
class Relocation:
    """Change from one plan to another of the same stages.

    Attributes:
        old: the plan of the slots in use now.
        new: the plan of the slots to use.
        ended: slots that have ended, since all their stages have finished.
    """

    old: Plan
    new: Plan
    ended: frozenset[str] = frozenset()

    @classmethod
    def between(cls, old: Plan, wanted: Plan, *, ended: Collection[str] = ()) -> Relocation:
        """Return the relocation between two plans; finished stages stay in their slots.

        Raises:
            FlowError: a stage is to move to a slot that has ended.
        """
        over = frozenset(ended)
        slots = {
            name: slot if slot in over else wanted.slots[name] for name, slot in old.slots.items()
        }
        places = {**old.places, **wanted.places}  # slots without stages have not ended yet
        relocation = cls(old, replace(wanted, slots=slots, places=places), over)
        for move in relocation.moves:
            if move.target in over:
                raise FlowError(
                    f"stage {move.stage!r} cannot move to slot {move.target!r}: all stages of that "
                    "have finished, and it has ended; choose another slot"
                )
        return relocation

    @property
    def moves(self) -> tuple[StageMove, ...]:
        """Moves of the stages that change their slot, in topological order."""
        before, after = self.old.slots, self.new.slots
        return tuple(
            StageMove(stage.name, before[stage.name], after[stage.name])
            for stage in self.old.stages
            if before[stage.name] != after[stage.name]
        )

    @property
    def rewired(self) -> frozenset[str]:
        """Names of the channels that join other slots than before."""
        moved = {move.stage for move in self.moves}
        return frozenset(
            channel.name
            for channel in self.old.channels
            if channel.source in moved or channel.target in moved
        )

    @property
    def slots(self) -> tuple[str, ...]:
        """Slots that stand still meanwhile: those of moving stages and of their neighbours."""
        rewired = self.rewired
        ends = [
            end
            for channel in self.old.channels
            if channel.name in rewired
            for end in (channel.source, channel.target)
        ]
        ends += [move.stage for move in self.moves]
        held = {plan.slots[end] for plan in (self.old, self.new) for end in ends} - self.ended
        return tuple(slot for slot in self.all_slots if slot in held)

    def leaving(self, slot: str) -> tuple[str, ...]:
        """Return the stages that move out of a slot."""
        return tuple(move.stage for move in self.moves if move.origin == slot)

    @property
    def all_slots(self) -> tuple[str, ...]:
        """Slots of the old plan, then the new ones."""
        return tuple(dict.fromkeys([*self.old.slot_names, *self.new.slot_names]))

    @property
    def new_slots(self) -> tuple[str, ...]:
        """Slots that had no stage before."""
        known = self.old.slot_names
        return tuple(slot for slot in self.new.slot_names if slot not in known)
