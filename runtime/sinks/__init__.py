"""What an output is; how one is committed: what is whole, who may write, who may go on."""

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
