"""Time inside is int64 nanoseconds; this is where people's seconds become ours.

Every name says which time it is: `event_time_ns` (it happened), `stimulus_time_ns`
(its cause reached us), `slack_ns`, `promise_ns`.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from numbers import Integral, Real

from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown

NS_PER_SECOND = 1_000_000_000
END_NS = 2**63 - 1
"""A promise of END_NS says that nothing will follow: end of stream."""
START_NS = -(2**63)
"""The promise of a writer that has promised nothing yet."""

EARLIEST_NS, LATEST_NS = -(2**62), 2**62
"""Event times lie between these, 1823 to 2116: room enough that a time ± a window, a `within` or a
slack, and the difference of two times, fit in 64 bits."""
LONGEST_NS = 2**61
"""All lengths of time in a flow together: 73 years."""

Duration = str | int | float | timedelta
"""`"500ms"`, `"6s"`, a `timedelta`, or a number of seconds."""

_UNIT_NS = {  # unit: nanoseconds
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_SECOND,
    "min": 60 * NS_PER_SECOND,
    "m": 60 * NS_PER_SECOND,
    "h": 3_600 * NS_PER_SECOND,
    "d": 86_400 * NS_PER_SECOND,
}
_PATTERN = re.compile(r"^\s*(-?[0-9]*\.?[0-9]+)\s*([a-z]+)\s*$")


def duration_ns(value: Duration, *, what: str = "duration", positive: bool = False) -> int:
    """Return a length of time in nanoseconds.

    Args:
        value: "250ms", "6s", "1.5min", a timedelta, or a number of seconds.
        what: the option's name, for the error.
        positive: whether zero is refused.

    Raises:
        SettingError: unreadable, negative, not finite, above 73 years (2^61 ns), or zero where it
            must be positive.
    """
    nanoseconds = _parse(value, what)
    if nanoseconds < 0 or (positive and nanoseconds == 0):
        rule = "more than zero" if positive else "zero or more"
        negative = "is negative, and " if nanoseconds < 0 else ""
        raise SettingError(
            f"{what}={shown(value)} {negative}must be {rule}; write it like '500ms' or '6s'"
        )
    if nanoseconds > LONGEST_NS:
        raise SettingError(f"{what}={shown(value)} must be 73 years at most; write it like '6s'")
    return nanoseconds


def _parse(value: Duration, what: str) -> int:
    if isinstance(value, bool):
        raise SettingError(f"{what}={shown(value)} is not a length of time; write it like '6s'")
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * NS_PER_SECOND + value.microseconds * 1_000
    if isinstance(value, Integral):
        return int(value) * NS_PER_SECOND
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise SettingError(f"{what}={shown(value)} is not finite; write it like '6s'")
        return _nanoseconds(float(value), NS_PER_SECOND)
    match = _PATTERN.match(value) if isinstance(value, str) else None
    if match is None or match.group(2) not in _UNIT_NS:
        units = ", ".join(_UNIT_NS)
        raise SettingError(
            f"{what}={shown(value)} is not a length of time; write a number and one of {units}, "
            "like '500ms' or '6s', or a number of seconds"
        )
    return _nanoseconds(float(match.group(1)), _UNIT_NS[match.group(2)])


def _nanoseconds(number: float, unit_ns: int) -> int:
    """Return whole nanoseconds; a number that floats cannot hold is beyond each bound."""
    nanoseconds = number * unit_ns
    if math.isfinite(nanoseconds):
        return round(nanoseconds)
    return LONGEST_NS + 1 if nanoseconds > 0 else -1


def format_ns(nanoseconds: float) -> str:
    """Return a length of time as a person writes it: '1.2 ms'."""
    size = abs(nanoseconds)
    for unit, scale, limit in _SCALES:
        if size < limit:
            digits = 0 if unit == "ns" or size / scale >= 100 else 1 if size / scale >= 10 else 2
            return f"{nanoseconds / scale:.{digits}f} {unit}"
    return f"{nanoseconds / 3_600e9:.1f} h"


def format_s(seconds: float) -> str:
    """Return a latency for people: as `format_ns`, and from a second on with two decimals."""
    return format_ns(round(seconds * 1e9)) if seconds < 1 else f"{seconds:.2f} s"


_SCALES = (  # (unit, its nanoseconds, up to)
    ("ns", 1, 1e3),
    ("µs", 1e3, 1e6),
    ("ms", 1e6, 1e9),
    ("s", 1e9, 120e9),
    ("min", 60e9, 7_200e9),
)
