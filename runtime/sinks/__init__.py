"""What an output is; how one is committed: what is whole, who may write, who may go on."""

from runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun, differing
from runtime.sinks.lock import Holder, Verdict, judged
from runtime.sinks.manifest import Manifest, Part, RunRecord
from runtime.sinks.open_decision import ExistingOutput, OpenDecision, open_decision
from runtime.sinks.output import (
    CommitTraits,
    HasEnded,
    Output,
    OutputContext,
    SinkTraits,
    SinkWriter,
    traits_of,
)
from runtime.sinks.rolling import RollingPolicy

__all__ = [
    "CommitTraits",
    "ExistingOutput",
    "Fingerprint",
    "HasEnded",
    "Holder",
    "InputPrint",
    "Manifest",
    "OpenDecision",
    "Output",
    "OutputContext",
    "Part",
    "RollingPolicy",
    "RunRecord",
    "SinkRun",
    "SinkTraits",
    "SinkWriter",
    "Verdict",
    "differing",
    "judged",
    "open_decision",
    "traits_of",
]
