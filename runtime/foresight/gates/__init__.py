"""What rows wait in gates, as part of a latency that is known before a flow runs. Beyond [mace].

| file | what it has |
| --- | --- |
| `sources.py` | when a source's rows come, of what time they are, what it has promised by then |
| `recorded_times.py` | the same of an earlier job, interval by interval |
| `streams.py` | rows that stand for many, and promises, on their way |
| `release.py` | when a gate lets rows go: ready, by its slack, by the clock |
| `results.py` | when pairs and windows leave, and with which stimulus |
| `gated.py` | what is to be known of an operator behind a gate, from a plan |
| `passage.py` | rows and promises through all stages |
| `estimate.py` | waiting and work put together |
"""

from __future__ import annotations

from slackwater.runtime.foresight.gates.estimate import (
    GatedEstimate,
    GatedFlow,
    GateWait,
    estimate_gated,
)
from slackwater.runtime.foresight.gates.gated import GatedOperator, gated_operators
from slackwater.runtime.foresight.gates.sources import SourceTimes
from slackwater.runtime.foresight.gates.streams import Promises, Rows, Series

__all__ = [
    "GateWait",
    "GatedEstimate",
    "GatedFlow",
    "GatedOperator",
    "Promises",
    "Rows",
    "Series",
    "SourceTimes",
    "estimate_gated",
    "gated_operators",
]
