"""Orders and running maxima of many numbers are those of NumPy, however late rows are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.divided import distinct
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.order.newest import running_max


@given(
    st.integers(1, 2_000),
    st.integers(0, 50),
    st.sampled_from([1, 64, 1_000]),
    st.sampled_from([0.0, 0.01, 0.2, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_many_numbers_are_sorted_as_numpy_sorts_them(
    rows: int, bits: int, unit: int, late: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.integers(-(2**bits), 2**bits, rows)) * unit
    places = (rng.random(rows) < late).nonzero()[0]
    numbers[places] = rng.permutation(numbers[places])
    assert stable_order(numbers).tolist() == numbers.argsort(kind="stable").tolist()
    before = numbers.item(rng.integers(rows))
    expected = np.maximum(np.maximum.accumulate(numbers), before)
    assert running_max(numbers, before).tolist() == expected.tolist()
    codes = rng.integers(0, 99, rows)
    assert distinct(codes).tolist() == np.unique(codes).tolist()
