"""Define the public names: those to write a flow, and those to run it."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from slackwater.actors.sinks import callback_sink, collect_sink, jsonl_sink, parquet_sink
from slackwater.cluster import Cluster
from slackwater.ingest import blocks, csv, jsonl, parquet, table
from slackwater.ingest.timesync import TimeServer, TimeSync, synced
from slackwater.jobs import Job
from slackwater.rewriting import rewritten
from slackwater.runtime.closing import event_driven, ignore, mean_delay, probslack
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.control import Command, FlowGraph, SetRelease, Warn
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.flow import (
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
from slackwater.runtime.measure import JobReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, ReleaseRule
from slackwater.runtime.operators.ground.drift import clock_bound
from slackwater.runtime.order import (
    aq_k_slack,
    by_sequence,
    error_within,
    k_slack,
    ldop,
    mp_k_slack,
)
from slackwater.runtime.patterns.language import (
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
from slackwater.runtime.schedule import (
    CoarseStimulus,
    PathView,
    Priorities,
    StageView,
    StimulusOrder,
)
from slackwater.runtime.shedding import baseline_shedding, espice, random_shedding
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.runtime.sinks import Output, OutputContext, SinkWriter
from slackwater.runtime.sources.clock_columns import clock_columns
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    EndOfInput,
    Input,
    SourceReader,
    SourceSpec,
)
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
    "FlowGraph",
    "Input",
    "Job",
    "JobReport",
    "KeyedStream",
    "Limits",
    "LinkModel",
    "Output",
    "OutputContext",
    "PathView",
    "Priorities",
    "ReleaseRule",
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
    """Return a bounded Spark frame as an input; see `slackwater.ingest.spark.spark`."""
    from slackwater.ingest.spark import spark as of_frame  # noqa: PLC0415 (Spark takes seconds to import)

    return of_frame(frame, **options)


def spark_stream(frame: "DataFrame", **options: Any) -> Input:
    """Return an unbounded Spark frame as an input; see `slackwater.ingest.push.streaming`."""
    from slackwater.ingest.push.streaming import spark_stream as of_frame  # noqa: PLC0415 (as above)

    return of_frame(frame, **options)
