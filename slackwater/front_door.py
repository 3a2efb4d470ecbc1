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
    coalesce,
    col,
    count,
    duration,
    event_time,
    lit,
    max,  # noqa: A004 - read as sw.max("speed")
    mean,
    min,  # noqa: A004 - read as sw.min("speed")
    quantile,
    sliding,
    sum,  # noqa: A004 - read as sw.sum("flow")
    tumbling,
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
    "callback_sink",
    "clocks",
    "closing",
    "coalesce",
    "col",
    "collect_sink",
    "connectors",
    "count",
    "csv",
    "csv_sink",
    "duration",
    "event_time",
    "jsonl",
    "jsonl_sink",
    "lit",
    "max",
    "mean",
    "min",
    "order",
    "parquet",
    "parquet_sink",
    "patterns",
    "print_sink",
    "quantile",
    "ray_dataset",
    "rewritten",
    "schedule",
    "shedding",
    "sliding",
    "spark",
    "spark_stream",
    "sum",
    "table",
    "testing",
    "tumbling",
    "tuning",
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
