"""Zones change times into those of a clock, by Python's rules, which have all years.

Arrow's end in 2037, and have whole minutes.

```
Berlin, UTC   … 2040-03-25 01:00 ─ +2 h ─▶ 2040-10-28 01:00 ─ +1 h ─▶ …   segments, searched
clock         … 02:00 → 03:00: left out     03:00 → 02:00: the hour comes twice
```

Segments are found where times need them. From 2100 on rules repeat every 400 years.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import UNIT_NS
from slackwater.runtime.model.time_text import clock_text
from slackwater.runtime.model.times import NS_PER_SECOND

__all__ = [
    "BEYOND",
    "Ambiguous",
    "NoTime",
    "check_zone",
    "clock_of",
    "instants_in",
    "instants_of",
    "names_at",
    "offset_text",
    "offsets_at",
    "zoned_text",
]

Seconds = npt.NDArray[np.int64]
Ambiguous = Literal["raise", "earliest", "latest"]

_DAY = 86_400
_FIRST = -5_364_662_400
"""1800-01-01: no zone changed its clock before."""
_REPEATS = 4_102_444_800
"""2100-01-01: no zone has a change of its own after."""
_CYCLE = 146_097 * _DAY
"""400 years of the calendar, whole weeks."""
_STEP, _BLOCK = 2 * _DAY, 400 * _DAY
"""Seconds between looks, less than between two changes; and that are looked through at least."""
_MOST_AWAY = 36 * 3_600
"""More than a clock is from UTC, before and after a change."""
_FIXED = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
_OFFSET = r"(?P<sign>[+-])(?P<h>[01][0-9]|2[0-3]):?(?P<m>[0-5][0-9]):?(?P<s>[0-5][0-9])$"
_SECONDS_TOO = f":[0-9]{{2}}.*{_OFFSET}"
BEYOND = "is beyond nanoseconds, 1677 to 2262; filter out such rows first"
"""End of an error about a time that does not fit 64 bits."""


class NoTime(ValueError):
    """A zone's clock never shows a time, or twice; `place` is its row."""

    def __init__(self, place: int, *, is_twice: bool) -> None:
        super().__init__(f"row {place}")
        self.place, self.is_twice = place, is_twice


class _Segments(NamedTuple):
    """Offsets of a zone between two times.

    Attributes:
        first, last: the times, seconds since 1970.
        starts: starts of the segments, in order.
        offsets: offsets of the clock from UTC, in seconds.
    """

    first: int
    last: int
    starts: Seconds
    offsets: Seconds


class _Zone:
    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._segments: _Segments | None = None

    def segments_at(self, utc_s: Seconds) -> tuple[Seconds, Seconds]:
        """Return offsets from UTC, and the time since each began, in seconds."""
        if not len(utc_s):
            return utc_s, utc_s
        near = np.maximum(utc_s, _FIRST)
        if near.max() >= _REPEATS:
            near = np.where(near < _REPEATS, near, (near - _REPEATS) % _CYCLE + _REPEATS)
        known = self._known(int(near.min()), int(near.max()))
        at = np.searchsorted(known.starts, near, "right") - 1
        return known.offsets.take(at), near - known.starts.take(at)

    def _known(self, first: int, last: int) -> _Segments:
        """Return segments that hold these times."""
        known = self._segments
        if known is not None and known.first <= first and last < known.last:
            return known
        if known is not None:
            first, last = min(first, known.first), max(last, known.last)
        first, last = first // _BLOCK * _BLOCK, (last // _BLOCK + 1) * _BLOCK
        self._segments = segments = self._looked_through(first, last)
        return segments

    def _looked_through(self, first: int, last: int) -> _Segments:
        starts, offsets = [first], [self._offset(first)]
        for time in range(first + _STEP, last + _STEP, _STEP):
            self._add_changes(starts, offsets, time)
        return _Segments(first, last, np.array(starts), np.array(offsets))

    def _add_changes(self, starts: list[int], offsets: list[int], until: int) -> None:
        """Add the changes since the last look."""
        offset = self._offset(until)
        while offset != offsets[-1]:
            before, after = max(starts[-1], until - _STEP), until
            while after - before > 1:
                middle = (before + after) // 2
                is_before = self._offset(middle) == offsets[-1]
                before, after = (middle, after) if is_before else (before, middle)
            starts.append(after)
            offsets.append(self._offset(after))

    def _offset(self, utc_s: int) -> int:
        offset = datetime.fromtimestamp(utc_s, self.zone).utcoffset()
        assert offset is not None, "it is aware"
        return offset // timedelta(seconds=1)


@cache
def _zone(name: str) -> _Zone:
    """Return a zone.

    Raises:
        ArrowInvalid: there is no such zone.
    """
    try:
        if match := _FIXED.fullmatch(name):
            away = timedelta(hours=int(match[2]), minutes=int(match[3]))
            own_name = f"{match[1]}{match[2]}{match[3]}"
            return _Zone(timezone(away if match[1] == "+" else -away, own_name))
        return _Zone(ZoneInfo(name))
    except (OSError, ValueError, LookupError) as problem:
        raise pa.ArrowInvalid(f"there is no time zone {name!r}: {problem}") from None


def check_zone(zone: str) -> None:
    """Check that a zone exists.

    Args:
        zone: a name such as "Europe/Berlin", or an offset such as "+02:00".

    Raises:
        ArrowInvalid: there is no such zone.
    """
    _zone(zone)


def offsets_at(zone: str, utc_s: Seconds) -> Seconds:
    """Return the seconds by which a zone's clock is before UTC, at seconds since 1970.

    Raises:
        ArrowInvalid: there is no such zone.
    """
    return _zone(zone).segments_at(utc_s)[0]


def names_at(zone: str, utc_s: Seconds) -> list[str]:
    """Return short names of a zone's time at seconds since 1970: CET, CEST."""
    known = _zone(zone).zone
    return [datetime.fromtimestamp(second, known).tzname() or "" for second in utc_s.tolist()]


def instants_of(zone: str, clock_s: Seconds, *, ambiguous: Ambiguous, skips: bool) -> Seconds:
    """Return the seconds since 1970 at which a zone's clock shows times.

    Args:
        zone: name of the zone.
        clock_s: the times, as if they were UTC.
        ambiguous: choice between two instants where the clock is put back.
        skips: whether a time that the clock leaves out is the one after the gap.

    Raises:
        NoTime: the clock never shows a time, or twice.
    """
    known = _zone(zone)
    before, _ = known.segments_at(clock_s - _MOST_AWAY)
    after, _ = known.segments_at(clock_s + _MOST_AWAY)
    first, second = clock_s - before, clock_s - after
    (at_first, since), (at_second, _) = known.segments_at(first), known.segments_at(second)
    is_first, is_second = at_first == before, at_second == after
    is_none, is_twice = ~(is_first | is_second), is_first & is_second & (first != second)
    if not skips and is_none.any():
        raise NoTime(int(is_none.argmax()), is_twice=False)
    if ambiguous == "raise" and is_twice.any():
        raise NoTime(int(is_twice.argmax()), is_twice=True)
    takes_first = is_first & ~is_twice if ambiguous == "latest" else is_first
    return np.where(is_none, first - since, np.where(takes_first, first, second))


def clock_of(kind: pa.DataType, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return times, in their unit, as the clock of their zone shows them.

    Raises:
        OperatorError: that is beyond 64 bits; with its place.
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return values
    clock, _, wraps = _clock(kind, values)
    if wraps.any():
        place = int(wraps.argmax())
        time = np.datetime64(int(values[place]), kind.unit)
        problem = OperatorError(f"the clock of {kind.tz} at {time} UTC {BEYOND}")
        problem.place = place
        raise problem
    return clock


def _clock(kind: pa.DataType, values: Seconds) -> tuple[Seconds, Seconds, npt.NDArray[np.bool_]]:
    """Return times on the clock, offsets in seconds, and whether each time wraps around."""
    ticks = np.int64(NS_PER_SECOND // UNIT_NS[kind.unit])
    offsets = offsets_at(kind.tz, values // ticks)
    clock: Seconds = values + offsets * ticks
    return clock, offsets, ((clock > values) != (offsets > 0)) & (offsets != 0)


def zoned_text(times: pa.Array) -> pa.Array:
    """Return timestamps as text by the clock of their zone: 2040-07-01 12:00:00+0200.

    An offset with seconds is +HH:MM:SS; UTC is Z. A time whose clock is beyond 64 bits is UTC.
    """
    kind, text = times.type, pa.string()
    of_arrow = arrow_functions()
    if kind.tz is None or not len(times):
        return clock_text(times)
    if str(pa.scalar(0, kind).cast(text)).endswith("Z"):
        own = clock_text(times.view(pa.timestamp(kind.unit)))
        return of_arrow.binary_join_element_wise(own, "Z", "")
    since = times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    shown, offsets, wraps = _clock(kind, since)
    clock = pa.array(np.where(wraps, since, shown)).view(pa.timestamp(kind.unit))
    distinct, codes = np.unique(offsets, return_inverse=True)
    ends = pa.array([offset_text(offset) for offset in distinct.tolist()], text).take(
        pa.array(codes)
    )
    ends = of_arrow.if_else(wraps, "Z", ends)
    return of_arrow.if_else(
        times.is_valid(), of_arrow.binary_join_element_wise(clock_text(clock), ends, ""), None
    )


def offset_text(offset_s: int) -> str:
    """Return an offset of seconds as text, +0200; with seconds as -00:44:30."""
    sign, (minutes, seconds) = "-" if offset_s < 0 else "+", divmod(abs(offset_s), 60)
    hours, minutes = divmod(minutes, 60)
    if seconds:
        return f"{sign}{hours:02}:{minutes:02}:{seconds:02}"
    return f"{sign}{hours:02}{minutes:02}"


def instants_in(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts of times with offsets, perhaps with seconds, as zoned timestamps.

    Raises:
        ArrowInvalid: a text is not a time, or has no offset.
    """
    of_arrow = arrow_functions()
    has_seconds = of_arrow.match_substring_regex(text, _SECONDS_TOO)
    if not has_seconds.true_count:
        return text.cast(kind)
    plain = of_arrow.if_else(has_seconds, None, text).cast(kind)
    own = of_arrow.if_else(has_seconds, text, None)
    parts = dict(zip("xhms", of_arrow.extract_regex(own, _OFFSET).flatten(), strict=True))
    minutes, seconds = parts["m"].cast(pa.int64()), parts["s"].cast(pa.int64())
    minutes = of_arrow.add(of_arrow.multiply(parts["h"].cast(pa.int64()), 60), minutes)
    away = of_arrow.add(of_arrow.multiply(minutes, 60), seconds)
    away = of_arrow.if_else(of_arrow.equal(parts["x"], "-"), of_arrow.negate(away), away)
    clock = of_arrow.replace_substring_regex(own, _OFFSET, "").cast(pa.timestamp(kind.unit))
    since = of_arrow.subtract_checked(
        clock.view(pa.int64()), of_arrow.multiply(away, NS_PER_SECOND // UNIT_NS[kind.unit])
    )
    return of_arrow.coalesce(plain, since.view(kind))
