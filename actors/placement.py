"""Which node each slot goes to: [mace] Def. 7's slots onto Ray nodes, before any actor starts.

`place` decides and is pure; `list_nodes` asks Ray what there is; `on_node` tells Ray the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.errors import ClusterError

__all__ = ["NodeInfo", "list_nodes", "name_nodes", "on_node", "place"]

HEAD = "node:__internal_head__"  # the resource by which Ray marks its head
ROUNDING = 1e-6  # CPUs; Ray counts them in units of 0.0001


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One alive Ray node, as it was when it was asked.

    Attributes:
        name: unique in the cluster: Ray's node name, else its address.
        node_id: Ray's id, in hexadecimal.
        ip: the address that it listens on.
        cpus: logical CPUs in all.
        free_cpus: those that no actor or task holds; Ray reports a change within about a second.
        memory_bytes: what Ray may give to workers.
        is_head: whether the cluster's own book-keeping runs there.
    """

    name: str
    node_id: str
    ip: str
    cpus: float
    free_cpus: float
    memory_bytes: int
    is_head: bool


def list_nodes() -> list[NodeInfo]:
    """Return the alive nodes of the cluster that this process is connected to, head first."""
    if not ray.is_initialized():
        raise ClusterError(
            "no nodes to list: this process is not connected to Ray; "
            "open RayNodes.local() or RayNodes.connect() first"
        )
    asked: Any = ray  # untyped; and Ray has no public call for what is free on each node
    return name_nodes(asked.nodes(), asked._private.state.available_resources_per_node())


def name_nodes(
    nodes: Sequence[Mapping[str, Any]], free: Mapping[str, Mapping[str, float]]
) -> list[NodeInfo]:
    """Turn Ray's records into nodes of unique names, in an order that does not change.

    Args:
        nodes: as `ray.nodes()` returns them; dead ones are left out.
        free: {node id: {resource: amount that is free}}.
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
            # Two nodes of one name are told apart by the start of their ids.
            name=_name(node) if shared[_name(node)] == 1 else f"{_name(node)}-{node['NodeID'][:8]}",
            node_id=node["NodeID"],
            ip=node["NodeManagerAddress"],
            cpus=node["Resources"].get("CPU", 0.0),
            free_cpus=free.get(node["NodeID"], {}).get("CPU", 0.0),
            memory_bytes=int(node["Resources"].get("memory", 0)),
            is_head=HEAD in node["Resources"],
        )
        for node in alive
    ]


def place(
    slots: Sequence[str],
    nodes: Sequence[NodeInfo],
    *,
    pinned: Mapping[str, str] | None = None,
    cpus_per_slot: float = 1.0,
) -> dict[str, NodeInfo]:
    """Return {slot: node}: pinned slots where asked, each other one where the fewest are.

    ```
    slots  a b c d     pinned {"c": "node-2"}
    node-1 a d         c first; then each to the node with the fewest slots so far,
    node-2 c           the first such node in the given order
    node-3 b
    ```

    Args:
        slots: names, each once.
        nodes: where there is room, as `list_nodes` returns them.
        pinned: {slot: node name}, the user's wish.
        cpus_per_slot: CPUs that each slot holds while it lives, > 0.

    Raises:
        ClusterError: a slot or node that does not exist, or too few free CPUs.
    """
    pinned = pinned or {}
    _check_names(slots, nodes, pinned)
    room = {
        node.name: int((node.free_cpus + ROUNDING) / cpus_per_slot) for node in nodes
    }  # {node name: slots that it still takes}
    missing = len(slots) - sum(room.values())
    if missing > 0:
        raise ClusterError(
            f"{len(slots)} slots of {cpus_per_slot:g} CPU do not fit: {_free(nodes)}; "
            f"{missing * cpus_per_slot:g} CPUs are missing: start nodes with more, "
            "let slots share more stages, or stop what holds CPUs (Spark's executors do)"
        )
    by_name = {node.name: node for node in nodes}
    held: Counter[str] = Counter()  # {node name: slots placed there}
    chosen: dict[str, NodeInfo] = {}
    for slot in sorted(slots, key=lambda slot: slot not in pinned):  # stable: pinned ones first
        name = pinned.get(slot) or min(
            (name for name in by_name if held[name] < room[name]), key=lambda name: held[name]
        )
        if held[name] >= room[name]:
            raise ClusterError(
                f"slot {slot!r} is to go to {name!r}, which has no {cpus_per_slot:g} CPU left for "
                f"it: {_free(nodes)}; place it elsewhere or give that node more CPUs"
            )
        held[name] += 1
        chosen[slot] = by_name[name]
    return {slot: chosen[slot] for slot in slots}


def on_node(node: NodeInfo) -> NodeAffinitySchedulingStrategy:
    """Return the `scheduling_strategy` of an actor that must run on this node."""
    return NodeAffinitySchedulingStrategy(node_id=node.node_id, soft=False)


def _check_names(
    slots: Sequence[str], nodes: Sequence[NodeInfo], pinned: Mapping[str, str]
) -> None:
    twice = [slot for slot, times in Counter(slots).items() if times > 1]
    if twice:
        raise ClusterError(f"slots {twice} are named twice; each slot needs a name of its own")
    names = [node.name for node in nodes]
    for slot, name in pinned.items():
        if slot not in slots:
            raise ClusterError(
                f"placement names slot {slot!r}, which this flow does not have; "
                f"its slots are {', '.join(slots) or 'none'}"
            )
        if name not in names:
            raise ClusterError(
                f"slot {slot!r} is to go to node {name!r}, which is not there; "
                f"the nodes are {', '.join(names) or 'none'}"
            )


def _name(node: Mapping[str, Any]) -> str:
    return str(node["NodeName"] or node["NodeManagerAddress"])


def _free(nodes: Sequence[NodeInfo]) -> str:
    each = [f"{node.name} has {node.free_cpus:g} of {node.cpus:g} CPUs free" for node in nodes]
    return ", ".join(each) or "there is no node"
