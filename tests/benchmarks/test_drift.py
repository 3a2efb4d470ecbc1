"""Clock errors that are drawn are those that the thesis bounds; windows offline are plain means."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.order.clock_errors import error_ns
from benchmarks.order.drift_windows import PAPER_MEAN, PAPER_MIDDLE, WINDOW_NS, offline


@pytest.mark.parametrize("drift_ns", [0, 5_000_000, -7])
@pytest.mark.parametrize(("there", "error"), [(0.0, -62_500), (0.5, 0), (1.0, 62_500)])
def test_an_error_is_half_of_what_the_two_ways_differ_by_whatever_the_drift(
    drift_ns: int, there: float, error: int
) -> None:
    """[thesis] Eq. 3.14, at T_a of 0.125 ms."""
    assert error_ns(drift_ns=drift_ns, round_trip_ns=125_000, there=there) == error


def test_the_offline_query_takes_whole_windows_only_and_rows_that_were_moved() -> None:
    like = np.array([5, WINDOW_NS + 1, 2 * WINDOW_NS - 1, 2 * WINDOW_NS, 3 * WINDOW_NS])
    speed = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert offline(like, speed, like=like).tolist() == [3.0, 8.0]
    assert offline(like - 6, speed, like=like).tolist() == [6.0, 16.0]


def test_the_papers_tables_are_copied_right() -> None:
    """[thesis] §5.2.3.1: the deviation is reduced by about 50 %."""
    middle, mean = (np.abs(one).mean() for one in (PAPER_MIDDLE, PAPER_MEAN))
    assert (round(middle, 3), round(mean, 3)) == (0.704, 0.286)
