"""Casts change no value in silence."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from slackwater.runtime.model.exact_casts import cast_exactly

NOON = datetime.datetime(1970, 1, 1, 12)  # noqa: DTZ001 - no zone


@pytest.mark.parametrize(
    ("values", "to"),
    [
        (pa.array([2, 1]), pa.bool_()),
        (pa.array([0.5]), pa.bool_()),
        (pa.array([None, 1e40]), pa.float32()),
        (pa.array(["1", "1e400"]), pa.float64()),
        (pa.array([NOON], pa.timestamp("ms")), pa.date32()),
        (pa.array([1.9]), pa.int64()),
        (pa.array([300]), pa.int8()),
        (pa.array([500]), pa.decimal128(4, 2)),
    ],
    ids=str,
)
def test_a_value_that_would_change_is_refused(values: pa.Array, to: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast_exactly(values, to)


@pytest.mark.parametrize(
    ("values", "to", "right"),
    [
        ([0, 1, None], pa.bool_(), [False, True, None]),
        ([1.5, float("inf"), None], pa.float32(), [1.5, float("inf"), None]),
        (["1.5", "-inf", None], pa.float64(), [1.5, float("-inf"), None]),
        ([Decimal("1.90"), None], pa.float64(), [1.9, None]),
        ([5, None], pa.decimal128(4, 2), [Decimal("5.00"), None]),
        ([NOON.replace(hour=0), None], pa.date32(), [NOON.date(), None]),
        ([1, 2], pa.int8(), [1, 2]),
    ],
    ids=str,
)
def test_a_value_that_fits_is_taken(values: list[Any], to: pa.DataType, right: list[Any]) -> None:
    assert cast_exactly(pa.array(values), to).to_pylist() == right
