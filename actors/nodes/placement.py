"""List the Ray nodes for the slots of [mace] Def. 7, and check their room.

`runtime/placement` decides the slot of each stage; `actors/jobs/job.py` starts the slots.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from slackwater.actors.nodes.time_limits import ASK_S, within
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.plurals import agreeing, count_of

__all__ = [
    "NodeInfo",
    "check_room",
    "dead_nodes",
    "list_nodes",
    "missing_cpus",
    "name_nodes",
    "new_homes",
]

HEAD = "node:__internal_head__"  # the resource by which Ray marks its head
SLOTS = "slackwater_slots"
"""Resource by which a node says how many slots it offers; without it, one for each CPU."""
ROUNDING = 1e-6  # CPUs; Ray counts them in units of 0.0001
FREED_S = 5.0  # Ray needs about 1 s to say that an actor's CPU is free
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """An alive Ray node, as of the time when it was listed.

    Attributes:
        name: unique in the cluster: Ray's node name, else its address.
        node_id: Ray's id, in hexadecimal.
        ip: address that the node listens on.
        cpus: logical CPUs in all.
        cores: slots that the node offers: whole CPUs, or fewer if it says so (`SLOTS`).
        free_cpus: CPUs that no actor or task holds; Ray reports a change within about a second.
        memory_bytes: memory that Ray may give to workers.
        is_head: whether the cluster's own book-keeping runs there.
        port: port of its raylet, reachable by every node of the cluster; 0: not known.
    """

    name: str
    node_id: str
    ip: str
    cpus: float
    free_cpus: float
    memory_bytes: int
    is_head: bool
    port: int = 0
    cores: int = 1

    @property
    def free_slots(self) -> int:
        """Number of its slots with a free CPU."""
        return min(self.cores, int(self.free_cpus + ROUNDING))


def list_nodes() -> list[NodeInfo]:
    """Return the alive nodes of this process's cluster, head first.

    Raises:
        ClusterError: the process is connected to none, or the cluster's head does not answer.
    """
    if not ray.is_initialized():
        raise ClusterError(
            "this process is not connected to Ray, so it has no nodes to list; "
            "open Cluster.local() or Cluster.connect() first"
        )
    return within(ASK_S, _list_nodes, what="which nodes there are")


def _list_nodes() -> list[NodeInfo]:
    untyped: Any = ray  # which has no public call for the free resources of a node
    return name_nodes(untyped.nodes(), untyped._private.state.available_resources_per_node())


def dead_nodes(node_ids: Collection[str], *, within_s: float = ASK_S) -> dict[str, str]:
    """Return {node id: Ray's reason} of those nodes that Ray knows to be lost.

    Raises:
        ClusterError: Ray did not answer in time.
    """
    untyped: Any = ray
    nodes: list[Mapping[str, Any]] = within(within_s, untyped.nodes, what="which nodes are gone")
    return {
        node["NodeID"]: f"its node is gone ({node.get('DeathReasonMessage') or 'Ray lost it'})"
        for node in nodes
        if node["NodeID"] in node_ids and not node["Alive"]
    }


def name_nodes(
    nodes: Sequence[Mapping[str, Any]], free: Mapping[str, Mapping[str, float]]
) -> list[NodeInfo]:
    """Turn Ray's records into nodes with unique names, in a stable order.

    Args:
        nodes: nodes as `ray.nodes()` returns them; dead nodes are omitted.
        free: {node id: {resource: free amount}}.
    """
    alive = sorted(
        (node for node in nodes if node["Alive"]),
        key=lambda node: (
            HEAD not in node["Resources"],
            node["NodeName"],
            node["NodeManagerAddress"],
            node["NodeID"],
        ),
    )
    shared = Counter(_name(node) for node in alive)
    return [
        NodeInfo(
            # The start of its id distinguishes nodes of the same name.
            name=_name(node) if shared[_name(node)] == 1 else f"{_name(node)}-{node['NodeID'][:8]}",
            node_id=node["NodeID"],
            ip=node["NodeManagerAddress"],
            cpus=node["Resources"].get("CPU", 0.0),
            free_cpus=free.get(node["NodeID"], {}).get("CPU", 0.0),
            memory_bytes=int(node["Resources"].get("memory", 0)),
            is_head=HEAD in node["Resources"],
            port=int(node.get("NodeManagerPort", 0)),
            cores=_cores(node["Resources"]),
        )
        for node in alive
    ]


def check_room(slots: Mapping[str, str], *, within_s: float = FREED_S) -> None:
    """Check that every node has a free CPU for each of its new slots.

    Args:
        slots: {slot: id of its node}.
        within_s: how long to wait for CPUs that a job has just released.

    Raises:
        ClusterError: CPUs are missing (names the nodes and the numbers).
    """
    deadline_s = time.monotonic() + within_s
    while missing := missing_cpus(slots, list_nodes()):
        if time.monotonic() >= deadline_s:
            raise ClusterError(
                f"{count_of(len(slots), 'slot')} of 1 CPU {agreeing(len(slots), 'does', 'do')} "
                f"not fit: {'; '.join(missing)}; stop what holds CPUs "
                "(other jobs, Spark's executors), start nodes with more, or place the stages "
                "on fewer nodes or others (placement=)"
            )
        time.sleep(LOOK_EVERY_S)


def missing_cpus(slots: Mapping[str, str], nodes: Sequence[NodeInfo]) -> list[str]:
    """Return a sentence for each node that has fewer free CPUs than slots.

    A lost node is not named: Ray reports it when the slot starts.
    """
    wanted = Counter(slots.values())
    return [
        f"{node.name} lacks {lacking:.4g} of {wanted[node.node_id]} CPUs "
        f"({node.free_cpus:g} of its {node.cpus:g} are free)"
        for node in nodes
        if (lacking := wanted[node.node_id] - node.free_cpus) > ROUNDING
    ]


def new_homes(
    slots: Sequence[str], nodes: Sequence[NodeInfo], *, warm: Collection[str] = ()
) -> dict[str, NodeInfo]:
    """Return {slot: a node with a free CPU for it}: warm nodes first.

    Args:
        slots: slots that need a node.
        nodes: alive nodes of the cluster.
        warm: ids of nodes on which a process waits for one of the slots.
    """
    free = {node.name: node.free_slots for node in nodes}
    by_name = {node.name: node for node in nodes}
    waiting = {node.name for node in nodes if node.node_id in warm}
    homes: dict[str, NodeInfo] = {}
    for slot in slots:
        with_room = [name for name in free if free[name] >= 1]
        if not with_room:
            break
        name = max(with_room, key=lambda node: (node in waiting, free[node]))
        waiting.discard(name)
        free[name] -= 1
        homes[slot] = by_name[name]
    return homes


def _cores(resources: Mapping[str, float]) -> int:
    cpus = int(resources.get("CPU", 0.0) + ROUNDING)
    return min(cpus, int(resources.get(SLOTS, cpus)))


def _name(node: Mapping[str, Any]) -> str:
    return str(node["NodeName"] or node["NodeManagerAddress"])
