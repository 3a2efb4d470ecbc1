"""The front door of Slackwater: everything a flow is written with, and where it runs.

import slackwater as sw

flow = sw.Dataflow("congestion")
buses = flow.source("buses", sw.parquet("buses/"), event_time="ts")
loops = flow.source("loops", sw.parquet("loops/"), event_time="ts")
buses.filter(sw.col("delay_s") > 300).join(loops, on="area", within="5s").sink(
    "jams", sw.parquet_sink("out/")
)
with sw.Cluster.local(nodes=3) as cluster:
    print(cluster.submit(flow).wait().ledger)
"""

import os
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

# Ray ends a process in mid-line that cannot write to its raylet and takes it for dead, by the
# process of this number; unset, by whether the parent is process 1, as it is in many a container
# and after `nohup`. Ray reads it once, as it is loaded; we are not dead, and say so before.
if "ray._raylet" not in sys.modules:
    os.environ["RAY_RAYLET_PID"] = str(os.getpid())

from actors.sinks import callback_sink, collect_sink, jsonl_sink, parquet_sink
from ingest import blocks, csv, jsonl, parquet, table
from ingest.timesync import TimeServer, TimeSync, synced
from runtime.closing import event_driven, ignore, mean_delay, probslack
from runtime.config import Limits, Tuning
from runtime.control import Command, FlowGraph, SetRelease, Warn
from runtime.errors import SlackwaterError
from runtime.flow import (
    Dataflow,
    Expr,
    KeyedStream,
    Stream,
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
    where,
)
from runtime.measure import JobReport
from runtime.measure.samples import StageSample
from runtime.model import ON_ARRIVAL, READY_ONLY, ReleaseRule
from runtime.old_names import old_names
from runtime.operators.ground.drift import clock_bound
from runtime.order import aq_k_slack, by_sequence, error_within, k_slack, ldop, mp_k_slack
from runtime.patterns.language import (
    all_of,
    any_of,
    count_window,
    either,
    event,
    no,
    opened_by,
    repeat,
    seq,
)
from runtime.schedule import (
    CoarseStimulus,
    FifoOrder,
    LongestQueue,
    PathView,
    Priorities,
    RoundRobin,
    StageView,
    StimulusOrder,
)
from runtime.shedding import baseline_shedding, espice, random_shedding
from runtime.simulate import CostModel, LinkModel
from runtime.sinks import Output, OutputContext, SinkWriter
from runtime.sources.clock_columns import clock_columns
from runtime.sources.spec import END_OF_INPUT, EndOfInput, Input, SourceReader, SourceSpec
from slackwater.cluster import Cluster
from slackwater.jobs import Job
from slackwater.rewriting import rewritten
from slackwater.simulated_job import SimulatedJob
from slackwater.simulation import Simulation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__version__ = version("slackwater")
__all__ = [
    "END_OF_INPUT",
    "ON_ARRIVAL",
    "READY_ONLY",
    "Cluster",
    "CoarseStimulus",
    "Command",
    "CostModel",
    "Dataflow",
    "EndOfInput",
    "Expr",
    "FifoOrder",
    "FlowGraph",
    "Input",
    "Job",
    "JobReport",
    "KeyedStream",
    "Limits",
    "LinkModel",
    "LongestQueue",
    "Output",
    "OutputContext",
    "PathView",
    "Priorities",
    "ReleaseRule",
    "RoundRobin",
    "SetRelease",
    "SimulatedJob",
    "Simulation",
    "SinkWriter",
    "SlackwaterError",
    "SourceReader",
    "SourceSpec",
    "StageSample",
    "StageView",
    "StimulusOrder",
    "Stream",
    "TimeServer",
    "TimeSync",
    "Tuning",
    "Warn",
    "__version__",
    "all_of",
    "any_of",
    "aq_k_slack",
    "baseline_shedding",
    "blocks",
    "by_sequence",
    "callback_sink",
    "clock_bound",
    "clock_columns",
    "col",
    "collect_sink",
    "count",
    "count_window",
    "csv",
    "duration",
    "either",
    "error_within",
    "espice",
    "event",
    "event_driven",
    "event_time",
    "ignore",
    "jsonl",
    "jsonl_sink",
    "k_slack",
    "ldop",
    "lit",
    "max",
    "mean",
    "mean_delay",
    "min",
    "mp_k_slack",
    "no",
    "opened_by",
    "parquet",
    "parquet_sink",
    "probslack",
    "quantile",
    "random_shedding",
    "repeat",
    "rewritten",
    "seq",
    "sliding",
    "spark",
    "spark_stream",
    "sum",
    "synced",
    "table",
    "tumbling",
    "where",
]


def spark(frame: "DataFrame", **options: Any) -> Input:
    """Return a bounded Spark frame as an input; see `ingest.spark.spark`."""
    from ingest.spark import spark as of_frame  # noqa: PLC0415 (Spark takes seconds to import)

    return of_frame(frame, **options)


def spark_stream(frame: "DataFrame", **options: Any) -> Input:
    """Return an unbounded Spark frame as an input; see `ingest.push.streaming.spark_stream`."""
    from ingest.push.streaming import spark_stream as of_frame  # noqa: PLC0415 (as above)

    return of_frame(frame, **options)


__getattr__ = old_names(__name__, {"SinkSpec": Output})
