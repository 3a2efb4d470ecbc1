"""Shedding drops events under load: eSPICE, its rivals, and the detection of overload.

It knows nothing of patterns: it sees each event of a window by its type and its position, and
later which of them were in a match. `words` is what users write, `settings` what becomes of that.
`machine` joins `detector` (how much: `costs`, `breaks`) with a `shedder` (which): `espice`,
`featured`, `contest` (of these two the one that loses less, by its `evidence`), `rivals`. A model
is counted in a `table` of cells (`places`), begins with types and places by themselves (`priors`),
is brought to a scale (`scales`) and cut (`thresholds`); what is dropped of a read (`spans`) is
looked up in it at once (`runs`). `change` tells when it is out of date, and `machine` what
dropping costs in matches.
"""

from slackwater.runtime.shedding.detector import Load, OverloadDetector, Verdict
from slackwater.runtime.shedding.machine import Shedding, SheddingReport, shedder_of
from slackwater.runtime.shedding.settings import Espice, Model, Overload
from slackwater.runtime.shedding.shedder import Amount, Shedder
from slackwater.runtime.shedding.spans import Dropped, Spans
from slackwater.runtime.shedding.windows import FinishedWindows, Places
from slackwater.runtime.shedding.words import baseline_shedding, espice, random_shedding

__all__ = [
    "Amount",
    "Dropped",
    "Espice",
    "FinishedWindows",
    "Load",
    "Model",
    "Overload",
    "OverloadDetector",
    "Places",
    "Shedder",
    "Shedding",
    "SheddingReport",
    "Spans",
    "Verdict",
    "baseline_shedding",
    "espice",
    "random_shedding",
    "shedder_of",
]
