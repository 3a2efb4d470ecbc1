"""Zoned times have the offsets of Python's zones, in every year and with seconds."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import IngestError, OperatorError
from slackwater.runtime.model.zones import (
    NoTime,
    instants_in,
    instants_of,
    names_at,
    offsets_at,
    zoned_text,
)
from tests.support.readers import rows_of
from tests.support.tables import computed

EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - a clock's
SECOND = datetime.timedelta(seconds=1)
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Africa/Monrovia",
    "Africa/Casablanca",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Europe/Dublin",
    "UTC",
]
SUMMER_2040 = 2_225_000_000


def python_offset(zone: str, utc_s: int) -> int:
    offset = datetime.datetime.fromtimestamp(utc_s, ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset // SECOND


@given(st.sampled_from(ZONES), st.lists(st.integers(-(10**10), 2 * 10**11), min_size=1))
def test_offsets_are_those_of_zoneinfo_in_each_year(zone: str, times: list[int]) -> None:
    found = offsets_at(zone, np.array(times)).tolist()
    assert found == [python_offset(zone, one) for one in times]


def test_every_zone_has_its_offsets_after_2037() -> None:
    times = [SUMMER_2040, SUMMER_2040 + 15_000_000]
    zones = sorted(available_timezones())
    assert len(zones) > 400
    for zone in zones:
        found = offsets_at(zone, np.array(times)).tolist()
        assert found == [python_offset(zone, one) for one in times], zone


@given(st.sampled_from(ZONES), st.integers(-(10**10), 10**10), st.sampled_from([0, 1]))
def test_a_clock_shows_a_time_when_zoneinfo_says(zone: str, clock_s: int, fold: int) -> None:
    ambiguous: Any = "latest" if fold else "earliest"
    own = (EPOCH + clock_s * SECOND).replace(tzinfo=ZoneInfo(zone), fold=fold)
    right = (own.astimezone(datetime.UTC).replace(tzinfo=None) - EPOCH) // SECOND
    clock = np.array([clock_s])
    is_shown = right + python_offset(zone, right) == clock_s
    if not is_shown:
        with pytest.raises(NoTime):
            instants_of(zone, clock, ambiguous=ambiguous, skips=False)
        return
    assert instants_of(zone, clock, ambiguous=ambiguous, skips=False).tolist() == [right]


@given(
    st.sampled_from([*ZONES, "+05:30", "-0930"]),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.lists(st.none() | st.integers(-(10**9), 10**9)),
)
def test_text_of_zoned_times_is_read_back(zone: str, unit: str, tens: list[int | None]) -> None:
    scale = {"s": 9, "ms": 9_001, "us": 9_000_001, "ns": 9_000_000_001}[unit]
    whole = [None if one is None else one * scale for one in tens]
    times = pa.array(whole, pa.int64()).view(pa.timestamp(unit, zone))
    assert instants_in(zoned_text(times), times.type).equals(times)


@pytest.mark.parametrize("zone", [*ZONES, "+09:00", "-09:00"])
@pytest.mark.parametrize("ends", [2**63 - 1, -(2**63) + 10**9])
def test_text_of_times_at_the_ends_is_read_back(zone: str, ends: int) -> None:
    times = pa.array([ends, None, 0], pa.int64()).view(pa.timestamp("ns", zone))
    assert instants_in(zoned_text(times), times.type).equals(times)


@pytest.mark.parametrize("zone", ["+25:00", "-99:00", "Mars/Base", "Europe", "../etc"])
def test_a_zone_that_is_none_is_refused_as_arrow_refuses(zone: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="there is no time zone"):
        offsets_at(zone, np.array([0]))


@pytest.mark.parametrize("offset", ["+24:00:00", "+23:60:00", "-00:00:60", "+99:99:99"])
def test_an_offset_that_no_clock_has_is_refused(offset: str) -> None:
    text = pa.array([f"1890-01-01 00:00:00{offset}", "1890-01-01 00:00:00+00:53:28"])
    with pytest.raises(pa.ArrowInvalid):
        instants_in(text, pa.timestamp("s", "Europe/Berlin"))


def test_offsets_with_seconds_are_written_whole() -> None:
    times = pa.array([0, None], pa.int64()).view(pa.timestamp("s", "Africa/Monrovia"))
    assert zoned_text(times).to_pylist() == ["1969-12-31 23:15:30-00:44:30", None]
    assert names_at("Europe/Berlin", np.array([0, SUMMER_2040])) == ["CET", "CEST"]
    assert names_at("+05:30", np.array([0])) == ["+0530"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Sydney"])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_parts_truncation_and_text_after_2037_are_duckdbs(zone: str, unit: str) -> None:
    seconds = [SUMMER_2040 + day * 86_400 * 37 + day * 3_617 for day in range(150)]
    times = pa.array(seconds, pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    x = sw.col("x")
    ours = [
        x.dt.hour(),
        x.dt.day(),
        x.dt.weekday(),
        x.dt.truncate("1d").cast("int64"),
        x.dt.truncate("1mo").cast("int64"),
        x.dt.format("%Y-%m-%d %H:%M:%S"),
        x.cast("date").cast("string"),
    ]
    clock = f"timezone('{zone}', to_timestamp(s))"
    theirs = [
        f"hour({clock})",
        f"day({clock})",
        f"isodow({clock})",
        f"epoch_ns(timezone('{zone}', date_trunc('day', {clock})))",
        f"epoch_ns(timezone('{zone}', date_trunc('month', {clock})))",
        f"strftime({clock}, '%Y-%m-%d %H:%M:%S')",
        f"cast(cast({clock} as date) as varchar)",
    ]
    table = pa.table({"s": seconds})
    with duckdb.connect() as database:
        database.register("rows", table)
        rows = database.execute(f"SELECT {', '.join(theirs)} FROM rows").fetchall()  # noqa: S608
    for place, one in enumerate(ours):
        assert computed(one, x=times) == [row[place] for row in rows], theirs[place]


def test_text_becomes_times_of_a_zone_after_2037() -> None:
    text = pa.array(["2040-07-01 12:00:00", None, "2040-01-01 12:00:00"])
    made = sw.col("x").str.to_time("%Y-%m-%d %H:%M:%S", zone="Europe/Berlin")
    hours = [
        None if one is None else one.astimezone(datetime.UTC).hour for one in computed(made, x=text)
    ]
    assert hours == [10, None, 11]
    for bad, why in (("2040-03-25 02:30:00", "left out"), ("2040-10-28 02:30:00", "comes twice")):
        with pytest.raises(OperatorError, match=why):
            computed(made, x=pa.array([bad]))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_files_keep_times_whose_clock_is_beyond_64_bits(form: str, tmp_path: Path) -> None:
    ends = [2**63 - 1, 0]
    times = pa.array(ends).view(pa.timestamp("ns", "Asia/Tokyo"))
    flow = sw.Dataflow("written")
    source = flow.source("s", sw.table(pa.table({"t": [1, 2], "x": times})), event_time="t")
    path = tmp_path / f"rows.{form}"
    source.sink("out", getattr(sw, f"{form}_sink")(path))
    with sw.Simulation() as nodes:
        nodes.submit(flow).wait()
    text = path.read_text().replace("T", " ")
    assert "2262-04-11 23:47:16.854775807Z" in text
    assert "1970-01-01 09:00:00.000000000+0900" in text


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("kind", ["timestamp[us, tz=Africa/Monrovia]", "timestamp[s, tz=UTC]"])
def test_files_keep_times_whose_offsets_have_seconds(form: str, kind: str, tmp_path: Path) -> None:
    seconds = [40_000_000, -2_500_000_000, SUMMER_2040]
    for zone in ("Africa/Monrovia", "Europe/Berlin"):
        times = pa.array(seconds, pa.timestamp("s", zone))
        table = pa.table({"t": [1, 2, 3], "x": times})
        flow = sw.Dataflow("written")
        source = flow.source("s", sw.table(table), event_time="t", time_unit="s")
        source.sink("out", getattr(sw, f"{form}_sink")(tmp_path / zone))
        with sw.Simulation() as nodes:
            nodes.submit(flow).wait()
        found = rows_of(getattr(sw, form)(tmp_path / zone, types={"x": kind}))
        assert [one["x"].timestamp() for one in found] == seconds
        assert computed(sw.col("x").cast("string").cast(kind).cast("int64"), x=times) == [
            one * 10**9 for one in seconds
        ]


def test_a_text_that_is_no_zoned_time_is_refused_with_the_hint_of_times(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,x\n1,1890-01-01T00:00:00+00:53:28\n2,1890-01-01T00:00:00+00:53:9x\n")
    types = {"x": "timestamp[s, tz=Europe/Berlin]"}
    with pytest.raises(IngestError, match=r"column 'x'.*str\.to_time"):
        rows_of(sw.csv(path, types=types))
