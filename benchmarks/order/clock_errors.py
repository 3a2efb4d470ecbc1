"""What is left of a clock's offset when it has been measured: errors of a source, drawn.

A source asks once, and the question and the answer take what is drawn of one round trip; the
estimate is the time server's own (`runtime/measure/clock.py`). So the error is anything up to half
of the round trip either way ([thesis] Eq. 3.14), and that half is the bound.
"""

from __future__ import annotations

from slackwater.runtime.measure.clock import Exchange

_HELD_NS = 5_000
"""What the server takes to answer."""


def error_ns(*, drift_ns: int, round_trip_ns: int, there: float) -> int:
    """Return how far a source's corrected times are ahead of the true ones.

    Args:
        drift_ns: what its clock says at time 0.
        round_trip_ns: what question and answer take together.
        there: the share of that which the question takes.
    """
    there_ns = round(there * round_trip_ns)
    left_ns = there_ns + _HELD_NS
    came_ns = left_ns + round_trip_ns - there_ns
    asked = Exchange(drift_ns, there_ns, left_ns, came_ns + drift_ns)
    assert asked.round_trip_ns == round_trip_ns
    return drift_ns + asked.offset_ns
