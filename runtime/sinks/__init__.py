"""How output is committed: what is whole, who may write, where a part ends, who may go on."""

from runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun, differing
from runtime.sinks.lock import Holder, Verdict, judged
from runtime.sinks.manifest import Manifest, Part, RunRecord
from runtime.sinks.open_decision import ExistingOutput, OpenDecision, open_decision
from runtime.sinks.rolling import RollingPolicy

__all__ = [
    "ExistingOutput",
    "Fingerprint",
    "Holder",
    "InputPrint",
    "Manifest",
    "OpenDecision",
    "Part",
    "RollingPolicy",
    "RunRecord",
    "SinkRun",
    "Verdict",
    "differing",
    "judged",
    "open_decision",
]
