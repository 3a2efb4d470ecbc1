"""Whole flows drawn at random, each with its answer: for a benchmark and a test.

```
draw_flow(seed, number)   sources.py ─▶ steps.py ─▶ … ─▶ sinks     a Dataflow, step by step,
                          a table       pandas, DuckDB   answers   and its rows beside each step
```
"""

from benchmarks.engine.random_flows.compare import differences
from benchmarks.engine.random_flows.draw import DrawnFlow, draw_flow

__all__ = ["DrawnFlow", "differences", "draw_flow"]
