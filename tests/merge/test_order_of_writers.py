"""Order of rows by time and writer: the runs of replicas at a sink."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge.lanes import order_of_writers

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
