"""Re-placement of a running flow in virtual time, as on Ray in `actors/jobs/replacing.py`.

```
Replace ─▶ slots concerned hold ─▶ nothing is on its way ─▶ states are moved ─▶ they go on
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
"""Time to hand over once all slots hold still: a few calls of a job to its slots. Measured on Ray
with free cores and small states (docs/benchmarks/placement.md); here for states of any size."""


@dataclass(frozen=True)
class Replace:
    """Order to place a running flow again at a virtual time.

    Attributes:
        at_ns: virtual time since the start of the job, >= 0.
        plan: the same stages; those with another slot move.
    """

    at_ns: int
    plan: Plan

    def __post_init__(self) -> None:
        if self.at_ns < 0:
            raise SettingError(f"at_ns={self.at_ns} must be 0 or more, from the start")


class World(Protocol):
    """Simulator, as a re-placement sees it."""

    now_ns: int

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt."""
        ...

    def keep_at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt or in a later one."""
        ...

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        ...

    def why_still(self, slot: str) -> str | None:
        """Return why a slot no longer works; None if it works."""
        ...

    def has_ended(self, slot: str) -> bool:
        """Whether a slot has ended by itself, with all its stages finished."""
        ...

    def relocate(self, relocation: Relocation) -> int:
        """Move the stages; return the bytes of state moved."""
        ...

    def wake(self, slots: Sequence[str]) -> None:
        """Wake slots."""
        ...


class SimulatedReplacing:
    """Carries out re-placements, one after the other.

    Args:
        plan: plan at the start of the flow.
        world: simulator that runs it.

    Attributes:
        done: results of the re-placements so far.
    """

    def __init__(self, plan: Plan, world: World) -> None:
        self._plan, self._world = plan, world
        self._wanted: list[Replace] = []
        self._waiting: deque[Plan] = deque()
        self._now: Relocation | None = None  # the current one
        self._began_ns = self._start_ns = 0
        self._held: frozenset[str] = frozenset()
        self._is_carrying = self._has_failed = False
        self._travelling: Counter[str] = Counter()  # {channel: messages and grants on their way}
        self.done: list[Replaced] = []

    def add(self, wanted: Replace) -> None:
        """Add a re-placement, before the run begins."""
        self._wanted.append(wanted)

    def begin(self) -> None:
        """Schedule all re-placements, by the world's clock from now on."""
        self._start_ns = self._world.now_ns
        for order in self._wanted:
            self._world.keep_at(self._start_ns + order.at_ns, partial(self._ask, order.plan))

    @property
    def is_moving(self) -> bool:
        """Whether a re-placement is under way."""
        return self._now is not None

    def fail(self) -> None:
        """Give up the current re-placement, as the attempt has failed; others wait for the next."""
        self._has_failed = True
        if self._now is not None:
            self._note(self._now, problem="the job has failed meanwhile")

    def go_on(self, plan: Plan) -> None:
        """Go on in a new attempt, whose slots are those of a plan."""
        self._plan, self._now, self._held = plan, None, frozenset()
        self._is_carrying = self._has_failed = False
        self._travelling.clear()
        self._next()

    def holds(self, slot: str) -> bool:
        """Whether a slot may not begin a slice."""
        return slot in self._held

    def left(self, channel: str) -> None:
        """Note that a message or a grant is on its way between two slots."""
        self._travelling[channel] += 1

    def arrived(self, channel: str) -> None:
        """Note that a message or a grant has arrived, or is lost with its receiver."""
        self._travelling[channel] -= 1
        self.look()

    def look(self) -> None:
        """Move the stages if all slots concerned are still, after a slice or an arrival."""
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
        if self._now is None and not self._has_failed:
            self._next()

    def _next(self) -> None:
        while self._waiting and self._now is None:
            self._hold(self._waiting.popleft())

    def _hold(self, wanted: Plan) -> None:
        self._began_ns = self._world.now_ns
        ended = [slot for slot in self._plan.slot_names if self._world.has_ended(slot)]
        try:
            current = Relocation.between(self._plan, wanted, ended=ended)
        except FlowError as problem:
            self._note(Relocation(self._plan, wanted), problem=str(problem))
            return
        if not current.moves:
            self._note(Relocation(self._plan, wanted), problem="no stage is left to move")
            return
        self._now, self._held = current, frozenset(current.slots)
        self.look()

    def _move(self) -> None:
        current = self._now
        assert current is not None, "a re-placement is under way"
        held, self._held = current.slots, frozenset()
        self._now, self._is_carrying = None, False
        there = [slot for slot in held if slot not in current.new_slots]
        if any(self._world.has_ended(slot) for slot in there):
            self._waiting.appendleft(current.new)  # its stages have finished: the others move
        elif still := {slot: why for slot in there if (why := self._world.why_still(slot))}:
            slot, why = min(still.items(), key=lambda pair: pair[1] != "died")  # others miss it
            self._note(current, problem=f"slot {slot!r} {why} meanwhile")
        else:
            self._note(current, state_bytes=self._world.relocate(current))
            self._plan = current.new
        self._world.wake(held)
        self._next()

    def _note(self, done: Relocation, *, state_bytes: int = 0, problem: str | None = None) -> None:
        self.done.append(
            Replaced(
                at_s=(self._began_ns - self._start_ns) / NS_PER_SECOND,
                gap_s=(self._world.now_ns - self._began_ns) / NS_PER_SECOND,
                moves=[MovedStage(*move) for move in done.moves],
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
    """Replace slots that hold still by new ones, with the stages of the new plan.

    Args:
        relocation: the stages that move.
        slots: {slot: its machine}, of the whole job; changed.
        results: {slot: the machine of its sinks}; changed.
        new_slot: makes the machine of a slot of the new plan.
        new_results: makes the machine of its sinks.

    Returns:
        The bytes of state moved; the channels that connect other slots now, and whose stream has
        ended: no message will come on them.
    """
    known = [slot for slot in relocation.slots if slot not in relocation.new_slots]
    states = rearranged(
        {slot: slots[slot].snapshot(relocation.leaving(slot)) for slot in known}, relocation
    )
    sinks = rearranged_results({slot: save(results[slot]) for slot in known}, relocation)
    # Not in there: those of slots that have ended, which are finished.
    machines = {name: machine for slot in known for name, machine in slots[slot].stages.items()}
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
    return sum(bytes_of(state["stream"]["stages"]) for state in states.values()), frozenset(over)
