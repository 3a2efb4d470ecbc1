"""Times truncated in zones that leave hours out, and have some twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.model import batch_of
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


FIXED_NS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
MONTHS = {"mo": 1, "q": 3, "y": 12}
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - no zone


def begin_ns(time_ns: int, multiple: int, unit: str) -> int | None:
    """Return the begin of a period by Python's whole numbers; None: before the year 1."""
    if unit in FIXED_NS:
        first = datetime(1969, 12, 29) if unit == "w" else EPOCH  # noqa: DTZ001
        first_ns = (first - EPOCH) // timedelta(microseconds=1) * 1_000
        return time_ns - (time_ns - first_ns) % (multiple * FIXED_NS[unit])
    day = EPOCH + timedelta(seconds=time_ns // 10**9)
    first_year = 0 if unit == "y" else 1970
    months = (day.year - first_year) * 12 + day.month - 1
    months -= months % (multiple * MONTHS[unit])
    year, month = first_year + months // 12, months % 12
    if year < 1:
        return None
    return (datetime(year, month + 1, 1) - EPOCH) // timedelta(seconds=1) * 10**9  # noqa: DTZ001


ENDS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10**16).flatmap(
    lambda since: st.sampled_from([-(2**63) + since, 2**63 - 1 - since])
)


@given(
    ENDS,
    st.integers(1, 999_999_999) | st.integers(1, 1_000),
    st.sampled_from([*FIXED_NS, *MONTHS]),
)
@example(2**63 - 1, 1, "w")
@example(-1, 500, "y")
@example(1_770_000_000 * 10**9, 100_000, "y")
def test_a_begin_is_right_or_refused(time_ns: int, multiple: int, unit: str) -> None:
    begin = begin_ns(time_ns, multiple, unit)
    schema = pa.schema([("t", pa.timestamp("ns"))])
    truncate = sw.col("t").dt.truncate(f"{multiple}{unit}").bound(schema)
    rows = batch_of([0], {"t": np.array([time_ns])})
    if begin is not None and begin >= -(2**63):
        assert truncate.evaluate(rows).tolist() == [begin]
    else:
        with pytest.raises(OperatorError, match=r"begin of the .* is beyond nanoseconds"):
            truncate.evaluate(rows)


@pytest.mark.parametrize(
    ("name", "time_ns", "is_told"),
    [
        ("Pacific/Kiritimati", 2**63 - 10**12, False),
        ("Pacific/Kiritimati", 2**63 - 15 * 3_600 * 10**9, True),
        ("America/Los_Angeles", -(2**63) + 10**12, False),
        ("America/Los_Angeles", 2**63 - 10**12, True),
    ],
)
def test_a_zone_tells_a_time_at_the_ends_rightly_or_refuses_it(
    name: str, time_ns: int, is_told: bool
) -> None:
    t, column = sw.col("t"), pa.array([time_ns]).view(pa.timestamp("ns", name))
    seconds = pa.array([time_ns // 10**9]).view(pa.timestamp("s", name))
    day = pa.compute.strftime(seconds, "%Y-%m-%d")[0].as_py()
    right: list[tuple[sw.Expr, object]] = [
        (t.dt.year(), int(day[:4])),
        (t.dt.day(), int(day[8:])),
        (t.dt.weekday(), datetime.fromisoformat(day).isoweekday()),
        (t.cast("date").cast("string"), day),
        (t.cast("string").str.slice(0, 10), day),
    ]
    for expression, value in right:
        if is_told:
            assert computed(expression, t=column) == [value]
        else:
            with pytest.raises(OperatorError, match="beyond nanoseconds, 1677 to 2262"):
                computed(expression, t=column)
    assert computed(t.dt.format("%Y-%m-%d"), t=column) == [day]
    assert computed(t.try_cast("date").is_null(), t=column) == [not is_told]


def test_a_second_has_the_seconds_of_an_old_offset() -> None:
    column = pa.array(
        [datetime(1850, 6, 1, 10, 20, 30, tzinfo=UTC)], pa.timestamp("s", "Europe/Berlin")
    )
    assert computed(sw.col("t").dt.second(), t=column) == [58]


def test_an_empty_text_is_never_looked_for() -> None:
    with pytest.raises(TypeMismatch, match="has nothing to replace"):
        sw.col("t").str.replace("", "-", literal=True)


def test_a_format_has_the_codes_of_strftime_alone() -> None:
    for form in ("%s", "%-d %H", "%q", "%H%"):
        with pytest.raises(TypeMismatch, match="there is no code '%"):
            sw.col("t").dt.format(form)
