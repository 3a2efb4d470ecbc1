"""Offset of another clock from ours, by a few exchanges. Source: [thesis] §3.2.2."""

from __future__ import annotations

import time
from collections.abc import Callable

from slackwater.runtime.measure.clock import Exchange

EXCHANGES = 8


def ask_clock(their_ns: Callable[[], int]) -> Exchange:
    """Return the exchange with the least round trip, of eight.

    The error of its offset is half of the round trip.

    Args:
        their_ns: asks the other clock, and waits for the answer.
    """
    return min(
        (_exchange(their_ns) for _ in range(EXCHANGES)), key=lambda exchange: exchange.round_trip_ns
    )


def _exchange(their_ns: Callable[[], int]) -> Exchange:
    sent_ns = time.time_ns()
    answered_ns = their_ns()
    return Exchange(sent_ns, answered_ns, answered_ns, time.time_ns())
