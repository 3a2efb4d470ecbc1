"""[espice] Table 1 and Fig. 2, with the position shares that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.shedding.scales import scaled
from slackwater.runtime.shedding.thresholds import cdt, cdt_of_partitions, cut_of, thresholds

UT = np.array([[70, 15, 10, 5, 0], [0, 60, 30, 10, 0]], np.uint8)
VALUES = [0, 5, 10, 15, 30, 60, 70]


def shares(last: float) -> np.ndarray:
    of_a = np.array([0.8, 0.5, 0.1, 0.2, last])
    return np.stack([of_a, 1 - of_a])


@pytest.mark.parametrize("last", [0.0, 0.3, 1.0])
def test_cdt_is_that_of_figure_2_whatever_comes_last(last: float) -> None:
    found = cdt(UT, shares(last))
    assert found[VALUES] == pytest.approx([1.2, 1.4, 2.3, 2.8, 3.7, 4.2, 5.0])
    steps = np.flatnonzero(np.diff(found, prepend=0) > 1e-9)
    assert steps.tolist() == VALUES


def test_two_events_are_dropped_by_the_threshold_10() -> None:
    found = cdt_of_partitions(UT, shares(0.5), 1)
    assert thresholds(found, 2.0).tolist() == [10]
    assert cut_of(found, 2.0, how="at least").expected == pytest.approx(2.3)


def test_exactly_two_are_dropped_if_two_thirds_of_those_at_the_threshold_are() -> None:
    cut = cut_of(cdt_of_partitions(UT, shares(0.5), 1), 2.0, how="exact")
    assert cut.expected == pytest.approx(2.0)
    assert cut.chances[0, [0, 5, 10, 15]] == pytest.approx([1, 1, 0.6 / 0.9, 0])


@pytest.mark.parametrize(
    ("drop", "threshold"), [(0, -1), (1.2, 0), (1.21, 5), (4.2, 60), (4.21, 70), (5, 70), (6, 100)]
)
def test_a_threshold_is_the_least_that_suffices(drop: float, threshold: int) -> None:
    assert thresholds(cdt_of_partitions(UT, shares(0.5), 1), drop).tolist() == [threshold]


def test_the_rows_of_table_1_sum_up_to_100_so_counts_are_normalized_by_type() -> None:
    assert UT.sum(axis=1).tolist() == [100, 100]
    hits = np.array([[14.0, 3, 2, 1, 0], [0, 6, 3, 1, 0]])
    assert (scaled("type", hits, hits, shares(0.5)) == UT).all()


def test_partitions_have_cdts_that_sum_up_to_that_of_the_window() -> None:
    for partitions in (2, 3, 5, 7):
        found = cdt_of_partitions(UT, shares(0.5), partitions)
        assert found.sum(axis=0) == pytest.approx(cdt(UT, shares(0.5)))
        assert found[:, -1] == pytest.approx(np.full(partitions, 5 / partitions))


def test_a_partition_has_the_threshold_of_its_own_events() -> None:
    # The last fifth of a window is an event of utility 0; the first is A at 70, or B at 0.
    found = cdt_of_partitions(UT, shares(0.5), 5)
    assert thresholds(found, 0.5).tolist() == [70, 15, 30, 10, 0]
