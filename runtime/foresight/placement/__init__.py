"""Placement of operators on nodes with the least Mace_WC. Source: [mace] §IX-B.

- `climb.py`: Hill climbing: operators leave the bottleneck one by one. Source: [mace] §IX-B.
- `greedy.py`: Greedy placement: the operator with the most work first.
- `hops.py`: Fewer hops: a placement with equal Mace_WC and fewer events between nodes.
- `linked.py`: Placement with links: hill climbing on Mace, links as nodes, and their ways.
- `moves.py`: Mace_WC after a move: only two nodes change, so only their excess is computed.
- `problem.py`: Placement problem: operators' loads, nodes' capacities, and pinned operators.
- `search.py`: Mace-HC: hill climbing from several starts, within a budget. Source: [mace] Fig. 11.

The algorithms that it is compared with are in `benchmarks/mace`.
"""

from __future__ import annotations

from slackwater.runtime.foresight.placement.climb import hill_climb
from slackwater.runtime.foresight.placement.hops import fewer_hops
from slackwater.runtime.foresight.placement.moves import Placed, worst_mace_s
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem
from slackwater.runtime.foresight.placement.search import (
    FoundPlacement,
    SearchBudget,
    mace_hc,
)

__all__ = [
    "FoundPlacement",
    "IntArray",
    "Placed",
    "PlacementProblem",
    "SearchBudget",
    "fewer_hops",
    "hill_climb",
    "mace_hc",
    "worst_mace_s",
]
