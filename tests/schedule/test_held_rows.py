"""Rows that a sink holds for a checkpoint."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.batch import Batch, batch_of
from slackwater.runtime.schedule.held_rows import SMALL_ROWS, TOGETHER, HeldRows


def values(batches: list[Batch]) -> list[int]:
    return [value for batch in batches for value in np.asarray(batch.columns["n"]).tolist()]


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_rows_leave_with_their_checkpoint_in_order_and_in_few_batches(
    seed: int, batches: int
) -> None:
    rng, held = Random(seed), HeldRows()  # noqa: S311
    given_rows, cuts, leaving = 0, [], []
    for _ in range(batches):
        rows = rng.choice([1, 2, SMALL_ROWS])
        numbers = list(range(given_rows, given_rows + rows))
        held.add(batch_of(numbers, {"n": numbers}), is_end=False)
        given_rows += rows
        if rng.random() < 0.02:
            cuts.append(given_rows)
            held.cut(len(cuts))
        if cuts and rng.random() < 0.02:
            released, _ = held.release(len(cuts))
            leaving += values(released)
            assert len(leaving) == cuts[-1]
    held.cut(len(cuts) + 1)
    released, has_ended = held.release(len(cuts) + 1)
    leaving += values(released)
    assert leaving == list(range(given_rows))
    assert not has_ended


def test_a_thousand_rows_that_come_alone_are_few_batches() -> None:
    held = HeldRows()
    for number in range(1_000):
        held.add(batch_of([number], {"n": [number]}), is_end=False)
    held.cut(1)
    released, _ = held.release(1)
    assert len(released) < 1_000 / TOGETHER + TOGETHER
    assert values(released) == list(range(1_000))
