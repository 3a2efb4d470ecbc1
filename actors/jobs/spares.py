"""Keep spare processes warm on a job's nodes, for slots whose processes die.

A spare supervises the slots on its node meanwhile (`actors/slot/silence.py`).

A new actor takes a second until Python and its libraries are loaded; a spare has done that.

*CPUs.* A spare beside living slots holds none, so no other job misses one. The slot that begins in
it holds none either, and the next spare there holds the CPU of the process that died. So a node's
processes hold as many CPUs as the job has slots there.

*Taking over.* The next coordinator of a job has its processes: a slot's for a slot, and a spare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import ray

from slackwater.actors.jobs.slot_actors import end_actors, make_actors
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.slot.actor import WarmProcess
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.plan.plan import Plan

__all__ = ["Spares"]


class Spares:
    """Spare processes of one job, from one thread.

    Args:
        lives_on: id of a job whose spares do not end with this process; None if they do.
    """

    def __init__(self, lives_on: str | None = None) -> None:
        self._lives_on = lives_on
        self._spares: dict[str, tuple[Any, int]] = {}  # {id of a node: its spare, CPUs it holds}
        self._holds: dict[str, int] = {}  # CPUs that the process of a slot holds, if not 1
        # {id of a node: processes that its spare watches, and that call, which ends with the spare}
        self._watched: dict[str, tuple[list[int], Any]] = {}

    @property
    def nodes(self) -> set[str]:
        """Ids of nodes that have a spare."""
        return set(self._spares)

    def take(self, slots: Mapping[str, NodeInfo]) -> dict[str, Any]:
        """Return {slot: a spare for it}; slots without one get new processes of their own.

        Args:
            slots: {slot: its node}, of slots that have no process.
        """
        self._forget_dead()
        for_slots: dict[str, Any] = {}
        for slot, node in slots.items():
            self._holds.pop(slot, None)
            if (spare := self._spares.pop(node.node_id, None)) is not None:
                for_slots[slot], self._holds[slot] = spare
                self._watched.pop(node.node_id, None)
        return for_slots

    def take_over(
        self, processes: Iterable[tuple[Any, WarmProcess]], slots: Mapping[str, NodeInfo]
    ) -> dict[str, Any]:
        """Return {slot: its process}; a spare stays on each node, others end.

        Args:
            processes: living processes of the job, and where they are.
            slots: node of each slot, by the slot's name.
        """
        there: dict[str, list[tuple[Any, WarmProcess]]] = {}
        for actor, own in sorted(processes, key=lambda each: not each[1].is_spare):
            there.setdefault(own.node_id, []).append((actor, own))  # spares first
        for_slots: dict[str, Any] = {}
        for slot, node in slots.items():
            if there.get(node.node_id):
                for_slots[slot], own = there[node.node_id].pop()
                self._holds[slot] = own.cpus
        for node_id, left in there.items():
            if left and left[0][1].is_spare:
                actor, own = left.pop(0)
                self._spares[node_id] = actor, own.cpus
        end_actors(dict(enumerate(actor for left in there.values() for actor, _ in left)))
        return for_slots

    def make(self, plan: Plan, nodes: Mapping[str, NodeInfo]) -> None:
        """Make the spares that are missing, or have died, without a wait.

        Args:
            plan: every stage in a slot.
            nodes: {slot: its node}, of every slot of the plan.
        """
        self._forget_dead()
        for slot, node in nodes.items():
            if node.node_id in self._spares:
                continue
            there = [name for name, other in nodes.items() if other.node_id == node.node_id]
            cpus = 0 if all(self._holds.get(name, 1) for name in there) else 1
            (spare,) = make_actors(
                plan,
                {slot: node},
                cpus=cpus,
                lives_on=self._lives_on,
                shifts={},
                keys=ChannelKeys.generate(),
                folder="",
            ).values()
            self._spares[node.node_id] = spare, cpus

    def watch(self, pids: Mapping[str, int], nodes: Mapping[str, NodeInfo], lost_s: float) -> None:
        """Let the spares watch the slots on their nodes, without a wait.

        Args:
            pids: {slot: id of its process}.
            nodes: node of each slot, by the slot's name.
            lost_s: silence after which a process is ended; see `Limits.lost_ns`.
        """
        for node_id, (spare, _) in self._spares.items():
            there = [pids[s] for s, node in nodes.items() if node.node_id == node_id and s in pids]
            if node_id not in self._watched or self._watched[node_id][0] != there:
                self._watched[node_id] = there, spare.watch.remote(there, lost_s)

    def close(self) -> None:
        """End the spares."""
        end_actors({node: spare for node, (spare, _) in self._spares.items()})
        self._spares.clear()
        self._watched.clear()

    def _forget_dead(self) -> None:
        """Forget spares whose processes have ended: their calls have."""
        calls = {call: node_id for node_id, (_, call) in self._watched.items()}
        if not calls:
            return
        for call in ray.wait(list(calls), num_returns=len(calls), timeout=0)[0]:
            node_id = calls[call]
            del self._watched[node_id]
            self._spares.pop(node_id, None)
