from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.histogram import LatencyHistogram

ONE_US = 1_000
TEN_HOURS_NS = 36_000 * 10**9

latencies = st.lists(
    st.integers(min_value=0, max_value=40).flatmap(
        lambda power: st.integers(min_value=0, max_value=1 << power)
    ),
    max_size=60,
)
quantiles = st.floats(min_value=0, max_value=1)


def filled(values: list[int]) -> LatencyHistogram:
    made = LatencyHistogram()
    made.add(np.array(values, dtype=np.int64))
    return made


def exact_quantile(values: list[int], q: float) -> int:
    rank = max(1, int(np.ceil(q * len(values))))
    return sorted(values)[rank - 1]


@given(latencies.filter(bool), quantiles)
def test_every_quantile_is_within_one_percent_of_the_exact_one(values: list[int], q: float) -> None:
    exact = exact_quantile(values, q)
    assert abs(filled(values).quantile(q) - exact) <= max(0.01 * exact, 1 if exact < 2 else 0)


@pytest.mark.parametrize("exact", [ONE_US, 999_999, 123_456_789, TEN_HOURS_NS, 2**63 - 1])
def test_the_error_stays_below_one_percent_over_the_whole_range(exact: int) -> None:
    spread = filled([0, exact, exact, exact, 2**63 - 1])
    assert abs(spread.quantile(0.5) - exact) <= 0.01 * exact


@given(latencies)
def test_count_sum_min_and_max_are_exact(values: list[int]) -> None:
    made = filled(values)
    assert (made.count, made.sum_ns) == (len(values), sum(values))
    assert (made.min_ns, made.max_ns) == (min(values, default=0), max(values, default=0))


def test_the_sum_is_exact_even_where_int64_would_overflow() -> None:
    assert filled([2**62, 2**62, 2**62]).sum_ns == 3 * 2**62


def test_negative_latencies_count_as_zero_and_are_told() -> None:
    made = filled([-5, -(2**63), 7])
    assert (made.below_zero, made.count, made.sum_ns, made.min_ns, made.max_ns) == (2, 3, 7, 0, 7)
    assert made.quantile(0.5) <= 1, "0 and 1 ns share a bucket"


@given(latencies, latencies)
def test_merging_is_as_if_all_had_been_added_to_one(one: list[int], other: list[int]) -> None:
    merged = filled(one)
    merged.merge(filled(other))
    assert merged.to_json() == filled(one + other).to_json()


@given(latencies, latencies)
def test_the_difference_of_two_states_is_what_came_between(
    before: list[int], after: list[int]
) -> None:
    recent = filled(before + after).since(filled(before))
    assert (recent.count, recent.sum_ns) == (len(after), sum(after))
    if after:
        exact = exact_quantile(after, 0.5)
        assert abs(recent.quantile(0.5) - exact) <= max(0.01 * exact, 1 if exact < 2 else 0)
        assert recent.min_ns <= min(after) <= max(after) <= recent.max_ns


@given(latencies)
def test_it_survives_json(values: list[int]) -> None:
    plain = filled([*values, -1]).to_json()
    assert LatencyHistogram.from_json(json.loads(json.dumps(plain))).to_json() == plain


def test_an_empty_one_answers_zero_and_survives_json() -> None:
    empty = LatencyHistogram.from_json(LatencyHistogram().to_json())
    assert (empty.quantile(0.5), empty.min_ns, empty.max_ns, empty.sum_ns) == (0, 0, 0, 0)
    empty.merge(filled([5]))
    assert (empty.min_ns, empty.max_ns) == (5, 5)


@pytest.mark.parametrize(
    "change",
    [{"buckets": [99_999, 1]}, {"buckets": [-1, 1]}, {"buckets": [3, 2]}, {"buckets": [3]}],
)
def test_json_that_is_no_histogram_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        LatencyHistogram.from_json({**filled([7]).to_json(), **change})


def test_a_quantile_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.99 is the p99"):
        filled([1]).quantile(99)


def test_it_holds_no_more_than_64_kib_however_many_rows() -> None:
    made = LatencyHistogram()
    for power in range(63):
        made.add(np.full(1_000, 1 << power, dtype=np.int64))
    held = sum(sys.getsizeof(getattr(made, name)) for name in LatencyHistogram.__slots__)
    assert held <= 64 * 1024
