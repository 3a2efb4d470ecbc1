"""Text of dates and times is that of NumPy in each year, alone and in JSON."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.model.json_text import bad_rows_as_json, rows_as_json
from slackwater.runtime.model.time_text import clock_text
from slackwater.runtime.model.zones import zoned_text

YEARS = [-5_000_000, -40_000, 1, 1970, 9_999, 10_000, 32_767, 32_768, 5_000_000]
UNITS = ["s", "ms", "us"]


def column(unit: str, zone: str | None = None) -> tuple[pa.Array, list[str]]:
    days = np.array([one - 1970 for one in YEARS]).astype("M8[Y]").astype("M8[D]")
    most = (2**63 - 1) // {"s": 1, "ms": 1_000, "us": 10**6}[unit] // 86_400
    times = days[np.abs(days.astype(np.int64)) < most].astype(f"M8[{unit}]")
    array = pa.array(times.astype(np.int64)).view(pa.timestamp(unit, zone))
    return array, [str(one) for one in times]


@pytest.mark.parametrize("unit", UNITS)
def test_a_time_is_written_as_numpy_does_in_each_year(unit: str) -> None:
    array, expected = column(unit)
    assert clock_text(array).to_pylist() == [one.replace("T", " ") for one in expected]
    array, expected = column(unit, "UTC")
    assert zoned_text(array).to_pylist() == [f"{one.replace('T', ' ')}Z" for one in expected]


def test_a_null_beside_a_far_date_stays_null() -> None:
    days = pa.array([2**31 - 1, None, 5], pa.int32()).view(pa.date32())
    assert clock_text(days).to_pylist() == ["5881580-07-11", None, "1970-01-06"]
    instants = pa.array([9_223_372_036_828_800_000, None], pa.int64()).view(pa.date64())
    assert clock_text(instants).to_pylist() == ["292278994-08-17", None]


def test_far_times_in_lists_and_structs_are_json() -> None:
    days = pa.array([2**31 - 1, None], pa.int32()).view(pa.date32())
    times = pa.array([2**50, 5], pa.int64()).view(pa.timestamp("s"))
    listed = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), times)
    texts = rows_as_json(
        pa.record_batch({"d": days, "x": pa.StructArray.from_arrays([days, listed], ["a", "l"])})
    )
    far = {"a": "5881580-07-11", "l": ["35680317-09-25T18:57:04"]}
    assert [json.loads(one) for one in texts] == [
        {"d": "5881580-07-11", "x": far},
        {"d": None, "x": {"a": None, "l": ["1970-01-01T00:00:05"]}},
    ]


def test_a_bad_row_is_json_whatever_its_durations() -> None:
    lasts = pa.array([2**62], pa.int64()).view(pa.duration("s"))
    nested = pa.StructArray.from_arrays([lasts], ["a"])
    texts = bad_rows_as_json(pa.record_batch({"d": lasts, "x": nested}))
    assert [json.loads(one) for one in texts] == [{"d": f"{2**62}s", "x": {"a": f"{2**62}s"}}]
