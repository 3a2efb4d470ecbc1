"""Operators change, drop and combine rows; `registry.py` has them all.

| folder | contents |
| --- | --- |
| `each_row` | operators that look at each row alone: a file each |
| others | an operator each: `step.py`, what a user writes; `machine.py`, what is done with rows |
| `ground` | what they share |

docs/add-an-operator.md says how to add an operator.
"""

from slackwater.runtime.operators.aggregate.written import (
    count,
    max,  # noqa: A004 - read as sw.max("speed")
    mean,
    min,  # noqa: A004 - read as sw.min("speed")
    quantile,
    sliding,
    sum,  # noqa: A004 - read as sw.sum("flow")
    tumbling,
)
from slackwater.runtime.operators.registry import (
    FlowMethods,
    StreamMethods,
    make_operator,
    make_stateless,
)

__all__ = [
    "FlowMethods",
    "StreamMethods",
    "count",
    "make_operator",
    "make_stateless",
    "max",
    "mean",
    "min",
    "quantile",
    "sliding",
    "sum",
    "tumbling",
]
