"""Move stages of a running job between its slots, or to new ones.

```
new actors, the new plan ─▶ hold ─▶ drain ─▶ give ─▶ rearranged ─▶ rebind ─▶ take_over
                            └───────── the slots concerned stand still ──────────────┘
```

Up to `give` all slots can go on unchanged. After it, a slot that cannot go on ends the job, as a
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
from slackwater.actors.nodes.in_band import InBand
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.slot.channel_ends import is_drained
from slackwater.actors.slot.handover import HandOver, TakeOver
from slackwater.actors.slot.report import SlotIdentity
from slackwater.runtime.errors import ClusterError, FlowError, SlackwaterError
from slackwater.runtime.measure.replaced import MovedStage, Replaced
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import bytes_of, rearranged, rearranged_results

__all__ = ["Replacing", "RunningJob", "why_not"]

CALL_S = 15.0
"""Time for an answer of all slots concerned; a slice under way may take seconds."""
DRAIN_S = 10.0
"""Time for messages between them to arrive; a thousandth of it where links are sound."""
LOOK_S = 0.001
BLAME_S = 5.0
"""How long to wait until the job finds out by itself that a slot has died."""


@dataclass
class RunningJob:
    """Facts of a running job that a re-placement needs.

    Attributes:
        plan: plan as it runs now.
        actors: {slot: its actor}; new actors are added.
        known: {slot: its identity}, the clocks' reference first; new slots are added.
        start_ns: start of its sources, by that clock.
        began_s: the same by this process's monotonic clock.
        carrier: carrier of the job.
        cluster_monitor: cluster monitor of this process.
        make: makes the actors of some slots of a plan, on given nodes and on the job's clock:
            {slot: (its actor, its identity)}.
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
    """Outcome of each re-placement so far."""


class Replacing:
    """Re-places one job. From any thread; one re-placement at a time.

    Attributes:
        job: the running job.
    """

    def __init__(self, job: RunningJob) -> None:
        self.job = job
        self._alone = threading.Lock()

    def place(self, wanted: Plan, nodes: Mapping[str, NodeInfo]) -> Replaced:
        """Move stages to the slots of `wanted`; return the outcome.

        Args:
            wanted: a plan of the same stages.
            nodes: {name: node} of the nodes that are up.

        Raises:
            FlowError: the job or a target slot has ended, or no stage is to move.
            ClusterError: no room for a new slot, or it could not be made.
        """
        with self._alone:
            over: set[str] = set()
            while True:
                relocation = self._relocation(wanted, over)
                new = self._new_actors(relocation, nodes)
                move = _Move(self.job, relocation, new, nodes)
                ended = move.hold()
                if not ended:
                    break
                over |= ended  # its stages have finished meanwhile: the others move
                move.give_up()
            self.job.done.append(move.carry_out())
            return self.job.done[-1]

    def _relocation(self, wanted: Plan, over: Collection[str]) -> Relocation:
        job = self.job
        if job.carrier.life.is_ending:
            raise FlowError(
                f"job {job.plan.flow!r} ends, or has ended, so no stage of it can move; submit the "
                "flow again with this placement"
            )
        ended = [slot for slot in job.carrier.life.ended if slot in job.plan.slot_names]
        relocation = Relocation.between(job.plan, wanted, ended=[*ended, *over])
        if not relocation.moves:
            raise FlowError(
                f"job {job.plan.flow!r} has no stage left to move; all stages of the placement are "
                "already there, or have finished"
            )
        return relocation

    def _new_actors(self, relocation: Relocation, nodes: Mapping[str, NodeInfo]) -> dict[str, Any]:
        """Make the missing actors, before any slot holds still; return them."""
        job = self.job
        homes = {
            slot: nodes[relocation.new.places[slot].node]
            for slot in relocation.new_slots
            if slot not in job.actors
        }
        if not homes:
            return {}
        made = job.make(relocation.new, homes)
        for slot, (actor, identity) in made.items():
            job.actors[slot], job.known[slot] = actor, identity
        return {slot: actor for slot, (actor, _) in made.items()}


def why_not(problem: Exception, flow: str, *, has_ended: bool) -> str:
    """Return why no stage was moved, on one line.

    Args:
        problem: error of the attempt.
        flow: name of the flow.
        has_ended: whether its job has ended meanwhile, which ends the slots that are asked.
    """
    if has_ended:
        return f"job {flow!r} ended meanwhile; submit the flow again with this placement"
    return str(problem).strip().splitlines()[0]


class _Move:
    """An attempt to move stages: from `hold` to `take_over`."""

    def __init__(
        self,
        job: RunningJob,
        relocation: Relocation,
        new: Mapping[str, Any],
        nodes: Mapping[str, NodeInfo],
    ) -> None:
        self._job, self._relocation, self._new, self._nodes = job, relocation, new, nodes
        self._held = [slot for slot in relocation.slots if slot not in relocation.new_slots]
        self._began_s = time.monotonic()  # when the slots were, or will be, told to hold still
        self._is_given = False
        self._problem: str | None = None

    def hold(self) -> set[str]:
        """Let the slots concerned hold still; return those that have ended meanwhile."""
        new, slots = self._relocation.new, self._relocation.slots
        parts = {slot: (InBand(slot_plan(new, slot)),) for slot in slots}
        again = [slot for slot in self._relocation.new_slots if slot not in self._new]
        try:
            self._ask("join", dict.fromkeys(again, ()))  # without stages they end
            self._ask("prepare", parts)
            self._began_s = time.monotonic()
            states = self._ask("hold", dict.fromkeys(self._held, ()))
        except SlackwaterError as problem:
            self._problem = self._why_not(problem)
            return set()
        failed = [slot for slot, state in states.items() if state == "failed"]
        if failed:
            self._problem = f"slot {failed[0]!r} failed meanwhile"
        return {slot for slot, state in states.items() if state in ("done", "stopped")}

    def carry_out(self) -> Replaced:
        """Hand stages over; return the outcome."""
        size = 0
        if self._problem is None:
            try:
                size = self._hand_over()
            except (SlackwaterError, RayError) as problem:
                self._problem = self._why_not(problem)
        if self._problem is not None:
            self.give_up()
        moves = [MovedStage(*move) for move in self._relocation.moves]
        at_s, gap_s = self._began_s - self._job.began_s, time.monotonic() - self._began_s
        if self._problem is None:
            self._job.carrier.refresh()
        return Replaced(max(at_s, 0.0), gap_s, moves, size, self._problem)

    def _why_not(self, problem: Exception) -> str:
        job = self._job
        return why_not(problem, job.plan.flow, has_ended=job.carrier.life.is_ending)

    def give_up(self) -> None:
        """Let all slots go on unchanged; after `give`, end the job."""
        if not self._is_given:
            for slot in self._held:
                self._job.actors[slot].call.remote("go_on")
            end_actors(self._new)
            for slot in self._new:
                del self._job.actors[slot], self._job.known[slot]
            return
        until_s = time.monotonic() + BLAME_S
        while time.monotonic() < until_s:  # the job finds the cause itself
            if self._job.carrier.life.is_ending or self._job.carrier.over.wait(LOOK_S * 50):
                return
        for slot in self._held:
            self._job.actors[slot].call.remote("break_off", self._problem)

    def _hand_over(self) -> int:
        """Move the stages; return the bytes of their state."""
        job, relocation = self._job, self._relocation
        rewired = relocation.rewired
        self._drain(rewired)
        self._is_given = True
        leaving = {slot: (relocation.leaving(slot), rewired) for slot in self._held}
        given: dict[str, HandOver] = self._ask("give", leaving)
        states = rearranged({slot: g.state for slot, g in given.items()}, relocation)
        results = rearranged_results({slot: g.results for slot, g in given.items()}, relocation)
        positions = {sink: at for g in given.values() for sink, at in g.positions.items()}
        new_slots = relocation.new.slots
        hosts = {stage: job.known[slot].host for stage, slot in new_slots.items()}
        over = self._over([name for g in given.values() for name in g.finished])
        bound = self._ask("rebind", dict.fromkeys(relocation.slots, (hosts, over)))
        endpoints = {name: where for own in bound.values() for name, where in own.items()}
        job.carrier.relocate(relocation, self._nodes)
        orders = {
            slot: TakeOver(
                start_ns=job.start_ns,
                endpoints=endpoints,
                state=states.get(slot),
                results=results[slot],
                positions={s: at for s, at in positions.items() if new_slots[s] == slot},
            )
            for slot in relocation.slots
        }
        self._ask("take_over", {slot: (order,) for slot, order in orders.items()})
        job.plan = relocation.new
        job.carrier.follow(relocation.new_slots)
        return sum(bytes_of(state["stream"]["stages"]) for state in states.values())

    def _drain(self, rewired: frozenset[str]) -> None:
        until_s = time.monotonic() + DRAIN_S
        while True:
            passed = self._ask("passed", dict.fromkeys(self._held, (rewired,)))
            if is_drained(passed.values()):
                return
            if time.monotonic() > until_s:
                raise ClusterError(
                    f"messages between slots did not arrive within {DRAIN_S:g} s; the stages stay: "
                    "try again when links are less busy"
                )
            time.sleep(LOOK_S)

    def _over(self, finished: Collection[str]) -> frozenset[str]:
        """Return the rewired channels whose stream has ended: they need no ends."""
        old, ended = self._relocation.old, self._relocation.ended
        return frozenset(
            channel.name
            for channel in old.channels
            if channel.name in self._relocation.rewired
            and (channel.source in finished or old.slots[channel.source] in ended)
        )

    def _ask(self, method: str, arguments: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call a method of slots, {slot: its arguments}; return {slot: its answer}."""
        actors = self._job.actors
        calls = {slot: actors[slot].call.remote(method, *args) for slot, args in arguments.items()}
        try:
            answers = self._job.cluster_monitor.get(list(calls.values()), CALL_S)
        except GetTimeoutError as problem:
            raise ClusterError(
                f"not all of the slots {', '.join(calls)} answered {method!r} within {CALL_S:g} s; "
                "see with `ray status` whether their nodes are up"
            ) from problem
        except RayError as problem:
            raise unwrapped_ray_error(problem) from problem
        return dict(zip(calls, answers, strict=True))
