"""Custom inputs and outputs (docs/extending.md)."""

from slackwater.ingest.memory import blocks
from slackwater.runtime.errors import RowsGone
from slackwater.runtime.sinks.output import Output, OutputContext, Sink, SinkProgress, SinkTraits
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    Partition,
    SourceReader,
    SourceSpec,
)

__all__ = [
    "END_OF_INPUT",
    "BadRows",
    "Block",
    "EndOfInput",
    "Input",
    "Output",
    "OutputContext",
    "Partition",
    "RowsGone",
    "Sink",
    "SinkProgress",
    "SinkTraits",
    "SourceReader",
    "SourceSpec",
    "blocks",
]
