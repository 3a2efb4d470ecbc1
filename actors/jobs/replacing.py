"""A running job is placed anew: stages move between its slots, or to new ones.

```
new actors, the new plan ─▶ hold ─▶ drain ─▶ give ─▶ rearranged ─▶ rebind ─▶ take_over
                            └───────── the slots concerned stand still ──────────────┘
```

Up to `give` all can go on as if nothing had been. Behind it, who cannot go on ends the job, as a
worker that dies does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ray.exceptions import GetTimeoutError, RayError

from slackwater.actors.jobs.carrier import JobCarrier
from slackwater.actors.jobs.ray_errors import unwrapped_ray_error
from slackwater.actors.jobs.slot_actors import end_actors
from slackwater.actors.nodes.cluster_monitor import ClusterMonitor
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.slot.channel_ends import is_drained
from slackwater.actors.slot.handover import Given, Taken
from slackwater.actors.slot.report import SlotIdentity
from slackwater.runtime.errors import ClusterError, FlowError, SlackwaterError
from slackwater.runtime.measure.replaced import MovedStage, Replaced
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import bytes_of, rearranged, rearranged_results

__all__ = ["Replacing", "RunningJob"]

CALL_S = 15.0
"""For an answer of all slots concerned; one may be in the midst of a slice that takes seconds."""
DRAIN_S = 10.0
"""For what is under way between them to arrive; a thousandth of it, where links are sound."""
LOOK_S = 0.001
BLAME_S = 5.0
"""How long to wait for the job to find out by itself that a slot has died."""


@dataclass
class RunningJob:
    """What a re-placement needs of its job.

    Attributes:
        plan: as it runs now.
        actors: {slot: its actor}; new ones are put in.
        known: {slot: who it is}, the reference of their clocks first; new ones are put in.
        start_ns: when its sources began, by that clock.
        began_s: the same by this process's monotonic clock.
        carrier: looks after it.
        cluster_monitor: of this process.
        make: makes the actors of some slots of a plan, on given nodes, and lets them go by the
            job's clock: {slot: (its actor, who it is)}.
    """

    plan: Plan
    actors: dict[str, Any]
    known: dict[str, SlotIdentity]
    start_ns: int
    began_s: float
    carrier: JobCarrier
    cluster_monitor: ClusterMonitor
    make: Callable[[Plan, Mapping[str, NodeInfo]], Mapping[str, tuple[Any, SlotIdentity]]]
    done: list[Replaced] = field(default_factory=list)
    """What came of each re-placement so far."""


class Replacing:
    """Places one job anew. From any thread; one re-placement at a time.

    Attributes:
        job: what there is to move, and where it is now.
    """

    def __init__(self, job: RunningJob) -> None:
        self.job = job
        self._alone = threading.Lock()

    def place(self, wanted: Plan, nodes: Mapping[str, NodeInfo]) -> Replaced:
        """Let stages go on in the slots of `wanted`; return what came of it.

        Args:
            wanted: the same stages.
            nodes: {name: node} that are up now.

        Raises:
            FlowError: the job has ended, a stage is to move to a slot that has, or none is to move.
            ClusterError: there is no room for a new slot, or it could not be made.
        """
        with self._alone:
            over: set[str] = set()
            while True:
                found = self._relocation(wanted, over)
                new = self._new_actors(found, nodes)
                one = _Move(self.job, found, new, nodes)
                ended = one.hold()
                if not ended:
                    break
                over |= ended  # its stages have finished meanwhile: the others move
                one.give_up()
            self.job.done.append(one.carry_out())
            return self.job.done[-1]

    def _relocation(self, wanted: Plan, over: Collection[str]) -> Relocation:
        job = self.job
        if job.carrier.life.is_ending:
            raise FlowError(
                f"job {job.plan.flow!r} ends, or has ended, so no stage of it can move; submit the "
                "flow again with this placement"
            )
        ended = [slot for slot in job.carrier.life.ended if slot in job.plan.slot_names]
        found = Relocation.between(job.plan, wanted, ended=[*ended, *over])
        if not found.moves:
            raise FlowError(
                f"job {job.plan.flow!r}: no stage is left to move: all that the placement names "
                "are there, or have finished"
            )
        return found

    def _new_actors(self, found: Relocation, nodes: Mapping[str, NodeInfo]) -> dict[str, Any]:
        """Make the actors that are missing, before anybody stands still; return them."""
        job = self.job
        homes = {
            slot: nodes[found.new.places[slot].node]
            for slot in found.new_slots
            if slot not in job.actors
        }
        if not homes:
            return {}
        made = job.make(found.new, homes)
        for slot, (actor, identity) in made.items():
            job.actors[slot], job.known[slot] = actor, identity
        return {slot: actor for slot, (actor, _) in made.items()}


class _Move:
    """One attempt: from `hold` to `take_over`."""

    def __init__(
        self,
        job: RunningJob,
        found: Relocation,
        new: Mapping[str, Any],
        nodes: Mapping[str, NodeInfo],
    ) -> None:
        self._job, self._found, self._new, self._nodes = job, found, new, nodes
        self._held = [slot for slot in found.slots if slot not in found.new_slots]
        self._began_s = time.monotonic()  # when the slots were told to hold still, or will be
        self._is_given = False
        self._problem: str | None = None

    def hold(self) -> set[str]:
        """Let the slots concerned hold still; return those that have ended meanwhile."""
        parts = {slot: (slot_plan(self._found.new, slot),) for slot in self._found.slots}
        again = [slot for slot in self._found.new_slots if slot not in self._new]
        try:
            self._ask("join", dict.fromkeys(again, ()))  # without stages they have ended, or will
            self._ask("prepare", parts)
            self._began_s = time.monotonic()
            states = self._ask("hold", dict.fromkeys(self._held, ()))
        except SlackwaterError as problem:
            self._problem = str(problem)
            return set()
        failed = [slot for slot, state in states.items() if state == "failed"]
        if failed:
            self._problem = f"slot {failed[0]!r} failed meanwhile"
        return {slot for slot, state in states.items() if state in ("done", "stopped")}

    def carry_out(self) -> Replaced:
        """Hand over; return what came of it."""
        size = 0
        if self._problem is None:
            try:
                size = self._hand_over()
            except (SlackwaterError, RayError) as problem:
                self._problem = str(problem).strip().splitlines()[0]
        if self._problem is not None:
            self.give_up()
        moves = [MovedStage(*one) for one in self._found.moves]
        at_s, gap_s = self._began_s - self._job.began_s, time.monotonic() - self._began_s
        if self._problem is None:
            self._job.carrier.refresh()
        return Replaced(max(at_s, 0.0), gap_s, moves, size, self._problem)

    def give_up(self) -> None:
        """Let all go on as before; if that cannot be, the job ends."""
        if not self._is_given:
            for slot in self._held:
                self._job.actors[slot].call.remote("go_on")
            end_actors(self._new)
            for slot in self._new:
                del self._job.actors[slot], self._job.known[slot]
            return
        until_s = time.monotonic() + BLAME_S
        while time.monotonic() < until_s:  # whose end it is, the job finds out by itself
            if self._job.carrier.life.is_ending or self._job.carrier.over.wait(LOOK_S * 50):
                return
        for slot in self._held:
            self._job.actors[slot].call.remote("break_off", self._problem)

    def _hand_over(self) -> int:
        """Move the stages; return how many bytes of state went along."""
        job, found = self._job, self._found
        rewired = found.rewired
        self._drain(rewired)
        self._is_given = True
        asked = {slot: (found.leaving(slot), rewired) for slot in self._held}
        given: dict[str, Given] = self._ask("give", asked)
        states = rearranged({slot: one.state for slot, one in given.items()}, found)
        results = rearranged_results({slot: one.results for slot, one in given.items()}, found)
        rows = {sink: own for one in given.values() for sink, own in one.rows.items()}
        hosts = {stage: job.known[slot].host for stage, slot in found.new.slots.items()}
        over = self._over([name for one in given.values() for name in one.finished])
        bound = self._ask("rebind", dict.fromkeys(found.slots, (hosts, over)))
        endpoints = {name: where for own in bound.values() for name, where in own.items()}
        job.carrier.relocate(found, self._nodes)
        orders = {
            slot: Taken(
                start_ns=job.start_ns,
                endpoints=endpoints,
                state=states.get(slot),
                results=results[slot],
                rows={name: own for name, own in rows.items() if found.new.slots[name] == slot},
            )
            for slot in found.slots
        }
        self._ask("take_over", {slot: (order,) for slot, order in orders.items()})
        job.plan = found.new
        job.carrier.follow(found.new_slots)
        return sum(bytes_of(state["stages"]) for state in states.values())

    def _drain(self, rewired: frozenset[str]) -> None:
        until_s = time.monotonic() + DRAIN_S
        while True:
            passed = self._ask("passed", dict.fromkeys(self._held, (rewired,)))
            if is_drained(passed.values()):
                return
            if time.monotonic() > until_s:
                raise ClusterError(
                    f"what was under way between slots did not arrive within {DRAIN_S:g} s"
                )
            time.sleep(LOOK_S)

    def _over(self, finished: Collection[str]) -> frozenset[str]:
        """Return the rewired channels whose stream has ended: nothing will come on them."""
        old, ended = self._found.old, self._found.ended
        return frozenset(
            one.name
            for one in old.channels
            if one.name in self._found.rewired
            and (one.source in finished or old.slots[one.source] in ended)
        )

    def _ask(self, method: str, asked: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call a method of slots, {slot: its arguments}; return {slot: its answer}."""
        actors = self._job.actors
        calls = {slot: actors[slot].call.remote(method, *args) for slot, args in asked.items()}
        try:
            answers = self._job.cluster_monitor.get(list(calls.values()), CALL_S)
        except GetTimeoutError as problem:
            raise ClusterError(
                f"not all of the slots {', '.join(calls)} answered {method!r} within {CALL_S:g} s"
            ) from problem
        except RayError as problem:
            raise unwrapped_ray_error(problem) from problem
        return dict(zip(calls, answers, strict=True))
