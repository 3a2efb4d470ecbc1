"""Life of a job in virtual time, as `actors/jobs/carrier.py` carries it on Ray.

The same machine decides. The difference is the delay of each stimulus: here it is drawn by a seed.

```
fault ─▶ the slot stops working ┬─ its peers miss it   ─┐ each a while later, in any order
                                └─ the cluster says so ─┴▶ JobLife ─▶ stop · fetch · end
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from slackwater.runtime.errors import OperatorError, SlackwaterError, WorkerDied, kind_of
from slackwater.runtime.life import (
    Action,
    AskForDead,
    CheckCluster,
    ClusterGone,
    ClusterThere,
    CollectFinalReports,
    DeadNodes,
    End,
    FetchResults,
    FinalReportsCollected,
    HomeNode,
    HostSilent,
    JobLife,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopSlots,
    TimePassed,
)
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Channel, Plan
from slackwater.runtime.simulate.faults import (
    ClusterGoes,
    Fault,
    HostFallsSilent,
    SlotDies,
    SlotHangs,
    SlotRaises,
)

__all__ = ["CloseSlot", "SimulatedLife", "World"]

HOST = "simulator"
ORDER_NS = 20_000_000
"""Longest delay of an order to stop."""
MISSED_NS = 300_000_000
"""Longest time until peers miss a dead slot: its kernel closes its sockets."""
NOTICE_NS = 2 * NS_PER_SECOND
"""Longest time until the cluster reports a death, before or after the peers."""
SILENT_NS = (4 * NS_PER_SECOND, 8 * NS_PER_SECOND)
"""Range of the time after which a silent host is noticed, by a caller without an answer."""

CloseSlot = Callable[[str, str, str | None], str]
"""(slot, "done", "stopped" or "failed", why the job or the slot failed): end the slot's sinks. An
error of that is returned after a failure, else raised."""


class World(Protocol):
    """Simulator, as the life of its job sees it."""

    now_ns: int

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time."""
        ...

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        ...

    def recent(self, slot: str) -> list[str]:
        """Return the last stimuli of a slot as text."""
        ...

    def has_carried_all(self, channel: Channel) -> bool:
        """Whether the end of a channel's stream has been delivered."""
        ...


class SimulatedLife:
    """Life of one attempt at a simulated job, which says which slots may work.

    Args:
        plan: plan of the job.
        world: simulator that runs it.
        close: ends the sinks of a slot.
        rng: draws the delays of stimuli; its own, so that draws of costs stay equal.

    Attributes:
        machine: the machine that decides.
        ended_ns: end of the last slot; None if no slot has ended.
        error: reason why the job has failed.
        given: last stimuli of the slot that failed the job.
    """

    def __init__(
        self, plan: Plan, world: World, *, close: CloseSlot, rng: np.random.Generator
    ) -> None:
        homes = {slot: HomeNode(slot, slot, HOST) for slot in plan.slot_names}
        self.machine = JobLife(plan, homes)
        self.ended_ns: int | None = None
        self._plan, self._world, self._close, self._rng = plan, world, close, rng
        self._idle: set[str] = set()  # slots that no longer work: over, gone, or hanging
        self._over: set[str] = set()  # slots that have ended by themselves
        self._vanished: set[str] = set()
        self._silent: set[str] = set()  # nodes
        self._stopping: dict[str, str | None] = {}  # {slot to end: reason}
        self._gone: str | None = None  # why the cluster is gone
        self._raised: dict[str, SlackwaterError] = {}
        self._due_ns: int | None = None
        self.error: SlackwaterError | None = None
        self.given: list[str] = []

    def begin(self) -> None:
        """Begin the life of an attempt."""
        self.machine.begin(self._world.now_ns)

    def may_work(self, slot: str) -> bool:
        """Whether a slot may still work."""
        return slot not in self._idle

    def answers(self, slot: str) -> bool:
        """Whether a slot answers: it works, or has ended."""
        return slot not in self._idle or slot in self._over

    def has_ended(self, slot: str) -> bool:
        """Whether a slot has ended by itself, with all its stages finished."""
        return slot in self._over and slot not in self._raised and slot not in self._stopping

    def why_still(self, slot: str) -> str | None:
        """Return why a slot no longer works; None if it works."""
        if self.may_work(slot):
            return None
        if slot in self._over:
            return "failed" if slot in self._raised else "was stopped"
        return "died" if slot in self._vanished else "does not answer"

    def moved(self, plan: Plan) -> None:
        """Use a new plan of the same stages; see `JobLife.moved`."""
        again = {slot for slot in plan.slot_names if not self._plan.stages_of(slot)}
        self._over -= again
        self._idle -= again - self._vanished
        self._plan = plan
        self.machine.moved(plan, {slot: HomeNode(slot, slot, HOST) for slot in plan.slot_names})

    # -- what slots do ---------------------------------------------------------------------

    def rest(self, slot: str, *, is_finished: bool) -> None:
        """Note that a slot is between two slices; it ends if finished or stopped."""
        if not self.may_work(slot):
            return
        if slot in self._stopping:
            self._end(slot, "stopped", self._stopping[slot])
        elif is_finished:
            self._end(slot, "done", None)

    def fail(self, slot: str, problem: SlackwaterError) -> None:
        """End a slot with an error."""
        text = f"{problem}{self._close(slot, 'failed', str(problem))}"
        self._raised[slot] = problem
        self._leave(slot)
        self.tell(SlotEnded(slot, "failed", text, kind_of(problem), self._lost_by(slot)))

    def leave_slice(self, slot: str) -> None:
        """End a slot in the middle of a slice, which its user has interrupted."""
        self._end(slot, "stopped", None)

    def _end(self, slot: str, state: str, failure: str | None) -> None:
        try:
            self._close(slot, state if failure is None else "failed", failure)
        except SlackwaterError as problem:
            self.fail(slot, problem)
            return
        self._leave(slot)
        self.tell(SlotEnded(slot, state))

    def _leave(self, slot: str) -> None:
        self._idle.add(slot)
        self._over.add(slot)
        self.ended_ns = self._world.now_ns

    # -- what goes wrong -------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        """Let a fault happen, other than a stop by the user."""
        match fault:
            case ClusterGoes(what=what):
                self._gone = what
                self._later(SILENT_NS, ClusterGone(what))
            case HostFallsSilent(node=node):
                self._silent.add(node)
                self._vanish(node, SILENT_NS)
                why = f"its host {HOST} does not answer (silence)"
                self._later(SILENT_NS, HostSilent(node, why))
            case SlotDies(slot=slot, reason=reason) if self.may_work(slot):
                self._vanish(slot, (0, MISSED_NS))
                self._later((0, NOTICE_NS), SlotDied(slot, reason))
            case SlotHangs(slot=slot) if self.may_work(slot):
                self._idle.add(slot)
            case SlotRaises(slot=slot, said=text) if self.may_work(slot):
                self.fail(slot, OperatorError(text))

    def _vanish(self, slot: str, missed_ns: tuple[int, int]) -> None:
        """Remove a slot; its peers miss it when they find no end of its stream."""
        if slot in self._over | self._vanished:
            return
        self._idle.add(slot)
        self._vanished.add(slot)
        self._close(slot, "failed", "its process is gone")  # unpublished rows stay so
        for peer, channel in self._peers(slot):
            self._at(self._draw(missed_ns), partial(self._miss, peer, channel))

    def _miss(self, peer: str, channel: Channel) -> None:
        if self.may_work(peer) and not self._world.has_carried_all(channel):
            self.fail(peer, WorkerDied.at_other_end(peer, channel.name))

    def _lost_by(self, slot: str) -> tuple[str, ...]:
        return tuple(
            channel.name
            for peer, channel in self._peers(slot)
            if peer in self._vanished and not self._world.has_carried_all(channel)
        )

    def _peers(self, slot: str) -> list[tuple[str, Channel]]:
        """Return a slot's channels to other slots, each with the other slot."""
        peers = []
        for channel in self._plan.channels:
            sides = {self._plan.slots[channel.source], self._plan.slots[channel.target]}
            if slot in sides and len(sides) == 2:
                (peer,) = sides - {slot}
                peers.append((peer, channel))
        return peers

    # -- what the machine wants ------------------------------------------------------------

    def tell(self, news: Stimulus) -> None:
        """Handle a stimulus, and those that its actions cause, until no action is left."""
        now_ns = self._world.now_ns
        actions = deque(self.machine.handle(news, now_ns))
        while actions:
            for answer in self._perform(actions.popleft()):
                actions += self.machine.handle(answer, now_ns)
        due_ns = self.machine.due_ns
        if due_ns is not None and due_ns != self._due_ns:
            self._world.at(due_ns, partial(self.tell, TimePassed()))
        self._due_ns = due_ns

    def _perform(self, action: Action) -> list[Stimulus]:
        match action:
            case CheckCluster():
                return [ClusterThere() if self._gone is None else ClusterGone(self._gone)]
            case AskForDead(node_ids):
                known = [node for node in node_ids if node in self._silent]
                dead = [node for node in known if self._rng.random() < 1 / 2]
                return [DeadNodes(dict.fromkeys(dead, "its node is gone (lost)"))]
            case StopSlots(slots, failure):
                for slot in slots:
                    self._at(self._draw((0, ORDER_NS)), partial(self._stop, slot, failure))
            case CollectFinalReports(slots, failure, within_s):
                for slot in slots:
                    self._at(0, partial(self._stop, slot, failure))
                last_ns = round(within_s * NS_PER_SECOND)
                self._at(last_ns, partial(self.tell, FinalReportsCollected()))
            case FetchResults():
                return [ResultsFetched()]
            case End(cause=cause):
                if cause is not None:
                    if cause.slots:
                        self.given = self._world.recent(cause.slots[0])
                    made = cause.error(self.machine.heard, self.given)
                    own = self._raised.get(cause.slots[0]) if cause.slots else None
                    if own is not None and (type(own), str(own)) == (type(made), str(made)):
                        own.__notes__ = getattr(made, "__notes__", [])
                        made = own  # its traceback leads into the user's function
                    self.error = made
        return []

    def _stop(self, slot: str, failure: str | None) -> None:
        if self.may_work(slot):
            self._stopping[slot] = failure
            if not self._world.is_busy(slot):
                self.rest(slot, is_finished=False)

    def _later(self, range_ns: tuple[int, int], news: Stimulus) -> None:
        self._at(self._draw(range_ns), partial(self.tell, news))

    def _at(self, after_ns: int, happen: Callable[[], None]) -> None:
        self._world.at(self._world.now_ns + after_ns, happen)

    def _draw(self, range_ns: tuple[int, int]) -> int:
        return int(self._rng.integers(*range_ns))
