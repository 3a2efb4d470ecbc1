"""Waits of rows in gates, as part of a predicted latency; they go beyond [mace].

| file | contents |
| --- | --- |
| `sources.py` | arrivals of a source's rows, their event times, its promises |
| `recorded_times.py` | the same from an earlier job, interval by interval |
| `streams.py` | sampled rows, each for many, and promises on their way |
| `release.py` | release times of a gate: ready, by its slack, by the clock |
| `results.py` | times and stimuli of pairs and windows |
| `gated.py` | operators after gates, from a plan |
| `passage.py` | rows and promises through all stages |
| `estimate.py` | waits and work combined |
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
