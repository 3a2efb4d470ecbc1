"""Literals that are times of NumPy and pandas: far ones, coarse units, and none at all."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.literals import read_literal
from slackwater.runtime.model import batch_of

WHEN = sw.col("w")
FAR: list[Any] = [
    np.datetime64("3000-01-01"),
    np.datetime64("3000-01"),
    np.datetime64(10**15, "s"),
    np.datetime64(2**62, "Y"),
    datetime.datetime(3000, 1, 1),  # noqa: DTZ001 - it is UTC
]


@pytest.mark.parametrize("far", FAR, ids=repr)
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_far_time_is_after_all_others(far: Any, unit: str) -> None:
    schema = pa.schema([("w", pa.timestamp(unit))])
    rows = batch_of([0, 1], {"w": np.array([0, 10**9])})
    for expression, right in ((far > WHEN, True), (WHEN.is_in([far]), False), (far < WHEN, False)):
        assert expression.bound(schema).evaluate(rows).tolist() == [right, right]


@pytest.mark.parametrize("far", FAR, ids=repr)
def test_a_far_time_is_compared_only(far: Any) -> None:
    schema = pa.schema([("w", pa.timestamp("ns"))])
    for expression in (WHEN - far, WHEN.fill_null(far), sw.lit(far), sw.where(far > WHEN, far, 0)):
        with pytest.raises(TypeMismatch, match=r"is beyond nanoseconds, 1677 to 2262"):
            expression.type_in(schema, step="s")


@given(
    st.integers(-(10**6), 10**6),
    st.sampled_from(["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s", "3M"]),
)
def test_a_time_of_numpy_is_numpys_own_where_it_fits(whole: int, unit: Any) -> None:
    time = np.datetime64(whole, unit)
    seconds = int(time.astype("datetime64[s]").astype(np.int64))
    assert read_literal(time)[0] // 10**9 == seconds  # type: ignore[operator]


@pytest.mark.parametrize(
    "none", [np.datetime64("NaT"), np.datetime64("NaT", "s"), np.timedelta64("NaT", "s"), pd.NaT]
)
def test_no_time_is_refused_with_the_way_out(none: Any) -> None:
    with pytest.raises(TypeMismatch, match=r"is not a time; to ask whether it is null"):
        sw.lit(none)


def test_a_length_of_numpy_is_counted_in_nanoseconds() -> None:
    assert read_literal(np.timedelta64(2, "W"))[0] == 14 * 86_400 * 10**9
    assert read_literal(np.timedelta64(5_000, "ps"))[0] == 5
    for wrong in (np.timedelta64(1, "Y"), np.timedelta64(1, "M"), datetime.timedelta(10**8)):
        with pytest.raises(TypeMismatch, match=r"fixed length|must be less than 292 years"):
            sw.lit(wrong)
