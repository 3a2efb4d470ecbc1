"""When windows close: the policies, from `ignore` to ProbSlack, and what they tell.

`policy` is the interface, `words` what users write. A run is `ground` (ticks, rows, what was
closed when a row came) and `account` (what has closed, what was missed) under one of the simple
policies or ProbSlack: `histograms` and `fitting` (what is known), `tables` and `lines` (how long
each type is waited for), `candidates` or `disorder` (when windows may close), `budget` and
`settling` (when they do).
"""

from slackwater.runtime.closing.policy import ClosedWindows, Closing, ClosingCounts, ClosingRun
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.closing.words import event_driven, ignore, mean_delay, probslack

__all__ = [
    "ClosedWindows",
    "Closing",
    "ClosingCounts",
    "ClosingRun",
    "WindowEnds",
    "event_driven",
    "ignore",
    "mean_delay",
    "probslack",
]
