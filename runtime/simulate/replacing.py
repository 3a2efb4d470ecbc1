"""A running flow is placed anew, in virtual time, as `actors/jobs/replacing.py` does it on Ray.

```
Replace ─▶ slots concerned hold ─▶ nothing is on its way ─▶ states are carried ─▶ they go on
                  │                 between them                │
                  └── one of them dies, hangs, or ends: nothing moves, and the job ends as ever
```
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.measure.replaced import MovedStage, Replaced
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.schedule import Slot, SlotResults, bytes_of, rearranged, rearranged_results

__all__ = ["Replace", "SimulatedReplacing", "relocated"]

CARRY_NS = 50_000_000
"""What a hand-over takes once all hold still: a handful of calls of a job to its slots. On Ray so
much where cores are free and states small (docs/benchmarks/mace.md); here whatever their size."""


@dataclass(frozen=True)
class Replace:
    """At a time, place a running flow anew.

    Attributes:
        at_ns: since the start of the job, in virtual time, >= 0.
        plan: the same stages; what differs in their slots moves.
    """

    at_ns: int
    plan: Plan

    def __post_init__(self) -> None:
        if self.at_ns < 0:
            raise SettingError(f"at_ns={self.at_ns} counts from the start, and is at least 0")


class World(Protocol):
    """What a re-placement needs of the simulator."""

    now_ns: int

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Let something happen at a virtual time."""
        ...

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        ...

    def why_still(self, slot: str) -> str | None:
        """Return why a slot does nothing any more; None: it works."""
        ...

    def has_ended(self, slot: str) -> bool:
        """Whether all stages of a slot have finished, and it has ended by itself."""
        ...

    def relocate(self, relocation: Relocation) -> int:
        """Move the stages; return how many bytes of state went along."""
        ...

    def wake(self, slots: Sequence[str]) -> None:
        """Let slots go on."""
        ...


class SimulatedReplacing:
    """Carries out re-placements, one after the other.

    Args:
        plan: as the flow begins.
        world: where it runs.

    Attributes:
        done: what was made of each so far.
    """

    def __init__(self, plan: Plan, world: World) -> None:
        self._plan, self._world = plan, world
        self._wanted: list[Replace] = []
        self._waiting: deque[Plan] = deque()
        self._now: Relocation | None = None  # under way
        self._began_ns = self._start_ns = 0
        self._held: frozenset[str] = frozenset()
        self._is_carrying = False
        self._travelling: Counter[str] = Counter()  # {channel: messages and grants on their way}
        self.done: list[Replaced] = []

    def add(self, wanted: Replace) -> None:
        """Let this be done, too; before the run begins."""
        self._wanted.append(wanted)

    def begin(self) -> None:
        """Let each happen when it is time, by the world's clock from now on."""
        self._start_ns = self._world.now_ns
        for one in self._wanted:
            self._world.at(self._start_ns + one.at_ns, partial(self._ask, one.plan))

    def holds(self, slot: str) -> bool:
        """Whether a slot is to begin no slice."""
        return slot in self._held

    def left(self, channel: str) -> None:
        """Take note that a message or a grant is on its way between two slots."""
        self._travelling[channel] += 1

    def arrived(self, channel: str) -> None:
        """Take note that one has arrived, or is lost with who was to have it."""
        self._travelling[channel] -= 1
        self.look()

    def look(self) -> None:
        """A slot is between two slices, or something has arrived: go on if all is still."""
        if self._now is None or self._is_carrying:
            return
        if any(self._world.is_busy(slot) for slot in self._held):
            return
        if any(self._travelling[name] > 0 for name in self._now.rewired):
            return
        self._is_carrying = True
        self._world.at(self._world.now_ns + CARRY_NS, self._move)

    def _ask(self, plan: Plan) -> None:
        self._waiting.append(plan)
        if self._now is None:
            self._next()

    def _next(self) -> None:
        while self._waiting and self._now is None:
            self._hold(self._waiting.popleft())

    def _hold(self, wanted: Plan) -> None:
        self._began_ns = self._world.now_ns
        ended = [slot for slot in self._plan.slot_names if self._world.has_ended(slot)]
        try:
            found = Relocation.between(self._plan, wanted, ended=ended)
        except FlowError as problem:
            self._note(Relocation(self._plan, wanted), problem=str(problem))
            return
        if not found.moves:
            self._note(Relocation(self._plan, wanted), problem="no stage is left to move")
            return
        self._now, self._held = found, frozenset(found.slots)
        self.look()

    def _move(self) -> None:
        found = self._now
        assert found is not None, "it is being carried"
        held, self._held = found.slots, frozenset()
        self._now, self._is_carrying = None, False
        there = [slot for slot in held if slot not in found.new_slots]
        if any(self._world.has_ended(slot) for slot in there):
            self._waiting.appendleft(found.new)  # its stages have finished: the others move
        elif still := {slot: why for slot in there if (why := self._world.why_still(slot))}:
            slot, why = min(still.items(), key=lambda one: one[1] != "died")  # others miss it
            self._note(found, problem=f"slot {slot!r} {why} meanwhile")
        else:
            self._note(found, state_bytes=self._world.relocate(found))
            self._plan = found.new
        self._world.wake(held)
        self._next()

    def _note(self, found: Relocation, *, state_bytes: int = 0, problem: str | None = None) -> None:
        self.done.append(
            Replaced(
                at_s=(self._began_ns - self._start_ns) / NS_PER_SECOND,
                gap_s=(self._world.now_ns - self._began_ns) / NS_PER_SECOND,
                moves=[MovedStage(*one) for one in found.moves],
                state_bytes=state_bytes,
                problem=problem,
            )
        )


def relocated(
    relocation: Relocation,
    slots: dict[str, Slot],
    results: dict[str, SlotResults],
    new_slot: Callable[[str], Slot],
    new_results: Callable[[str], SlotResults],
) -> tuple[int, frozenset[str]]:
    """Let slots that hold still go on as new ones, with the stages of the new plan.

    Args:
        relocation: what moves.
        slots: {slot: its machine}, of the whole job; changed.
        results: the same of its sinks; changed.
        new_slot: makes the machine of a slot of the new plan.
        new_results: makes that of its sinks.

    Returns:
        How many bytes of state went along; the channels that join other slots now, and whose
        stream is over: nothing will come on them.
    """
    known = [slot for slot in relocation.slots if slot not in relocation.new_slots]
    states = rearranged(
        {slot: slots[slot].snapshot(relocation.leaving(slot)) for slot in known}, relocation
    )
    sinks = rearranged_results({slot: save(results[slot]) for slot in known}, relocation)
    # Not in there: those of slots that have ended, which are finished.
    machines = {name: one for slot in known for name, one in slots[slot].stages.items()}
    over = {
        channel.name
        for channel in relocation.old.channels
        if channel.name in relocation.rewired
        and (channel.source not in machines or machines[channel.source].is_finished)
    }
    for slot in relocation.slots:
        old, slots[slot] = slots[slot] if slot in known else None, new_slot(slot)
        results[slot] = new_results(slot)
        restore(results[slot], sinks[slot])
        if slot in states:
            slots[slot].restore(states[slot], old)
        for name in relocation.leaving(slot):
            machines[name].close()
    return sum(bytes_of(state["stages"]) for state in states.values()), frozenset(over)
