"""Outputs and their commits: whole parts, locks, and whether a run may continue one."""

from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun, differing
from slackwater.runtime.sinks.output import (
    FileTraits,
    HasEnded,
    Output,
    OutputContext,
    Sink,
    SinkProgress,
    SinkTraits,
)

__all__ = [
    "FileTraits",
    "Fingerprint",
    "HasEnded",
    "InputPrint",
    "Output",
    "OutputContext",
    "Sink",
    "SinkProgress",
    "SinkRun",
    "SinkTraits",
    "differing",
]
