from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.series import MAX_BINS, LatencySeries

SECOND = 10**9
MS = 10**6

rows = st.lists(
    st.tuples(
        st.integers(min_value=-2_000, max_value=2_000).map(lambda second: second * SECOND // 3),
        st.integers(min_value=-5, max_value=10**12),
    ),
    max_size=40,
)


def filled(pairs: list[tuple[int, int]]) -> LatencySeries:
    made = LatencySeries()
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    made.add(array[:, 0], array[:, 1])
    return made


def test_rows_fall_into_the_second_of_their_stimulus() -> None:
    made = filled([(5 * SECOND, 2 * MS), (5 * SECOND + 999 * MS, 8 * MS), (7 * SECOND, MS)])
    assert [(one.start_ns // SECOND, one.count, one.max_ns) for one in made.bins()] == [
        (5, 2, 8 * MS),
        (7, 1, MS),
    ]


@given(rows.filter(bool))
def test_quantiles_are_within_7_percent_and_the_maximum_is_exact(
    pairs: list[tuple[int, int]],
) -> None:
    made = filled(pairs)
    for one in made.bins():
        inside = sorted(
            max(latency, 0)
            for stimulus, latency in pairs
            if one.start_ns <= stimulus < one.start_ns + one.width_ns
        )
        assert (one.count, one.max_ns) == (len(inside), inside[-1])
        for found, q in ((one.p50_ns, 0.5), (one.p99_ns, 0.99)):
            exact = inside[int(np.ceil(q * len(inside))) - 1]
            assert abs(found - exact) <= max(0.07 * exact, 1_100)


@given(rows, st.integers(min_value=0, max_value=40))
def test_cutting_the_rows_into_batches_changes_nothing(
    pairs: list[tuple[int, int]], cut: int
) -> None:
    made = filled(pairs[:cut])
    rest = np.array(pairs[cut:], dtype=np.int64).reshape(-1, 2)
    for row in rest:
        made.add(row[:1], row[1:])
    assert made.to_json() == filled(pairs).to_json()


@given(rows, rows)
def test_merging_is_as_if_all_had_been_added_to_one(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    merged, added = filled(one), filled(other)
    before = added.to_json()
    merged.merge(added)
    assert merged.to_json()["bins"] == filled(one + other).to_json()["bins"]
    assert added.to_json() == before


def test_a_long_run_keeps_its_picture_in_512_bins() -> None:
    made = LatencySeries()
    for minute in range(24 * 60):
        stimulus = (np.arange(60) + 60 * minute + 7) * SECOND
        made.add(stimulus, np.full(60, 3 * MS))
    assert made.width_ns == 256 * SECOND
    assert len(made.bins()) <= MAX_BINS
    assert sum(one.count for one in made.bins()) == 24 * 3600


def test_a_stray_stimulus_time_widens_the_bins_but_loses_nothing() -> None:
    made = filled([(1_700_000_000 * SECOND, MS)])
    made.add(np.array([0]), np.array([MS]))
    assert sum(one.count for one in made.bins()) == 2
    assert len(made.bins()) <= MAX_BINS


@given(rows)
def test_it_survives_json(pairs: list[tuple[int, int]]) -> None:
    plain = filled(pairs).to_json()
    assert LatencySeries.from_json(json.loads(json.dumps(plain))).to_json() == plain


@pytest.mark.parametrize(
    "plain",
    [
        {"width_ns": 3 * SECOND, "bins": []},
        {"width_ns": 0, "bins": []},
        {
            "width_ns": SECOND,
            "bins": [
                {"start_ns": 0, "max_ns": 1, "buckets": [0, 1]},
                {"start_ns": MAX_BINS * SECOND, "max_ns": 1, "buckets": [0, 1]},
            ],
        },
        {"width_ns": SECOND, "bins": [{"start_ns": 0, "max_ns": 1, "buckets": [999, 1]}]},
    ],
)
def test_json_that_is_no_series_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|at most"):
        LatencySeries.from_json(plain)
