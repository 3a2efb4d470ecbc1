"""Orders and running maxima of many numbers are those of NumPy, however late rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.runtime.model.divided import distinct
from slackwater.runtime.model.stable_order import lexical_order, stable_order
from slackwater.runtime.order.newest import NewestByRow, running_max


@given(
    st.integers(1, 2_000),
    st.integers(0, 50),
    st.sampled_from([1, 64, 1_000]),
    st.sampled_from([0.0, 0.01, 0.2, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_many_numbers_are_sorted_as_numpy_sorts_them(
    rows: int, bits: int, unit: int, late: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.integers(-(2**bits), 2**bits, rows)) * unit
    places = (rng.random(rows) < late).nonzero()[0]
    numbers[places] = rng.permutation(numbers[places])
    assert stable_order(numbers).tolist() == numbers.argsort(kind="stable").tolist()
    before = numbers.item(rng.integers(rows))
    expected = np.maximum(np.maximum.accumulate(numbers), before)
    assert running_max(numbers, before).tolist() == expected.tolist()
    codes = rng.integers(0, 99, rows)
    assert distinct(codes).tolist() == np.unique(codes).tolist()


@given(
    st.integers(1, 20_000),
    st.sampled_from([1, 40, 1_000, 50_000]),
    st.sampled_from([0.0, 0.001, 0.1, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_the_newest_by_row_is_that_of_each_row_whichever_is_asked_for(
    rows: int, disorder: int, late: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    times = np.arange(rows) * 3 - (rng.random(rows) < late) * rng.integers(0, disorder, rows)
    before = int(rng.integers(-disorder, rows))
    expected = np.maximum(np.maximum.accumulate(times), before)
    newest = NewestByRow(times, before)
    some_rows = rng.integers(0, rows, 20).tolist()
    assert [newest[row] for row in some_rows] == [expected.item(row) for row in some_rows]
    assert (newest.last, len(newest)) == (expected.item(-1), rows)
    assert newest.all().tolist() == expected.tolist()
    # A promise: no row may be older than what the row before it says.
    lag, least = int(rng.integers(0, 2 * disorder)), before - int(rng.integers(0, 2 * disorder))
    promised = np.maximum(expected - lag, least)
    lagging = NewestByRow(times, before).lagging(lag, least)
    is_none_older = bool((times >= np.append(least, promised[:-1])).all())
    assert lagging.is_none_older() == is_none_older
    assert [lagging[row] for row in some_rows] == [promised.item(row) for row in some_rows]
    assert lagging.last == promised[-1]
    assert lagging.all().tolist() == promised.tolist()


def test_a_row_that_is_a_nanosecond_too_old_is_found_among_many_out_of_order() -> None:
    rng = np.random.default_rng(1)
    times = np.arange(20_000) - rng.integers(0, 1_001, 20_000)
    newest = np.maximum.accumulate(times)
    assert NewestByRow(times, -5_000).lagging(1_000, -5_000).is_none_older()
    for row in (1, 7_777, 7_808, 19_999):
        late = times.copy()
        late[row] = newest[row - 1] - 1_001
        assert not NewestByRow(late, -5_000).lagging(1_000, -5_000).is_none_older()
        late[row] += 1
        assert NewestByRow(late, -5_000).lagging(1_000, -5_000).is_none_older()


@given(
    rows=st.sampled_from([0, 1, 700, 1_500, 3_000]),
    kinds=st.lists(st.sampled_from(["few", "many", "far", "rising", "bool", "float"]), min_size=1),
    seed=st.integers(0, 10**6),
)
@example(rows=3_000, kinds=["rising", "bool"], seed=53)  # only the first key has no order of ties
def test_rows_by_several_keys_have_the_order_of_a_lexsort(
    rows: int, kinds: list[str], seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    keys: dict[str, npt.NDArray[Any]] = {
        "few": drawn.integers(-3, 3, rows),
        "many": drawn.integers(0, 10**6, rows),
        "far": drawn.integers(-(2**63), 2**63 - 1, rows),
        "rising": np.arange(rows) // 4,
        "bool": drawn.random(rows) < 0.5,
        "float": drawn.choice(np.array([0.5, -0.0, 0.0, np.nan, -np.inf]), rows),
    }
    chosen = [keys[kind] for kind in kinds]
    expected = np.lexsort(chosen)
    assert lexical_order(chosen).tolist() == expected.tolist()
    some = lexical_order(chosen, keeps_equals=False)
    assert sorted(some.tolist()) == list(range(rows))
    for key in chosen:
        is_float = key.dtype.kind == "f"
        assert np.array_equal(key.take(some), key.take(expected), equal_nan=is_float)
