"""Batches, messages, promises, what a gate releases, and the times and types of it all."""

from slackwater.runtime.model.batch import (
    PLACE_BITS,
    Batch,
    Column,
    Columns,
    Int64Array,
    batch_of,
    concat_batches,
    concat_columns,
    joined_batches,
)
from slackwater.runtime.model.gate_read import GateRead
from slackwater.runtime.model.message import (
    NO_PROGRESS,
    Arrived,
    Mark,
    Message,
    Progress,
    ReadTag,
)
from slackwater.runtime.model.nullable import BoolArray
from slackwater.runtime.model.release import (
    BY_DEADLINE,
    ON_ARRIVAL,
    READY_ONLY,
    ByDeadline,
    Release,
    ReleaseRule,
)
from slackwater.runtime.model.stable_order import stable_order, stable_order_of_pairs
from slackwater.runtime.model.times import (
    EARLIEST_NS,
    END_NS,
    LATEST_NS,
    LONGEST_NS,
    NS_PER_SECOND,
    START_NS,
    Duration,
    duration_ns,
    format_ns,
    format_s,
)

__all__ = [
    "BY_DEADLINE",
    "EARLIEST_NS",
    "END_NS",
    "LATEST_NS",
    "LONGEST_NS",
    "NO_PROGRESS",
    "NS_PER_SECOND",
    "ON_ARRIVAL",
    "PLACE_BITS",
    "READY_ONLY",
    "START_NS",
    "Arrived",
    "Batch",
    "BoolArray",
    "ByDeadline",
    "Column",
    "Columns",
    "Duration",
    "GateRead",
    "Int64Array",
    "Mark",
    "Message",
    "Progress",
    "ReadTag",
    "Release",
    "ReleaseRule",
    "batch_of",
    "concat_batches",
    "concat_columns",
    "duration_ns",
    "format_ns",
    "format_s",
    "joined_batches",
    "stable_order",
    "stable_order_of_pairs",
]
