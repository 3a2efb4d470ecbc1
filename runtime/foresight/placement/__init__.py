"""Which operator runs on which node, such that Mace_WC is least. Source: [mace] §IX-B.

| file | what it has |
| --- | --- |
| `problem.py` | loads, capacities, what is pinned, who feeds whom |
| `moves.py` | a placement, and what a move would make of it: exactly, or no less than |
| `greedy.py` | a first placement: the largest operator first |
| `climb.py` | operators leave the bottleneck, one after the other |
| `search.py` | Mace-HC: several starts, a budget |
| `hops.py` | of equally good placements the one with fewer hops |
| `linked.py` | the same where links between nodes count |

What it is compared with is in `benchmarks/mace`.
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
