"""Rounding of floats: as Python rounds each."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.expressions.function import Call, Operand
from slackwater.runtime.expressions.whole import rounded

FLOATS = st.floats(allow_nan=True, allow_infinity=True)


def one(value: float, digits: int, dtype: npt.DTypeLike = np.float64) -> float:
    values = np.array([value], dtype)
    kind = pa.from_numpy_dtype(values.dtype)
    return float(np.asarray(rounded(Call((Operand(kind),), digits, kind))(values))[0])


@pytest.mark.parametrize(
    ("value", "digits", "right"),
    [
        (2.5, 0, 2.0),
        (3.5, 0, 4.0),
        (1e307, 2, 1e307),
        (123456789012345.678, 10, 123456789012345.678),
        (0.1, 309, 0.1),
        (5.5, -309, 0.0),
        (1.7e308, -308, math.inf),
        (-1250.0, -2, -1200.0),
        (-math.inf, 2, -math.inf),
        (math.nan, 2, math.nan),
    ],
)
def test_a_float_is_rounded_or_stays(value: float, digits: int, right: float) -> None:
    np.testing.assert_equal(one(value, digits), right)


def test_float32_is_rounded_in_float64() -> None:
    assert one(3e38, 1, np.float32) == np.float32(3e38)
    assert one(1.25, 40, np.float32) == 1.25
    assert one(2.675, 2, np.float32) == np.float32(2.67)  # 2.67499995 is its value


@pytest.mark.parametrize(
    ("value", "digits"),
    [(0.285, 2), (1.005, 2), (2.675, 2), (0.125, 2), (-0.375, 2), (1e15 + 0.3, 1), (25.0, -1)],
)
def test_a_float_near_a_half_is_rounded_as_by_python(value: float, digits: int) -> None:
    assert one(value, digits) == round(value, digits)


@pytest.mark.parametrize("digits", [-20, -21, -(10**30)])
def test_whole_numbers_rounded_to_a_power_beyond_64_bits_are_zero(digits: int) -> None:
    values = np.array([2**63 - 1, -(2**63), 5], np.int64)
    kernel = rounded(Call((Operand(pa.int64()),), digits, pa.int64()))
    np.testing.assert_array_equal(kernel(values), [0, 0, 0])


HALVES = st.builds(
    lambda whole, digits: (whole + 0.5) / 10**digits, st.integers(), st.integers(0, 22)
)
SIGNIFICANT = st.builds(lambda whole, digits: whole / 10**digits, st.integers(), st.integers(0, 22))


@given(
    FLOATS | HALVES.filter(math.isfinite) | SIGNIFICANT, st.integers(-330, 330) | st.integers(0, 9)
)
def test_each_float_is_rounded_as_by_python(value: float, digits: int) -> None:
    try:
        exact = round(value, digits)
    except OverflowError:
        exact = math.copysign(math.inf, value)
    np.testing.assert_equal(one(value, digits), exact)
