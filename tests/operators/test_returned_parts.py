"""Parts of lists, structs and maps that a user returns fit their types, or are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

from slackwater.runtime.expressions.fit import NOT_FITTING, as_column

FRACTION = datetime.datetime(2024, 1, 1, 5, 0, 0, 5, tzinfo=datetime.UTC)


def made(values: Any, kind: pa.DataType) -> list[Any]:
    return list(as_column(values, kind, name="x", who="test").tolist())


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1.5], pa.list_(pa.int8())),
        ([300], pa.list_(pa.int8())),
        ([np.float64(1.9)], pa.large_list(pa.int64())),
        ([1e40], pa.list_(pa.float32())),
        ([1.9, 2.0], pa.list_(pa.int8(), 2)),
        ([[1.9]], pa.list_(pa.list_(pa.int8()))),
        ({"a": 1.9}, pa.struct([("a", pa.int32())])),
        ({"a": 1, "b": 2}, pa.struct([("a", pa.int32())])),
        ({"a": [1e40]}, pa.struct([("a", pa.list_(pa.float32()))])),
        ({"k": 1.9}, pa.map_(pa.string(), pa.int8())),
        ([("k", 1.9)], pa.map_(pa.string(), pa.int8())),
        ([FRACTION], pa.list_(pa.timestamp("s", "UTC"))),
        ([FRACTION], pa.list_(pa.date32())),
        ([FRACTION.time()], pa.list_(pa.time32("s"))),
        ([datetime.timedelta(microseconds=5)], pa.list_(pa.duration("s"))),
        (Decimal(f"1.{'0' * 40}1"), pa.decimal128(38, 20)),
        ([Decimal(f"1.{'0' * 40}1")], pa.list_(pa.decimal128(38, 20))),
    ],
)
def test_a_part_that_its_type_would_change_is_refused(value: Any, kind: pa.DataType) -> None:
    for values in ([value], [None, value]):
        with pytest.raises(NOT_FITTING):
            made(values, kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1e40]), pa.float32()),
        (pa.array([25 * 3_600 * 10**9]), pa.time64("ns")),
        (pa.array([2]), pa.bool_()),
        (pa.array([3402823669209384635]), pa.decimal128(38, 20)),
        (pa.array([FRACTION]), pa.date32()),
        (pa.array([[1e40]]), pa.list_(pa.float32())),
        (pa.array([{"a": 1.5}]), pa.struct([("a", pa.int8())])),
    ],
)
def test_an_arrow_array_changes_no_value(values: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(NOT_FITTING):
        made(values, kind)


def test_a_time_of_day_ends_with_its_day() -> None:
    for values in ([86_400 * 10**9], np.array([-1])):
        with pytest.raises(NOT_FITTING):
            made(values, pa.time64("ns"))


def test_parts_that_fit_are_taken_as_they_are() -> None:
    lists = [[1.0, None], None, [], (2,)]
    assert made(lists, pa.list_(pa.int8())) == [[1, None], None, [], [2]]
    structs = [{"a": 1}, {}, None]
    assert made(structs, pa.struct([("a", pa.int8())])) == [{"a": 1}, {"a": None}, None]
    maps = [{"k": 1}, [("k", None)], None]
    assert made(maps, pa.map_(pa.string(), pa.int8())) == [[("k", 1)], [("k", None)], None]


@pytest.mark.parametrize("null", [None, pandas.NaT, pandas.NA, np.ma.masked], ids=repr)
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("ns"), pa.string()], ids=str)
def test_the_nulls_of_numpy_and_pandas_are_null(null: Any, kind: pa.DataType) -> None:
    column = as_column([null, null], kind, name="x", who="test")
    assert pa.array(column.tolist()).null_count == 2
