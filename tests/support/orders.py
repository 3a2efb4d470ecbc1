"""Orders of a slot's work: ours, and those that benchmarks compare with it."""

from __future__ import annotations

import slackwater as sw
from benchmarks.mace.orders import FifoOrder, LongestQueue, RoundRobin

ORDERS = (
    sw.StimulusOrder(),
    FifoOrder(),
    RoundRobin(),
    LongestQueue(),
    sw.Priorities({"pairs": 2, "pairs.gate": 1, "pairs-out": -1}),
    sw.CoarseStimulus("20ms", LongestQueue()),
    sw.CoarseStimulus("5ms", FifoOrder()),
)
