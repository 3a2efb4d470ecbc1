"""Calendar windows: days, weeks, months, quarters and years of a zone's clock.

```
Warsaw, day    [Sat 00:00 ─ 24 h ─ Sun 00:00) [Sun ─ 23 h: the clock leaves out an hour ─ Mon 00:00)
```

Windows have numbers, as others do: how many of them began since 1970. A window begins where the
clock first shows its first time, or, if the clock leaves that out, right after the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.windows import Number
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND, Duration, Int64Array, duration_ns, format_ns
from slackwater.runtime.model.times import LONGEST_NS
from slackwater.runtime.model.zones import check_zone, instants_of, offsets_at
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.shown import shown

Unit = Literal["day", "week", "month", "quarter", "year"]

_DAY_S = 86_400
_MONDAY = -3
"""1969-12-29, the Monday from which weeks count."""
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MOST_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}


@dataclass(frozen=True)
class CalendarWindow(Window):
    """Windows of whole units of a zone's calendar, side by side.

    `size_ns` is longer than each of them, `slide_ns` about as long.

    Attributes:
        unit: unit of the calendar; weeks begin on Mondays.
        every: units of a window.
        zone: zone of the clock.
        late_s: time by which a window begins after midnight, on the clock.
    """

    unit: Unit = field(kw_only=True)
    every: int = field(kw_only=True)
    zone: str = field(kw_only=True)
    late_s: int = field(kw_only=True)

    @property
    def is_tumbling(self) -> bool:  # noqa: D102
        return True

    @property
    def has_whole_slides(self) -> bool:  # noqa: D102
        return False

    @property
    def text(self) -> str:  # noqa: D102
        late = f", from {format_ns(self.late_s * NS_PER_SECOND)} on" if self.late_s else ""
        many = "" if self.every == 1 else f"{self.every} "
        return f"calendar, {many}{self.unit}{'' if self.every == 1 else 's'} in {self.zone}{late}"

    def start_ns(self, window: Number) -> Number:  # noqa: D102
        return _as_given(window, self._starts_ns(np.atleast_1d(np.asarray(window, np.int64))))

    def end_ns(self, window: Number) -> Number:  # noqa: D102
        return self.start_ns(window + 1)

    def first_after(self, event_time_ns: Number) -> Number:  # noqa: D102 - they stand side by side
        return self.last_begun(event_time_ns)

    def last_begun(self, event_time_ns: Number) -> Number:  # noqa: D102
        times = np.atleast_1d(np.asarray(event_time_ns, np.int64))
        if not len(times):
            return event_time_ns
        # By the clock, save where it is put back past a window's start.
        first, last = self._by_clock(np.array([times.min(), times.max()])).tolist()
        starts_ns = self._starts_ns(np.arange(first, last + 2))
        return _as_given(event_time_ns, first - 1 + starts_ns.searchsorted(times, "right"))

    def _starts_ns(self, windows: Int64Array) -> Int64Array:
        numbers = windows * self.every
        if self.unit in _DAYS:
            days = numbers * _DAYS[self.unit] + (_MONDAY if self.unit == "week" else 0)
        else:
            months = (numbers * _MONTHS[self.unit]).astype("M8[M]")
            days = months.astype("M8[D]").astype(np.int64)
        clock_s = days * _DAY_S + self.late_s
        return NS_PER_SECOND * instants_of(self.zone, clock_s, ambiguous="earliest", skips=True)

    def _by_clock(self, times: Int64Array) -> Int64Array:
        """Return the window that each time is in as the clock shows it."""
        utc_s = times // NS_PER_SECOND
        days = (utc_s + offsets_at(self.zone, utc_s) - self.late_s) // _DAY_S
        if self.unit in _DAYS:
            number = (days - (_MONDAY if self.unit == "week" else 0)) // _DAYS[self.unit]
        else:
            months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
            number = months // _MONTHS[self.unit]
        windows: Int64Array = number // self.every
        return windows


def _as_given(given: Number, values: Int64Array) -> Number:
    made: Number = values.item(0) if isinstance(given, int) else values
    return made


@checked_call
def calendar(
    unit: Unit, *, every: int = 1, zone: str = "UTC", offset: Duration = "0s"
) -> CalendarWindow:
    """Return windows of whole units of a zone's calendar, side by side.

    A day is as long as the zone's clock has it: 23 or 25 hours where it is changed. Weeks begin on
    Mondays.

    Args:
        unit: "day", "week", "month", "quarter" or "year".
        every: number of units of a window, counted from 1970 on.
        zone: name of a zone, such as "Europe/Warsaw".
        offset: time by which windows begin after midnight, in whole seconds: "6h" for days from 6
            o'clock on.

    Raises:
        SettingError: there is no such unit or zone, or a number is out of its range.
    """
    if every < 1:
        raise SettingError(f"calendar({unit!r}, every={every}): it must be at least 1")
    try:
        check_zone(zone)
    except pa.ArrowInvalid as problem:
        raise SettingError(f"calendar({unit!r}): {problem}; write zone='Europe/Warsaw'") from None
    late_ns = duration_ns(offset, what="offset of calendar windows")
    if late_ns % NS_PER_SECOND:
        raise SettingError(f"calendar({unit!r}): offset={shown(offset)} must be whole seconds")
    about_ns = every * _MOST_DAYS[unit] * _DAY_S * NS_PER_SECOND
    if about_ns > LONGEST_NS:
        raise SettingError(
            f"calendar({unit!r}, every={shown(every)}) must be 73 years at most; write a smaller "
            "every=, or everything() for all rows of a key"
        )
    return CalendarWindow(
        about_ns + _DAY_S * NS_PER_SECOND,
        about_ns,
        unit=unit,
        every=every,
        zone=zone,
        late_s=late_ns // NS_PER_SECOND,
    )
