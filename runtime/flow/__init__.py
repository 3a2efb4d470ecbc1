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
from slackwater.runtime.operators.aggregate.aggregate_functions import (
    all,  # noqa: A004 - read as sw.all("paid")
    any,  # noqa: A004 - read as sw.any("late")
    arg_max,
    arg_min,
    bit_and,
    bit_or,
    bit_xor,
    collect,
    corr,
    count,
    count_distinct,
    covar,
    first,
    intercept,
    last,
    max,  # noqa: A004 - read as sw.max("speed")
    mean,
    median,
    min,  # noqa: A004 - read as sw.min("speed")
    quantile,
    slope,
    std,
    sum,  # noqa: A004 - read as sw.sum("flow")
    top_k,
    var,
)
from slackwater.runtime.operators.aggregate.calendar_windows import calendar
from slackwater.runtime.operators.aggregate.cumulative_windows import cumulative
from slackwater.runtime.operators.aggregate.custom_aggregate import custom
from slackwater.runtime.operators.aggregate.interval_words import (
    everything,
    opened_by,
    rows,
    session,
)
from slackwater.runtime.operators.aggregate.written import sliding, tumbling
from slackwater.runtime.plan.slack import AS_FLOW

__all__ = [
    "AS_FLOW",
    "Dataflow",
    "Expr",
    "KeyedStream",
    "Stream",
    "all",
    "any",
    "arg_max",
    "arg_min",
    "bit_and",
    "bit_or",
    "bit_xor",
    "calendar",
    "coalesce",
    "col",
    "collect",
    "corr",
    "count",
    "count_distinct",
    "covar",
    "cumulative",
    "custom",
    "duration",
    "event_time",
    "everything",
    "first",
    "intercept",
    "last",
    "lit",
    "max",
    "mean",
    "median",
    "min",
    "opened_by",
    "quantile",
    "rows",
    "session",
    "sliding",
    "slope",
    "std",
    "sum",
    "top_k",
    "tumbling",
    "var",
    "when",
    "where",
]
