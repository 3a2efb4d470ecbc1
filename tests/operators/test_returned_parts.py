"""Parts of lists, structs and maps that a user returns fit their types, or are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

import slackwater as sw
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


MASKED = np.ma.array([1, 2, 3], mask=[False, True, False])


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (MASKED, pa.list_(pa.int64()), [1, None, 3]),
        ([1, np.ma.masked, pandas.NA], pa.list_(pa.int64()), [1, None, None]),
        (np.ma.array([1.5, 2.5], mask=True), pa.list_(pa.float64()), [None, None]),
        ({"a": np.ma.masked, "b": MASKED}, None, {"a": None, "b": [1, None, 3]}),
        ({"a": np.ma.array(7, mask=True), "b": (pandas.NaT,)}, None, {"a": None, "b": [None]}),
        (np.ma.array([[1, 2]], mask=[[True, False]]), pa.list_(pa.list_(pa.int8())), [[None, 2]]),
        ([MASKED], pa.list_(pa.list_(pa.int64()), 1), [[1, None, 3]]),
        ({"k": MASKED}, pa.map_(pa.string(), pa.list_(pa.int64())), [("k", [1, None, 3])]),
    ],
)
def test_what_is_masked_in_a_part_is_null(value: Any, kind: Any, expected: Any) -> None:
    kind = kind or pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    assert made([value, None], kind) == [expected, None]


def test_a_masked_time_in_a_list_is_null_in_every_unit() -> None:
    for unit in ("ns", "s"):
        days = np.array(["2024-01-01", "2024-01-02"], f"M8[{unit}]")
        times = np.ma.array(days, mask=[True, False])
        alone = made(times, pa.timestamp(unit))
        assert [one is None for one in alone] == [True, False]
        said = made([times], pa.list_(pa.timestamp(unit)))
        assert [None if one is None else str(one)[:10] for one in said[0]] == [None, "2024-01-02"]


def test_what_is_masked_in_a_table_is_null() -> None:
    source = sw.table({"t": [1, 2], "m": MASKED[:2], "l": [MASKED, None], "d": [{"a": MASKED}] * 2})
    (block,) = source.parts
    whole = [1, None, 3]
    assert block.drop_columns("t").to_pylist() == [
        {"m": 1, "l": whole, "d": {"a": whole}},
        {"m": None, "l": None, "d": {"a": whole}},
    ]
