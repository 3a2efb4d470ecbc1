"""How output is committed: what is whole, who may write, where a part ends, who may go on."""

from runtime.sinks.cut import Cutter
from runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun, differing
from runtime.sinks.lock import Holder, Verdict, judged
from runtime.sinks.manifest import Manifest, Part, RunNote
from runtime.sinks.opening import Opening, Output, opening_of

__all__ = [
    "Cutter",
    "Fingerprint",
    "Holder",
    "InputPrint",
    "Manifest",
    "Opening",
    "Output",
    "Part",
    "RunNote",
    "SinkRun",
    "Verdict",
    "differing",
    "judged",
    "opening_of",
]
