"""What else runs on a cluster: an actor that holds CPUs of a node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.nodes.placement import list_nodes


class Crowd:
    def is_there(self) -> bool:
        return True


@contextmanager
def crowd(node: str, *, cpus: int) -> Iterator[None]:
    """Hold so many CPUs of a node meanwhile."""
    (node_id,) = (one.node_id for one in list_nodes() if one.name == node)
    made: Any = ray.remote(Crowd)
    where = NodeAffinitySchedulingStrategy(node_id, soft=False)
    actor = made.options(num_cpus=cpus, scheduling_strategy=where).remote()
    ray.get(actor.is_there.remote())
    try:
        yield
    finally:
        ray.kill(actor)
