"""Orders of a slot's work: ours, and those that benchmarks compare with it."""

from __future__ import annotations

import slackwater as sw
from benchmarks.mace.orders import FifoOrder, LongestQueue, RoundRobin

ORDERS = (
    sw.schedule.StimulusOrder(),
    FifoOrder(),
    RoundRobin(),
    LongestQueue(),
    sw.schedule.Priorities({"pairs": 2, "pairs.2": 1, "counts": -1}),
    sw.schedule.CoarseStimulus("20ms", LongestQueue()),
    sw.schedule.CoarseStimulus("5ms", FifoOrder()),
)
