"""Questions that only a process inside the cluster can answer, asked from wherever we are.

A driver on a node asks Ray itself. A Ray client (`ray://`) is outside: its questions travel as a
small task, without a CPU of its own, to the head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import ray
from ray.exceptions import GetTimeoutError
from ray.util import client
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.nodes.host_monitor import SERVE_S, serving
from slackwater.actors.nodes.placement import NodeInfo, list_nodes
from slackwater.runtime.errors import ClusterError

__all__ = ["inside", "is_client", "on_node", "usable_nodes"]

_T = TypeVar("_T")
GREET_S = SERVE_S
"""How long a node that is to take slots may take to greet."""
ANSWER_S = 60.0
"""A node may have to start a worker for our task: seconds, more on a busy machine."""


def is_client() -> bool:
    """Return whether this process is connected through Ray's client."""
    connection: Any = client.ray  # untyped
    return bool(connection.is_connected())


def inside(ask: Callable[..., _T], *args: Any, timeout_s: float = ANSWER_S) -> _T:
    """Return `ask(*args)`, called here, or in the cluster if we are a client of it.

    Args:
        ask: a function of ours, known by its name there.
        args: what it is called with.
        timeout_s: how long to wait for its answer from there.

    Raises:
        ClusterError: no answer in time.
    """
    return _got(on_node(ask, *args), timeout_s) if is_client() else ask(*args)


def on_node(ask: Callable[..., Any], *args: Any, node_id: str | None = None) -> Any:
    """Return the reference of `ask(*args)`, called in a task on a node, or on any."""
    place = NodeAffinitySchedulingStrategy(node_id, soft=False) if node_id else None
    task: Any = ray.remote(num_cpus=0, max_retries=0)(ask)
    return task.options(scheduling_strategy=place).remote(*args)


def usable_nodes() -> tuple[list[NodeInfo], list[NodeInfo]]:
    """Return the nodes that can take slots, head first, and those that do not answer.

    Ray takes up to half a minute to notice that a host is gone, or that a raylet hangs; a new job
    cannot wait for that.
    """
    return inside(_usable_nodes)


def _usable_nodes() -> tuple[list[NodeInfo], list[NodeInfo]]:
    nodes = list_nodes()
    there = serving(nodes, within_s=GREET_S)
    return there, [node for node in nodes if node not in there]


def _got(call: Any, timeout_s: float) -> Any:
    try:
        return ray.get(call, timeout=timeout_s)
    except GetTimeoutError as problem:
        raise ClusterError(
            f"the cluster did not run a small task of ours within {timeout_s:.0f} s; see with "
            "`ray status` whether its nodes are up and have memory"
        ) from problem
