"""Costs of rows that vary: chance does not become a part of each slice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.foresight.observations import StageCost, StageObservations
from slackwater.runtime.foresight.observed.some_rows import BLOCKS
from slackwater.runtime.foresight.query_graph import FloatArray

FIXED_S, ROW_S, SLICE_S = 1e-4, 6e-4, 2e-3


def stage(rows: FloatArray, seconds: FloatArray) -> StageObservations:
    return StageObservations(
        name="a",
        inputs=(),
        rows_in=int(rows.sum()),
        rows_out=int(rows.sum()),
        rows=rows.astype(int).tolist(),
        released=rows.astype(int).tolist(),
        busy_s=seconds.tolist(),
    )


def lengths(count: int = 1_000) -> FloatArray:
    found: list[int] = []
    while sum(found) < count:
        found.append(BLOCKS[len(found) % len(BLOCKS)])
    return np.array(found, dtype=np.float64)


@given(
    kind=st.sampled_from(["even", "exponential", "a few take long", "lognormal"]),
    kept=st.sampled_from([1.0, 0.3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_that_vary_cost_what_they_cost_on_average(kind: str, kept: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.binomial(lengths().astype(int), kept).astype(float)
    rows = rows[rows > 0]
    each = {
        "even": lambda n: np.full(n, ROW_S),
        "exponential": lambda n: rng.exponential(ROW_S, n),
        "a few take long": lambda n: 1e-4 + np.where(rng.random(n) < 0.1, 5e-3, 0.0),
        "lognormal": lambda n: rng.lognormal(np.log(ROW_S) - 0.5, 1.0, n),
    }[kind]
    work_s = np.array([each(int(n)).sum() for n in rows])
    cost = stage(rows, FIXED_S + work_s).cost().in_full_slices(SLICE_S)
    drawn_s = work_s.sum() / rows.sum()
    true_s = StageCost(FIXED_S, drawn_s).in_full_slices(SLICE_S).row_s
    assert true_s / 2.1 < cost.row_s < true_s * 2.1, f"seed {seed}"


def test_the_fixed_part_of_a_slice_is_told_from_its_rows() -> None:
    rows = lengths()
    found = stage(rows, 1e-3 + 5e-6 * rows).cost()
    assert (found.fixed_s, found.row_s) == pytest.approx((1e-3, 5e-6))


def test_the_fixed_part_is_not_far_above_the_shortest_slice() -> None:
    rows = np.array([50.0, 5, 200, 20])
    found = stage(rows, np.array([0.4, 2e-4, 0.1, 0.3])).cost()
    assert found.fixed_s <= 1.3 * 2e-4
    assert found.fixed_s * 4 + found.row_s * rows.sum() == pytest.approx(0.8002, rel=0.01)


def test_messages_without_rows_do_not_bound_the_fixed_part() -> None:
    """A model takes 20 ms whenever it is asked, and is not asked where only promises pass."""
    asked = np.array([50, 5, 200, 20, 500, 10, 100, 2, 50, 5, 200, 20])
    found = StageObservations(
        name="a",
        inputs=(),
        rows_in=1_162,
        rows_out=1_162,
        rows=[*asked.tolist(), 1, 1, 1],
        released=[*asked.tolist(), 0, 0, 0],
        busy_s=[*(0.02 + 5e-6 * asked).tolist(), 5e-5, 5e-5, 5e-5],
    ).cost()
    assert found.fixed_s == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize(
    ("fixed_s", "row_s", "full_s"),
    [
        (1e-4, 1e-5, 1e-5 + 1e-4 / 190),  # 190 rows fit beside it
        (5e-4, 1e-5, 1e-5 + 5e-4 / 200),  # a fifth of a longer slice
        (0.0, 1e-5, 1e-5),
        (0.02, 5e-6, 5e-6 + 0.02 / 1_000),  # it alone is too long: no fewer than 1,000 rows
        (0.02, 1e-3, 2e-3),  # or than take as long
        (5e-4, 0.011, 0.0115),  # nor than one
        (1e-4, 1e-9, 1e-9 + 1e-4 / 65_536),  # no more than the most
        (1e-4, 0.0, 1e-4 / 65_536),
    ],
)
def test_a_row_has_its_share_of_the_fixed_part_of_a_full_slice(
    fixed_s: float, row_s: float, full_s: float
) -> None:
    found = StageCost(fixed_s, row_s).in_full_slices(SLICE_S)
    assert (found.fixed_s, found.row_s) == pytest.approx((0.0, full_s))


def test_a_pair_has_its_share_of_the_fixed_part_as_a_row_has() -> None:
    assert StageCost(5e-4, 1e-5, 3e-6).in_full_slices(SLICE_S).more_s == pytest.approx(3.75e-6)


def test_what_any_slice_takes_is_not_told_from_nothing_by_rows_that_vary() -> None:
    rng = np.random.default_rng(2)
    rows = lengths(4_000)
    work_s = np.array([np.where(rng.random(int(n)) < 0.05, 6e-3, 1e-4).sum() for n in rows])
    seen = stage(rows, FIXED_S + work_s)
    assert seen.cost().fixed_s < FIXED_S / 2  # by chance
    timed = replace(seen, least_fixed_s=FIXED_S).cost()
    assert timed.fixed_s == pytest.approx(FIXED_S, rel=0.1)
    even = replace(stage(rows, 2e-5 + 1e-5 * rows), least_fixed_s=FIXED_S).cost()
    assert even.fixed_s == pytest.approx(2e-5, rel=0.1)  # known well
