"""Operators change, drop and combine rows: each is a folder, and a line in `registry.py`.

| in a folder | contents |
| --- | --- |
| `step.py` | the step of the flow: frozen settings, and the answers that the plan needs |
| `machine.py` | the machine that works on rows, after a gate or on each row alone |
| `stream.py` | the method of a stream that adds the step |

Shared code is in `ground/`. docs/add-an-operator.md says how to add an operator.
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
