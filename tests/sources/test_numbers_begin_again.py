"""Numbers that begin again: after the last that their bits can tell, and after a restart."""

from __future__ import annotations

import pytest

from tests.sources.test_numbered_sources import counts, numbered
from tests.support.sources import drain, times


@pytest.mark.parametrize(
    ("bits", "max_rows"), [(8, 1), (8, 7), (8, 10_000), (10, 10_000), (16, 100_000)]
)
def test_numbers_of_few_bits_in_one_block_keep_their_order(bits: int, max_rows: int) -> None:
    # A block spans the number space several times, with neighbours swapped half a turn from 0.
    half, rows = 1 << (bits - 1), 5 << (bits - 1)
    order = list(range(rows))
    for place in range(half - 1, rows - 1, half):
        order[place], order[place + 1] = order[place + 1], order[place]
    numbers = [row % (1 << bits) for row in order]
    at = list(range(rows))
    source = numbered(numbers, at, t=order, wraps=bits, restart="added")
    assert times(drain(source, max_rows=max_rows)) == sorted(order)
    assert counts(source) == {}


def test_a_restart_within_a_second_of_a_coarse_clock_loses_no_row() -> None:
    numbers = [*range(560), *range(440)]  # a hundred a second, that begin again at 0
    times_ns = [row // 100 for row in range(1000)]
    source = numbered(numbers, list(range(1000)), t=times_ns, restart="added")
    assert times(drain(source, max_rows=50)) == times_ns
    assert counts(source) == {"renumbered": 1}


def test_rows_around_a_restart_of_a_coarse_clock_are_told_apart() -> None:
    # 99 was overtaken by the restart, 3 and 60 come once more, 98 does too.
    numbers = [*range(99), 0, 99, 1, 2, 3, 3, 4, 98, *range(5, 60)]
    times_ns = [*[number // 30 for number in range(99)], *[3] * 8, *[4] * 55]
    source = numbered(numbers, list(range(len(numbers))), t=times_ns, restart="added")
    left = times(drain(source, max_rows=10))
    assert left == [*[number // 30 for number in range(99)], *[3] * 5, *[4] * 55]
    assert counts(source) == {"late_dropped": 2, "duplicates": 1, "renumbered": 1}


def test_events_of_one_tick_that_come_shuffled_or_twice_are_no_restart() -> None:
    source = numbered([5, 3, 6, 8, 7, 7, 9, 8], list(range(8)), t=[7, 7, 7, 8, 8, 8, 8, 8])
    assert times(drain(source, max_rows=3)) == [7, 7, 8, 8, 8]
    assert counts(source) == {"late_dropped": 1, "duplicates": 2}
