"""Calendar windows are those of Python's calendar; others have an offset and a closed end."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.operators.aggregate.calendar_windows import Unit
from tests.support.flows import simulated

ZONES = ["UTC", "Europe/Warsaw", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York"]
ODD = [*ZONES, "America/St_Johns", "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca"]
UNITS: list[Unit] = ["day", "week", "month", "quarter", "year"]
SECONDS = st.integers(-1_500_000_000, 3_900_000_000)  # 1922 to 2093
HOUR_NS = 3_600 * NS_PER_SECOND


def start_of(time_s: int, unit: str, zone: ZoneInfo, late_h: int) -> int:
    """Return when the unit around a time began, by the clock."""
    clock = dt.datetime.fromtimestamp(time_s, zone).replace(tzinfo=None)
    day = (clock - dt.timedelta(hours=late_h)).date()
    if unit == "week":
        day -= dt.timedelta(days=day.weekday())
    elif unit != "day":
        months = {"month": 1, "quarter": 3, "year": 12}[unit]
        day = day.replace(day=1, month=(day.month - 1) // months * months + 1)
    start = dt.datetime.combine(day, dt.time(late_h), tzinfo=zone)
    return round(start.timestamp())


@pytest.mark.parametrize("unit", UNITS)
@given(time_s=SECONDS, zone=st.sampled_from(ZONES), late_h=st.sampled_from([0, 0, 6]))
def test_a_time_is_in_the_unit_that_pythons_calendar_says(
    unit: Unit, time_s: int, zone: str, late_h: int
) -> None:
    window = sw.calendar(unit, zone=zone, offset=f"{late_h}h")
    number = window.last_begun(time_s * NS_PER_SECOND)
    expected = start_of(time_s, unit, ZoneInfo(zone), late_h)
    assert window.start_ns(number) == expected * NS_PER_SECOND


@pytest.mark.parametrize("unit", UNITS)
@given(
    times=st.lists(SECONDS, min_size=1, max_size=9),
    zone=st.sampled_from(ODD),
    every=st.integers(1, 5),
)
def test_windows_stand_side_by_side_and_each_time_is_in_its_own(
    unit: Unit, times: list[int], zone: str, every: int
) -> None:
    window = sw.calendar(unit, every=every, zone=zone)
    times_ns = np.array(times) * NS_PER_SECOND
    numbers = window.last_begun(times_ns)
    assert (window.start_ns(numbers) <= times_ns).all()
    assert (times_ns < window.end_ns(numbers)).all()
    assert (window.end_ns(numbers) == window.start_ns(numbers + 1)).all()
    assert [window.first_after(time) for time in times_ns.tolist()] == numbers.tolist()


@pytest.mark.parametrize(("day", "hours"), [("2024-03-31", 23), ("2024-10-27", 25)])
def test_a_day_on_which_the_clock_changes_has_its_own_length(day: str, hours: int) -> None:
    noon = dt.datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo("Europe/Warsaw"))
    window = sw.calendar("day", zone="Europe/Warsaw")
    number = window.last_begun(round(noon.timestamp()) * NS_PER_SECOND)
    assert window.end_ns(number) - window.start_ns(number) == hours * HOUR_NS


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_local_days_of_a_flow_have_23_24_and_25_hours(replicas: int) -> None:
    hours = np.arange(24 * 310) * HOUR_NS + 1_704_063_600 * NS_PER_SECOND  # 2024 in Warsaw
    flow = sw.Dataflow("hours")
    times = pa.array(hours, pa.timestamp("ns", "Europe/Warsaw"))
    rows = flow.source("rows", sw.table(pa.table({"t": times, "k": hours % 7})), event_time="t")
    days = rows.aggregate(
        window=sw.calendar("day", zone="Europe/Warsaw"), by="k", n=sw.count(), replicas=replicas
    )
    days.aggregate(window=sw.calendar("day", zone="Europe/Warsaw"), n=sw.sum("n")).sink(
        "out", sw.collect_sink()
    )
    job, report = simulated(flow)
    table = job.result("out")
    starts = table["window_start"].to_pylist()
    changed = {"2024-03-31": 23, "2024-10-27": 25}
    hours_of = table["n"].to_pylist()
    assert hours_of[:-1] == [changed.get(str(start.date()), 24) for start in starts[:-1]]
    assert sum(hours_of) == len(hours)
    assert {str(start.time()) for start in starts} == {"00:00:00"}
    assert report.ledger.is_balanced


def counts(window: Any, times: list[int]) -> list[tuple[int, int, int]]:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"t": times}), event_time="t", time_unit="s")
    rows.aggregate(window=window, n=sw.count()).sink("out", sw.collect_sink())
    job, _ = simulated(flow)
    table = job.result("out")
    bounds = [
        (table[name].cast(pa.int64()).to_numpy() // NS_PER_SECOND).tolist()
        for name in ("window_start", "window_end")
    ]
    return list(zip(*bounds, table["n"].to_pylist(), strict=True))


def test_an_end_that_is_closed_takes_the_row_at_the_end_and_not_at_the_start() -> None:
    times = [0, 4, 5, 6, 10]
    assert counts(sw.tumbling("5s"), times) == [(0, 5, 2), (5, 10, 2), (10, 15, 1)]
    assert counts(sw.tumbling("5s", closed="end"), times) == [(-5, 0, 1), (0, 5, 2), (5, 10, 2)]
    assert counts(sw.sliding("5s", "5s", closed="end"), times) == [
        (-5, 0, 1),
        (0, 5, 2),
        (5, 10, 2),
    ]


def test_an_offset_moves_all_windows() -> None:
    times = [0, 4, 5, 6, 10]
    assert counts(sw.tumbling("5s", offset="1s"), times) == [(-4, 1, 1), (1, 6, 2), (6, 11, 2)]
    assert counts(sw.tumbling("5s", offset="6s"), times) == [(-4, 1, 1), (1, 6, 2), (6, 11, 2)]


def rows_of(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sw.calendar("hour"), "unit='hour' must be 'day' or 'week'"),  # type: ignore[arg-type]
        (lambda: sw.calendar("day", every=0), "every=0.: it must be at least 1"),
        (lambda: sw.calendar("day", every=10**30), "must be 73 years at most"),
        (lambda: sw.calendar("year", every=74), "write a smaller every=, or everything"),
        (lambda: sw.calendar("day", zone="Warsaw"), "no time zone 'Warsaw'.*write zone="),
        (lambda: sw.calendar("day", offset="1ms"), "offset='1ms' must be whole seconds"),
        (lambda: sw.tumbling("5s", closed="both"), "closed"),  # type: ignore[arg-type]
        (
            lambda: rows_of(sw.Dataflow("f")).aggregate(
                window=sw.calendar("day"), n=sw.count(), close=sw.closing.ignore(), name="days"
            ),
            "step 'days': close= knows windows .*omit close=, or write tumbling",
        ),
        (
            lambda: rows_of(sw.Dataflow("f")).pattern(
                sw.patterns.seq(sw.patterns.event("a", where=sw.col("k") > 0)),
                window=sw.tumbling("5s", offset="1s"),
                name="found",
            ),
            "step 'found': windows of a pattern begin at whole slides",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused(make: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        make()
