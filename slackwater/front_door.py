"""The front door has the names of most flows; its modules have the others.

| module | names |
| --- | --- |
| `sw.clocks` | Clocks of sources that are off |
| `sw.closing` | Policies by which windows close in time |
| `sw.connectors` | Custom inputs and outputs |
| `sw.order` | Orders of a source's rows: by number, or in a buffer |
| `sw.patterns` | Patterns of events: parts, and windows that events open |
| `sw.schedule` | Orders of work in a slot |
| `sw.shedding` | Shedding: events that a pattern drops under load |
| `sw.tuning` | Rules of gates, and what a custom policy is shown and returns |
| `sw.testing` | The kit that verifies operators; costs, links and faults of a simulation |
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from slackwater import (
    clocks,
    closing,
    connectors,
    order,
    patterns,
    schedule,
    shedding,
    testing,
    tuning,
)
from slackwater.actors.sinks.outputs import (
    callback_sink,
    collect_sink,
    csv_sink,
    jsonl_sink,
    parquet_sink,
    print_sink,
)
from slackwater.cluster import Cluster
from slackwater.ingest.files import csv, jsonl, parquet
from slackwater.ingest.memory import table
from slackwater.ingest.ray_blocks import ray_dataset
from slackwater.ingest.reread import reread
from slackwater.ingest.stamped import stamped
from slackwater.jobs import Job
from slackwater.rewriting import rewritten
from slackwater.runtime.calls import checked_call
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.flow import (
    Dataflow,
    Expr,
    KeyedStream,
    Stream,
    all,  # noqa: A004 - read as sw.all("paid")
    any,  # noqa: A004 - read as sw.any("late")
    arg_max,
    arg_min,
    bit_and,
    bit_or,
    bit_xor,
    calendar,
    coalesce,
    col,
    collect,
    corr,
    count,
    count_distinct,
    covar,
    cumulative,
    custom,
    duration,
    event_time,
    everything,
    first,
    intercept,
    last,
    lit,
    max,  # noqa: A004 - read as sw.max("speed")
    mean,
    median,
    min,  # noqa: A004 - read as sw.min("speed")
    opened_by,
    quantile,
    rows,
    session,
    sliding,
    slope,
    std,
    sum,  # noqa: A004 - read as sw.sum("flow")
    top_k,
    tumbling,
    var,
    when,
    where,
)
from slackwater.runtime.measure.report import JobReport
from slackwater.simulation import Simulation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__version__ = version("slackwater")
__all__ = [
    "Cluster",
    "Dataflow",
    "Expr",
    "Job",
    "JobReport",
    "KeyedStream",
    "Limits",
    "Simulation",
    "SlackwaterError",
    "Stream",
    "Tuning",
    "__version__",
    "all",
    "any",
    "arg_max",
    "arg_min",
    "bit_and",
    "bit_or",
    "bit_xor",
    "calendar",
    "callback_sink",
    "clocks",
    "closing",
    "coalesce",
    "col",
    "collect",
    "collect_sink",
    "connectors",
    "corr",
    "count",
    "count_distinct",
    "covar",
    "csv",
    "csv_sink",
    "cumulative",
    "custom",
    "duration",
    "event_time",
    "everything",
    "first",
    "intercept",
    "jsonl",
    "jsonl_sink",
    "last",
    "lit",
    "max",
    "mean",
    "median",
    "min",
    "opened_by",
    "order",
    "parquet",
    "parquet_sink",
    "patterns",
    "print_sink",
    "quantile",
    "ray_dataset",
    "reread",
    "rewritten",
    "rows",
    "schedule",
    "session",
    "shedding",
    "sliding",
    "slope",
    "spark",
    "spark_stream",
    "stamped",
    "std",
    "sum",
    "table",
    "testing",
    "top_k",
    "tumbling",
    "tuning",
    "var",
    "when",
    "where",
]


@checked_call
def spark(frame: "DataFrame", **options: Any) -> connectors.Input:
    """Return a bounded Spark frame as an input; see `slackwater.ingest.spark.spark`."""
    from slackwater.ingest.spark import spark as of_frame  # noqa: PLC0415 (Spark takes seconds to import)

    return of_frame(frame, **options)


@checked_call
def spark_stream(frame: "DataFrame", **options: Any) -> connectors.Input:
    """Return an unbounded Spark frame as an input; see `slackwater.ingest.push.streaming`."""
    from slackwater.ingest.push.streaming import spark_stream as of_frame  # noqa: PLC0415 (as above)

    return of_frame(frame, **options)
