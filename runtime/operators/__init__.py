"""Operators: what a flow does to rows. Each is a folder, and a line in `registry.py`.

| in a folder | what it has |
| --- | --- |
| `step.py` | what it is to the flow: frozen settings, and all that the plan asks of a step |
| `machine.py` | what it does to rows, behind a gate or to each alone |
| `stream.py` | the method by which a stream gets it |

What they share is in `ground/`. How one is added is in docs/operators.md.
"""

from slackwater.runtime.operators.aggregate import (
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
