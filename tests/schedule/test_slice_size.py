"""How long slices become, by what a fixed part and the rows of a stage cost."""

from __future__ import annotations

import random

import pytest

from slackwater.runtime.config import Limits
from slackwater.runtime.foresight.observations import StageCost
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.slice_size import MOST_GROWTH, SOURCE_GROWTH, SliceSize

US, MS = 1_000, 1_000_000


def new_size(longest_ns: int = Limits().longest_slice_ns) -> SliceSize:
    return SliceSize(Limits(), longest_ns=longest_ns)


def settled(
    fixed_ns: float,
    row_ns: float,
    *,
    slices: int = 60,
    hiccups: int = 0,
    scatter: float = 0.0,
    seed: int = 0,
    longest_ns: int = Limits().longest_slice_ns,
) -> list[tuple[int, int]]:
    """Return (rows, time) of each slice of a stage that always has as many rows as it may take."""
    size, chance, found = new_size(longest_ns), random.Random(seed), []  # noqa: S311 - no secret
    for _ in range(slices):
        took_ns = (fixed_ns + row_ns * size.rows) * max(1 + scatter * chance.gauss(0, 1), 0.2)
        if hiccups and chance.randrange(100) < hiccups:
            took_ns += chance.randrange(30 * MS)
        found.append((size.rows, round(took_ns)))
        size.took(size.rows, round(took_ns))
    return found


def cost_of(slices: list[tuple[int, int]], fixed_ns: float, row_ns: float) -> float:
    """Return the cost of a row, without hiccups and scatter, as a multiple of its own."""
    rows = sum(own for own, _ in slices)
    return (fixed_ns * len(slices) + row_ns * rows) / (row_ns * rows)


def test_cheap_rows_soon_fill_the_longest_slice() -> None:
    rows = [one for one, _ in settled(50 * US, 10)]
    assert rows[:5] == [64, 256, 1_024, 4_096, 16_384]
    assert rows[5] == Limits().max_slice_rows


def test_rows_beyond_the_line_are_tried_some_times_as_many_at_once() -> None:
    size = new_size()
    size.took(64, MS)
    assert size.rows == 128, "64 rows alone tell no fixed part"
    size.took(128, MS)
    assert size.rows == MOST_GROWTH * 128


def test_the_third_slice_of_a_source_is_as_long_as_its_line_says() -> None:
    size = SliceSize(Limits(), longest_ns=20 * MS, most_growth=SOURCE_GROWTH)
    size.took(64, MS + 64 * 100)
    assert size.rows == 128, "64 rows alone tell no fixed part"
    size.took(128, MS + 128 * 100)
    assert size.rows == SOURCE_GROWTH * 128
    size.took(size.rows, MS + size.rows * 100)
    assert size.rows == pytest.approx(4 * MS / 100, rel=0.01)


@pytest.mark.parametrize("row_ms", [1.5, 5, 40])
def test_a_function_that_takes_milliseconds_for_a_row_gets_few_at_a_time(row_ms: float) -> None:
    row_ns = int(row_ms * MS)
    took = [took_ns for _, took_ns in settled(50 * US, row_ns)]
    assert max(took[6:]) <= 3 * row_ns
    assert sum(took[:6]) < 64 * row_ns + 40 * row_ns


@pytest.mark.parametrize("fixed_ms", [0.5, 1, 1.9, 3, 9, 30])
def test_a_long_fixed_part_is_paid_for_many_rows(fixed_ms: float) -> None:
    """A model that takes 30 ms for any batch must not be asked for one row at a time."""
    rows = [one for one, _ in settled(int(fixed_ms * MS), 100)][20:]
    few = [one for one in rows if one < Limits().min_slice_rows / 2]  # short ones, to tell the line
    assert len(few) <= len(rows) / 10, rows


@pytest.mark.parametrize("row_us", [5, 150, 1_000, 2_200, 11_500])
@pytest.mark.parametrize("fixed_ms", [0.2, 0.9, 1.9, 3.3, 20])
def test_a_row_costs_in_a_backlog_what_is_predicted_of_full_slices(
    fixed_ms: float, row_us: float
) -> None:
    """A model of 3 ms got 8, 16, 32, 8 … rows at a time, and a tenth more time than was said."""
    slices = settled(int(fixed_ms * MS), int(row_us * US), slices=200)[50:]
    took_s = sum(took_ns for _, took_ns in slices) / sum(rows for rows, _ in slices) / 1e9
    full_s = StageCost(fixed_ms / 1e3, row_us / 1e6).in_full_slices(Limits().slice_ns / 1e9).row_s
    assert took_s == pytest.approx(full_s, rel=0.13), slices[-6:]


def test_a_model_that_was_asked_for_single_rows_is_asked_for_many_in_a_burst() -> None:
    size = new_size()
    for _ in range(10):
        size.took(1, 20 * MS)
    for _ in range(12):
        size.took(size.rows, 20 * MS + 5 * US * size.rows)
    assert size.rows >= Limits().min_slice_rows / 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("fixed_ms", "row_ns"),
    [(0.05, 107), (0.92, 107), (0.92, 5_000), (2, 250), (3.3, 250), (3.3, 150_000)],
)
def test_a_fixed_part_is_a_fifth_of_full_slices_at_most(
    fixed_ms: float, row_ns: int, seed: int
) -> None:
    """On a machine whose other work makes three slices in ten longer: they stayed at 1,024 rows."""
    fixed_ns = fixed_ms * MS
    slices = settled(fixed_ns, row_ns, slices=400, hiccups=30, scatter=0.15, seed=seed)[40:]
    assert cost_of(slices, fixed_ns, row_ns) <= 1.3, slices[-6:]


@pytest.mark.parametrize("fixed_ms", [0.2, 0.92, 3.3, 9])
def test_no_full_slice_is_longer_than_the_longest(fixed_ms: float) -> None:
    took = [took_ns for _, took_ns in settled(fixed_ms * MS, 107, longest_ns=5 * MS)]
    assert max(took[15:]) <= max(5 * MS, 2 * fixed_ms * MS) * 1.05


def test_rows_that_have_waited_get_a_longer_slice() -> None:
    size = new_size()
    for _ in range(40):
        size.took(size.rows, 100 * US + 107 * size.rows)
    usual = (2 * MS - 100 * US) / 107
    assert size.within(2 * MS) == size.rows == pytest.approx(usual, rel=0.02)
    assert size.within(3 * MS) == pytest.approx((3 * MS - 100 * US) / 107, rel=0.02)
    assert size.within(20 * MS) == 2 * size.rows, "at most twice what was tried"


def test_a_short_slice_says_nothing_of_the_longest() -> None:
    """At the speed of the clock a row costs its fixed part; a burst is not cut by that."""
    size = new_size()
    for _ in range(40):
        size.took(size.rows, 50 * US + 10 * size.rows)
    rows = size.rows
    for _ in range(1_000):
        size.took(1, 60 * US)
    assert size.rows == rows


def test_it_goes_on_from_a_snapshot_as_it_would_have() -> None:
    one, other = new_size(), new_size()
    for took_ns in (MS, 20 * MS, 5 * MS):
        one.took(one.rows, took_ns)
    restore(other, save(one))
    for took_ns in (9 * MS, MS, 3 * MS):
        one.took(one.rows, took_ns)
        other.took(other.rows, took_ns)
        assert save(other) == save(one)


def test_short_slices_of_a_slow_stream_do_not_shorten_the_next() -> None:
    size = new_size()
    for _ in range(40):
        size.took(5, 100 * US)
    assert size.rows == 64
