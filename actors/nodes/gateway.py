"""Ask questions that only a process inside the cluster can answer, from any driver.

A driver on a node asks Ray itself. A Ray client (`ray://`) is outside: its questions travel to the
head as a small task that needs no CPU.
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
"""How long a node may take to greet before it is refused for slots."""
ANSWER_S = 60.0
"""A node may have to start a worker for our task; takes seconds, more on a busy machine."""


def is_client() -> bool:
    """Return whether this process is connected through Ray's client."""
    connection: Any = client.ray  # untyped
    return bool(connection.is_connected())


def inside(ask: Callable[..., _T], *args: Any, timeout_s: float = ANSWER_S) -> _T:
    """Return `ask(*args)`, called here, or in the cluster if we are its client.

    Args:
        ask: a function of ours, which the cluster finds by its name.
        args: positional arguments of `ask`.
        timeout_s: how long to wait for the cluster's answer.

    Raises:
        ClusterError: no answer in time.
    """
    return _got(on_node(ask, *args), timeout_s) if is_client() else ask(*args)


def on_node(ask: Callable[..., Any], *args: Any, node_id: str | None = None) -> Any:
    """Return the reference of `ask(*args)`, called in a task on a node.

    Args:
        ask: a function of ours, which the node finds by its name.
        args: positional arguments of `ask`.
        node_id: id of the node; None if any node will do.
    """
    place = NodeAffinitySchedulingStrategy(node_id, soft=False) if node_id else None
    task: Any = ray.remote(num_cpus=0, max_retries=0)(ask)
    return task.options(scheduling_strategy=place).remote(*args)


def usable_nodes() -> tuple[list[NodeInfo], list[NodeInfo]]:
    """Return the nodes that can take slots (head first), and the silent ones.

    Ray needs up to half a minute to notice that a host is lost, or that a raylet hangs; a new job
    cannot wait for that.
    """
    return inside(_usable_nodes)


def _usable_nodes() -> tuple[list[NodeInfo], list[NodeInfo]]:
    nodes = list_nodes()
    serving_nodes = serving(nodes, within_s=GREET_S)
    return serving_nodes, [node for node in nodes if node not in serving_nodes]


def _got(call: Any, timeout_s: float) -> Any:
    try:
        return ray.get(call, timeout=timeout_s)
    except GetTimeoutError as problem:
        raise ClusterError(
            f"the cluster did not run a small task within {timeout_s:.0f} s; see with "
            "`ray status` whether its nodes are up and have memory"
        ) from problem
