"""Flows of keyed steps drawn at random, with `replicas=` left open, and ways to run them.

```
draw.py      sources.py ─▶ steps.py ─▶ … ─▶ sinks     a Dataflow, once its replicas are chosen
ways.py      replicas, nodes, cuts, placement         of one run
```
"""

from benchmarks.engine.replicated_flows.compare import (
    LEDGER,
    Results,
    difference,
    loose_difference,
    results_of,
)
from benchmarks.engine.replicated_flows.draw import Drawn, ReplicatedFlow
from benchmarks.engine.replicated_flows.interrupted import moved_plan, restored, resumed
from benchmarks.engine.replicated_flows.ways import ONE_SLOT, UNWRITTEN, Way, draw_way

__all__ = [
    "LEDGER",
    "ONE_SLOT",
    "UNWRITTEN",
    "Drawn",
    "ReplicatedFlow",
    "Results",
    "Way",
    "difference",
    "draw_way",
    "loose_difference",
    "moved_plan",
    "restored",
    "results_of",
    "resumed",
]
