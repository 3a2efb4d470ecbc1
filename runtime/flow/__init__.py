"""Dataflows as users write them: streams and windows, checked before they run.

`dataflow.py` and `stream.py` build a flow and print it, `checks.py` refuses invalid sources and
sinks. The result are steps (`runtime/plan/`) over expressions (`runtime/expressions/`).
"""

from slackwater.runtime.expressions.expressions import (
    Expr,
    coalesce,
    col,
    duration,
    event_time,
    lit,
    when,
    where,
)
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.flow.stream import KeyedStream, Stream
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
from slackwater.runtime.plan.slack import AS_FLOW

__all__ = [
    "AS_FLOW",
    "Dataflow",
    "Expr",
    "KeyedStream",
    "Stream",
    "coalesce",
    "col",
    "count",
    "duration",
    "event_time",
    "lit",
    "max",
    "mean",
    "min",
    "quantile",
    "sliding",
    "sum",
    "tumbling",
    "when",
    "where",
]
