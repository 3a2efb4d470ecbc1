"""Waits of rows in gates, as part of a predicted latency; they go beyond [mace].

- `estimate.py`: Latency of a flow with gates: waits of rows in them, combined with the work.
- `gated.py`: Operators after gates, as the estimate needs them; read from a plan.
- `passage.py`: Passage of rows and promises through all stages, with waits in gates.
- `recorded_times.py`: Source times from an earlier job: arrivals, event times and promises of rows.
- `release.py`: Release times of a gate, from its inputs' rows and promises. [ssg] Def. 2.1, 3.1.
- `results.py`: Results of an operator after a gate: times and stimuli. Source: [mace] Def. 2.
- `sources.py`: Source times: arrivals of a source's rows, their event times, and promises.
- `streams.py`: Rows on their way to a gate, a few for all, and promises.
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
