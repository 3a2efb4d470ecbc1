"""Times truncated in zones that leave hours out, and have some twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import TypeMismatch
from tests.support.tables import computed

HOUR = timedelta(hours=1)
CHANGES = [  # (zone, day of a change): begins of days left out and twice, half hours, hours
    ("Africa/Cairo", datetime(2024, 4, 26, tzinfo=UTC)),
    ("Asia/Beirut", datetime(2024, 3, 31, tzinfo=UTC)),
    ("America/Santiago", datetime(2024, 9, 8, tzinfo=UTC)),
    ("America/Havana", datetime(2024, 11, 3, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2024, 4, 6, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2024, 10, 5, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2024, 3, 31, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2024, 10, 27, tzinfo=UTC)),
    ("Asia/Amman", datetime(2005, 4, 1, tzinfo=UTC)),
]
LENGTHS = {"15m": HOUR / 4, "1h": HOUR, "6h": 6 * HOUR, "1d": 24 * HOUR}


def begins_of(local: datetime, length: timedelta) -> datetime:
    """Return the begin of the period by the clock on the wall."""
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    since = local.replace(tzinfo=None, fold=0) - midnight
    return midnight + since // length * length


def truncated(time: datetime, zone: ZoneInfo, length: timedelta) -> datetime:
    """Return when the wall's clock showed the begin: Python's zones, one time at a time."""
    local = time.astimezone(zone)
    begin = begins_of(local, length)
    each = [begin.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = [one for one in each if one.astimezone(zone).replace(tzinfo=None, fold=0) == begin]
    own = [one for one in shown if one.astimezone(zone).utcoffset() == local.utcoffset()]
    if length <= HOUR and own:
        return own[0]
    return min(shown, default=each[0])  # left out: the offset before leads to the change


@pytest.mark.parametrize(("name", "day"), CHANGES)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_begin_is_when_the_clock_showed_it(name: str, day: datetime, length: str) -> None:
    zone = ZoneInfo(name)
    times = [day + timedelta(minutes=7 * n) for n in range(-100, 400)]
    column = pa.array(times, pa.timestamp("us", name))
    made = computed(sw.col("t").dt.truncate(length), t=column)
    expected = [truncated(time, zone, LENGTHS[length]) for time in times]
    assert [one.astimezone(UTC) for one in made] == expected
    assert all(begin <= time for begin, time in zip(expected, times, strict=True))


def test_a_second_has_the_seconds_of_an_old_offset() -> None:
    column = pa.array(
        [datetime(1850, 6, 1, 10, 20, 30, tzinfo=UTC)], pa.timestamp("s", "Europe/Berlin")
    )
    assert computed(sw.col("t").dt.second(), t=column) == [58]


def test_an_empty_text_is_never_looked_for() -> None:
    with pytest.raises(TypeMismatch, match="has nothing to replace"):
        sw.col("t").str.replace("", "-", literal=True)


def test_a_format_has_the_codes_of_strftime_alone() -> None:
    for form in ("%s", "%-d %H", "%q"):
        with pytest.raises(TypeMismatch, match="there is no code '%"):
            sw.col("t").dt.format(form)
