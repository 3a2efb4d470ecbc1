"""Dataflows as they are written: streams, windows, sinks; checked before they run.

`dataflow.py` and `stream.py` build, `checks.py` refuses what cannot be, `explain.py` prints. What
comes out are steps (`runtime/plan/`), which are written with expressions (`runtime/expressions/`).
"""

from runtime.expressions.expressions import Expr, col, duration, event_time, lit, where
from runtime.flow.dataflow import Dataflow
from runtime.flow.sinks import callback_sink, collect_sink, jsonl_sink, parquet_sink
from runtime.flow.stream import KeyedStream, Stream
from runtime.operators import (
    count,
    max,  # noqa: A004 - read as sw.max("speed")
    mean,
    min,  # noqa: A004 - read as sw.min("speed")
    quantile,
    sliding,
    sum,  # noqa: A004 - read as sw.sum("flow")
    tumbling,
)
from runtime.plan.slack import AS_FLOW

__all__ = [
    "AS_FLOW",
    "Dataflow",
    "Expr",
    "KeyedStream",
    "Stream",
    "callback_sink",
    "col",
    "collect_sink",
    "count",
    "duration",
    "event_time",
    "jsonl_sink",
    "lit",
    "max",
    "mean",
    "min",
    "parquet_sink",
    "quantile",
    "sliding",
    "sum",
    "tumbling",
    "where",
]
