"""Placement of operators on nodes with the least Mace_WC. Source: [mace] §IX-B.

| file | contents |
| --- | --- |
| `problem.py` | loads, capacities, pinned operators, channels |
| `moves.py` | a placement, and its Mace after a move: exact, or a lower bound |
| `greedy.py` | a first placement: the largest operator first |
| `climb.py` | hill climbing: operators leave the bottleneck one by one |
| `search.py` | Mace-HC: several starts, a budget |
| `hops.py` | among equally good placements, the one with fewer hops |
| `linked.py` | the same, with links between nodes |

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
