"""Machines with fewer cores than slots, because of several nodes or several flows.

[mace] Def. 7 has a core for each slot. A machine with fewer cores is one more node with all its
cores, and all work of its slots is its load: Mace is the largest excess of any node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate, NodeEstimate
from slackwater.runtime.foresight.query_graph import QueryGraph, Workload

__all__ = ["SharedCores", "with_shared_cores"]


@dataclass(frozen=True, kw_only=True)
class SharedCores:
    """Machine with slots of this flow.

    Attributes:
        name: its name for users.
        cores: number of its cores, > 0.
        slots: this flow's slots on it.
        taken: CPU seconds a second that other flows' slots on it need.
        others: number of those slots.
    """

    name: str
    cores: float
    slots: frozenset[str]
    taken: float = 0.0
    others: int = 0


def with_shared_cores(
    estimate: LatencyEstimate,
    graph: QueryGraph,
    work: Workload,
    placement: Mapping[str, str],
    machines: Sequence[SharedCores],
) -> LatencyEstimate:
    """Return the estimate with the backlog of machines that have more slots than cores.

    Args:
        estimate: the estimate with a core for each slot.
        graph: the graph of the flow.
        work: work of the graph.
        placement: {operator: slot of the operator}.
        machines: the machines of those slots.
    """
    for machine in machines:
        here = [j for j, name in enumerate(graph.names) if placement[name] in machine.slots]
        slots = {placement[graph.names[j]] for j in here}
        if not here or len(slots) + machine.others <= machine.cores:
            continue  # each has a core
        load_s = work.load_s[here].sum(axis=0) + machine.taken * work.width_s
        speed = machine.cores
        excess_s = cumulative_excess(load_s, speed, width_s=work.width_s) / speed
        each = load_s / speed / work.width_s
        operators = sorted(here, key=lambda j: -float(work.load_s[j].sum()))
        node = NodeEstimate(
            name=machine.name,
            load=float(each.mean()),
            peak=float(each.max()),
            worst_s=float(excess_s.max()),
            operators=tuple(graph.names[j] for j in operators),
            others=machine.taken / speed,
        )
        estimate = replace(
            estimate,
            mace_s=np.maximum(estimate.mace_s, excess_s),
            held_up_s=np.maximum(estimate.held_up_s, excess_s),
            nodes=(*estimate.nodes, node),
        )
    return estimate
