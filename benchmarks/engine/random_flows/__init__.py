"""Whole flows drawn at random, each with its answer: for a benchmark and a test.

```
draw_flow(seed, number)   sources.py ─▶ steps.py ─▶ … ─▶ sinks     a Dataflow, step by step,
                          a table       pandas, DuckDB   answers   and its rows beside each step

steps.py         steps beside pandas            windows_in_sql.py   windows, rows around a row
in_sql.py        small steps beside DuckDB      tables.py           streams whose rows change
lookups.py       columns of a table of each key, which is perhaps read again
```
"""

from benchmarks.engine.random_flows.compare import differences
from benchmarks.engine.random_flows.draw import DRAWN, DrawnFlow, draw_flow

__all__ = ["DRAWN", "DrawnFlow", "differences", "draw_flow"]
