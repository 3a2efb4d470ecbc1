"""Batches, messages, promises, what a gate releases, and the times and types of it all."""

from runtime.model.batch import (
    Batch,
    BoolArray,
    Column,
    Columns,
    Int64Array,
    batch_of,
    concat_batches,
    concat_columns,
)
from runtime.model.message import Message, ReadMark
from runtime.model.released import Released
from runtime.model.times import (
    EARLIEST_NS,
    END_NS,
    LATEST_NS,
    LONGEST_NS,
    NS_PER_SECOND,
    START_NS,
    Duration,
    duration_ns,
    format_ns,
)

__all__ = [
    "EARLIEST_NS",
    "END_NS",
    "LATEST_NS",
    "LONGEST_NS",
    "NS_PER_SECOND",
    "START_NS",
    "Batch",
    "BoolArray",
    "Column",
    "Columns",
    "Duration",
    "Int64Array",
    "Message",
    "ReadMark",
    "Released",
    "batch_of",
    "concat_batches",
    "concat_columns",
    "duration_ns",
    "format_ns",
]
