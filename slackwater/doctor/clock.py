"""Compare another clock with ours by a few questions. Source: [thesis] §3.2.2."""

from __future__ import annotations

import time
from collections.abc import Callable

from slackwater.runtime.measure.clock import Exchange

EXCHANGES = 8


def ask_clock(their_ns: Callable[[], int]) -> Exchange:
    """Return the exchange with the smallest round trip, of eight.

    Args:
        their_ns: asks the other clock, and waits for the answer.
    """
    return min((_exchange(their_ns) for _ in range(EXCHANGES)), key=lambda e: e.round_trip_ns)


def _exchange(their_ns: Callable[[], int]) -> Exchange:
    asked_ns = time.time_ns()
    answer_ns = their_ns()
    return Exchange(asked_ns, answer_ns, answer_ns, time.time_ns())
