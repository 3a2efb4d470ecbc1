"""Which windows are tried, and what they say of those that are not."""

from __future__ import annotations

from random import Random
from statistics import fmean, stdev

import pytest

from slackwater.runtime.model.state import restore, save
from slackwater.runtime.shedding.counts import SheddingCounts
from slackwater.runtime.shedding.losses import Losses
from slackwater.runtime.shedding.probes import ONE_OF, Probes, affordable_one_of, is_quick_to_judge
from tests.support.states import canonical


def test_one_window_of_each_stride_is_tried_wherever_it_lies() -> None:
    """One each 10 rows, of 200 rows; whatever is read at a time, blocks are the same."""
    found = []
    for read in (1, 37, 1_000):
        probes = Probes()
        probes.opened(100, 1_000, 1_000)
        probes.ended(200, 200)
        probes.begin(500)
        tried: dict[int, float] = {}
        for begin in range(500, 100_500, read):
            for block in probes.blocks(begin, min(begin + read, 100_500)):
                for row in range(-(-block.first // 10) * 10, block.end, 10):
                    tried[row] = block.stands_for
        found.append(tried)
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == pytest.approx(100_000 / (ONE_OF * 200), abs=2)
    assert sum(found[0].values()) == pytest.approx(10_000, rel=0.05)
    places = [row % (ONE_OF * 200) for row in found[0]]
    assert max(places) - min(places) > ONE_OF * 100


def test_the_fewer_rows_fit_the_more_windows_are_tried() -> None:
    """A tenth fits, and each row is in 20 windows: of 2 noted a row, one of 80 may be."""
    lengths = []
    for has_gaps in (False, True):
        probes = Probes(has_gaps=has_gaps)
        probes.opened(100, 1_000, 100)
        probes.ended(200, 200)
        (block,) = probes.blocks(0, ONE_OF * 200)
        lengths.append(block.end - block.first)
        assert block.stands_for == ONE_OF * 200 / lengths[-1]
    assert lengths == [100, 100]


@pytest.mark.parametrize(("cost_ns", "one_of"), [(1_300.0, 256), (1e6, ONE_OF), (0.0, ONE_OF)])
def test_cheap_events_are_noted_so_seldom_that_tries_cost_little(
    cost_ns: float, one_of: int
) -> None:
    """A note takes some 10 µs: more than half of a slot's time went to notes of 1.3 µs events."""
    assert affordable_one_of(ONE_OF, cost_ns) == one_of


def test_no_window_is_judged_that_takes_longer_than_the_bound_spares() -> None:
    """Of 12,000 events it takes some 120 ms, and nothing else is done meanwhile."""
    assert is_quick_to_judge(12_000, 120e6)
    assert not is_quick_to_judge(12_001, 120e6)


def test_a_block_of_which_a_window_is_not_judged_counts_for_nothing() -> None:
    every, other = Losses(), Losses()
    for losses in (every, other):
        losses.came(400, in_gap=False)
        for block, lost in ((0, 1), (2, 3)):
            losses.block_rows(block, 8.0, 10, in_gap=False)
            losses.add(block, 8.0, matches=4, lost=lost, false=0)
    other.block_rows(1, 8.0, 10, in_gap=False)
    other.add(1, 8.0, matches=4, lost=4, false=0)
    other.omit(1)
    other.add(1, 8.0, matches=4, lost=4, false=0)
    other.block_rows(1, 8.0, 10, in_gap=False)
    assert (other.lost_share, other.error) == (every.lost_share, every.error)


def test_windows_of_many_keys_take_turns() -> None:
    """Each of 50 keys has one of 10 rows, while 500 of all keys come: so many in a block."""
    probes = Probes()
    probes.opened(100, 1_000, 1_000)
    probes.ended(500, 10)
    (block,) = probes.blocks(0, ONE_OF * 500)
    assert block.end - block.first == 500
    assert block.stands_for == ONE_OF


def judge(
    losses: Losses, block: int, stands_for: float, *, in_gap: bool = False, **of: int
) -> None:
    """Count a block of one row, in a stretch of as many rows as it stands for, and its window."""
    losses.came(round(stands_for), in_gap=in_gap)
    losses.block_rows(block, stands_for, 1, in_gap=in_gap)
    losses.add(block, stands_for, **of, in_gap=in_gap)


def test_a_share_is_told_with_its_error_and_blocks_count_not_windows() -> None:
    draw = Random(3)  # noqa: S311
    alone, together, off = Losses(), Losses(), 0.0
    for number in range(400):
        lost = int(draw.random() < 0.4)
        judge(alone, number, 8.0, matches=1, lost=lost, false=0)
        for _ in range(9):  # windows that lie over each other
            judge(together, number, 8.0, matches=1, lost=lost, false=0)
    off = alone.lost_share - 0.4
    assert alone.error == pytest.approx((0.24 / 400) ** 0.5, rel=0.1)
    assert abs(off) < 2.5 * alone.error
    assert together.lost_share == pytest.approx(alone.lost_share)
    assert together.error == pytest.approx(alone.error, rel=0.05)
    again = Losses()
    restore(again, save(together))
    assert canonical(save(again)) == canonical(save(together))


def test_rows_passed_over_count_as_many_times_as_they_came() -> None:
    """Half of the rows are passed over and lose all; chance tried few of them."""
    losses = Losses()
    for number in range(90):
        judge(losses, number, 10.0, matches=1, lost=0, false=0)
    for number in range(90, 120):
        judge(losses, number, 10.0, matches=1, lost=1, false=0, in_gap=True)
    losses.came(600, in_gap=True)
    assert losses.lost_share == pytest.approx(0.5)
    # Every block of a state fares alike: but for few blocks, nothing is left to chance.
    assert losses.error == pytest.approx(1 / 122)


def test_the_error_of_both_states_is_that_of_repeated_draws() -> None:
    draw, shares, errors = Random(5), list[float](), list[float]()  # noqa: S311
    for _ in range(200):
        losses = Losses()
        for number in range(300):
            in_gap, many = draw.random() < 0.4, draw.randint(0, 6)
            losses.block_rows(number, 8.0, 1, in_gap=in_gap)
            lost = many if in_gap else int(draw.random() < 0.1 and many > 0)
            losses.add(number, 8.0, matches=many, lost=lost, false=0, in_gap=in_gap)
        losses.came(3_000, in_gap=False)
        losses.came(2_000, in_gap=True)
        shares.append(losses.lost_share)
        errors.append(losses.error)
    assert fmean(shares) == pytest.approx(0.4 + 0.6 * 0.1 * 6 / 7 / 3, abs=0.01)
    assert fmean(errors) == pytest.approx(stdev(shares), rel=0.15)


def test_a_state_of_which_nothing_was_tried_leaves_the_share_unknown() -> None:
    losses = Losses()
    for number in range(500):
        judge(losses, number, 8.0, matches=1, lost=0, false=0)
    assert losses.error < 0.025
    losses.came(8, in_gap=True)
    assert losses.error == 1.0


def test_a_window_counts_as_many_times_as_it_stands_for() -> None:
    losses = Losses()
    for number in range(10):
        judge(losses, number, 2.0, matches=1, lost=1, false=0)
        judge(losses, 100 + number, 6.0, matches=1, lost=0, false=1)
    assert losses.lost_share == 0.25
    assert losses.false_share == 0.75


@pytest.mark.parametrize(
    ("matches", "error", "said"),
    [(19, 0.0, None), (20, 0.025, 0.3), (400, 0.026, None)],
)
def test_a_share_is_said_once_it_is_known_to_five_points(
    matches: int, error: float, said: float | None
) -> None:
    counts = SheddingCounts(judged_matches=matches, judged_lost_share=0.3, judged_error=error)
    assert counts.lost_share == said


def test_few_blocks_do_not_tell_none_from_a_few_however_many_matches_they_have() -> None:
    losses = Losses()
    for _ in range(50):
        judge(losses, 1, 1.0, matches=2, lost=0, false=0)
    assert losses.matches == 100
    assert losses.error > 0.3
    for block in range(2, 41):
        judge(losses, block, 1.0, matches=1, lost=0, false=0)
    assert losses.error < 0.025
