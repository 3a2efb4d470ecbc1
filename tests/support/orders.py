"""All orders of a slot's work that there are."""

from __future__ import annotations

import slackwater as sw

ORDERS = (
    sw.StimulusOrder(),
    sw.FifoOrder(),
    sw.RoundRobin(),
    sw.LongestQueue(),
    sw.Priorities({"pairs": 2, "pairs.gate": 1, "pairs-out": -1}),
    sw.CoarseStimulus("20ms", sw.LongestQueue()),
    sw.CoarseStimulus("5ms", sw.FifoOrder()),
)
