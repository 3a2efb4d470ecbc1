"""The timeout of Eq. 3.1-3.11: by hand, and the same however arrivals are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.timeout import Timeout

MOST = 1_000


def timeout(alpha: float = 0.6, beta: float = 0.6) -> Timeout:
    return Timeout(MOST, alpha=alpha, beta=beta)


def test_the_time_between_events_is_smoothed_with_the_old_value_weighing_alpha() -> None:
    one = timeout()
    told = []
    for arrival in (0, 10, 20, 36, 40):
        one.came_in_order([arrival])
        told.append(one.inter_ns)
    # t_avg 10, 10, 12.4, 9.04; t_dev -, 0, 1.44, 0.864 + 2.016 (Eq. 3.2 to 3.5)
    assert told == [None, 10.0, 10.0, pytest.approx(15.28), pytest.approx(9.04 + 2 * 2.88)]


def test_the_first_deviation_is_no_weighed_one_and_never_below_zero() -> None:
    one = timeout()
    one.came_in_order([0, 10, 15])  # t_avg 8, and 5 is 3 below it: Eq. 3.5 would say −3
    assert one.inter_ns == 8 + 2 * 3


def test_what_events_waited_is_smoothed_with_the_old_value_weighing_beta() -> None:
    one = timeout(beta=0.75)
    assert one.buffer_ns == 0
    one.waited([40])  # Eq. 3.9
    assert one.buffer_ns == 40
    one.waited([20])  # t_buffer-avg 35, deviation 15: Eq. 3.7, 3.10
    assert one.buffer_ns == 35 + 2 * 15
    one.waited([51])  # 39, and 0.75 · 15 + 12 · 0.25: Eq. 3.8
    assert one.buffer_ns == 39 + 2 * 14.25


def test_the_timeout_is_the_larger_of_both_and_at_most_the_users() -> None:
    one = timeout()
    assert one.timeout_ns == MOST, "nothing is known yet"
    one.came_in_order([0, 10, 20])
    assert one.timeout_ns == 10
    one.waited([70])
    assert one.timeout_ns == 70
    one.waited([90_000])
    assert one.timeout_ns == MOST


@given(
    st.lists(st.integers(0, 10**9), max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
    st.floats(0, 0.99),
)
def test_however_arrivals_are_cut_the_timeout_after_each_is_the_same(
    steps: list[int], cuts: list[int], alpha: float
) -> None:
    arrivals = [sum(steps[: n + 1]) for n in range(len(steps))]
    whole, told = timeout(alpha), []
    for arrival in arrivals:
        whole.came_in_order([arrival])
        told.append(whole.timeout_ns)
    parts, again = timeout(alpha), []
    bounds = [0, *sorted(cuts), len(arrivals)]
    for start, stop in itertools.pairwise(bounds):
        again += parts.came_in_order_each(arrivals[start:stop]).tolist()
        after = timeout(alpha)
        restore(after, save(parts))
        parts = after
    assert again == told
