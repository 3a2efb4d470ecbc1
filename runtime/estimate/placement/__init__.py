"""Which operator runs on which node, such that Mace_WC is least. Source: [mace] §IX-B.

| file | what it has |
| --- | --- |
| `problem.py` | loads, capacities, what is pinned, who feeds whom |
| `moves.py` | a placement, and what a move would make of it: exactly, or no less than |
| `greedy.py` | a first placement: the largest operator first |
| `climb.py` | operators leave the bottleneck, one after the other |
| `search.py` | Mace-HC: several starts, a budget; and a node that is lost |
| `hops.py` | of equally good placements the one with fewer hops |
| `rivals.py` | chance, the best of many chances, load correlation |
| `lower_bound.py` | what no placement can go below |
"""

from __future__ import annotations

from slackwater.runtime.estimate.placement.hops import count_hops, fewer_hops
from slackwater.runtime.estimate.placement.lower_bound import mace_lower_bound_s
from slackwater.runtime.estimate.placement.moves import Placed, worst_mace_s
from slackwater.runtime.estimate.placement.problem import PlacementProblem
from slackwater.runtime.estimate.placement.search import (
    FoundPlacement,
    SearchBudget,
    mace_hc,
    replace_lost,
)

__all__ = [
    "FoundPlacement",
    "Placed",
    "PlacementProblem",
    "SearchBudget",
    "count_hops",
    "fewer_hops",
    "mace_hc",
    "mace_lower_bound_s",
    "replace_lost",
    "worst_mace_s",
]
