"""Order of rows by time and writer: the runs of replicas at a sink."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge.lanes import order_of_writers
from slackwater.runtime.model import stable_order, stable_order_of_pairs

MANY = 3_000

ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=40)


@given(runs=st.lists(ROWS, min_size=1, max_size=3), spread=st.sampled_from([1, 1_000]))
def test_rows_stand_by_time_then_writer_then_as_they_came(
    runs: list[list[tuple[int, int]]], spread: int
) -> None:
    rows = [(time * spread + writer, writer) for run in runs for time, writer in sorted(run)]
    rows += [(time, 3 - writer) for time, writer in rows[:5]]  # ties, whatever the spread
    times, writers = (np.array(column) for column in zip(*rows, strict=True))
    expected = sorted(range(len(rows)), key=lambda n: rows[n])  # Python's sort is stable
    assert order_of_writers(times, writers).tolist() == expected


@given(
    groups=st.integers(1, 4_000),
    keys=st.integers(1, 2_000),
    bits=st.sampled_from([3, 40, 48, 62, 63]),
    repeats=st.booleans(),
    seed=st.integers(0, 99),
)
def test_pairs_have_the_order_of_a_lexsort(
    groups: int, keys: int, bits: int, repeats: bool, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    hashes = drawn.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, keys)
    firsts = np.sort(drawn.integers(0, groups, MANY))
    seconds = hashes.take(drawn.integers(0, keys, MANY)) if repeats else drawn.permutation(MANY)
    expected = np.lexsort((seconds, firsts))
    assert stable_order_of_pairs(firsts, seconds).tolist() == expected.tolist()


@given(
    rows=st.integers(0, 2_000),
    late=st.floats(0, 1),
    far=st.sampled_from([1, 50, 10**6, 2**61]),
    seed=st.integers(0, 99),
)
def test_rows_have_the_order_of_a_stable_argsort(
    rows: int, late: float, far: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    times = np.arange(rows) // 3
    times = np.where(drawn.random(rows) < late, times - drawn.integers(0, far, rows), times)
    assert stable_order(times).tolist() == times.argsort(kind="stable").tolist()
