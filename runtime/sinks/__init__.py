"""Outputs and their commits: whole parts, locks, and whether a run may continue one."""

from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun, differing
from slackwater.runtime.sinks.output import (
    CommitTraits,
    HasEnded,
    Output,
    OutputContext,
    SinkTraits,
    SinkWriter,
    traits_of,
)

__all__ = [
    "CommitTraits",
    "Fingerprint",
    "HasEnded",
    "InputPrint",
    "Output",
    "OutputContext",
    "SinkRun",
    "SinkTraits",
    "SinkWriter",
    "differing",
    "traits_of",
]
