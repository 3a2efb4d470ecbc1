"""Exchanges whose delays are drawn: what they show of a clock is true within its bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.order.clock_drift import older
from benchmarks.order.exchanges import EVERY_NS, measured

SECOND = 10**9


@given(st.integers(0, 2**32), st.sampled_from([0, 10**6, -(10**7), 3_600 * SECOND]))
def test_the_truth_is_within_the_bound_at_any_time(seed: int, ahead_ns: int) -> None:
    known = measured(np.random.default_rng(seed), ahead_ns=ahead_ns, until_ns=3 * EVERY_NS)
    times_ns = np.linspace(0, 3 * EVERY_NS, 50).astype(np.int64)
    offset_ns, bound_ns = known.at(times_ns)
    assert (np.abs(offset_ns + ahead_ns) <= bound_ns).all()
    assert known.from_ns[0] <= 0
    assert len(known.from_ns) >= 4


def test_a_bound_grows_until_the_next_round() -> None:
    known = measured(np.random.default_rng(1), ahead_ns=0, until_ns=2 * EVERY_NS)
    first = int(known.from_ns[1])
    _, bound_ns = known.at(np.array([first, first + EVERY_NS // 2]))
    assert bound_ns[1] - bound_ns[0] == pytest.approx(500_000, abs=2)  # 100 ppm of 5 s


def test_a_row_is_older_than_any_before_it_not_just_than_its_neighbour() -> None:
    assert older(np.array([1, 5, 2, 3, 4, 6])) == 3
