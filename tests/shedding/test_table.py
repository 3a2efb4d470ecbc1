"""What is counted of windows of any size, and which utilities follow."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.shedding.places import covered, likely_sizes
from slackwater.runtime.shedding.scales import scaled
from slackwater.runtime.shedding.table import UtilityTable
from slackwater.runtime.shedding.windows import FinishedWindows
from tests.shedding.worlds import places_of, windows_of


def finished(sizes: list[int], hits: list[tuple[int, int, int]]) -> FinishedWindows:
    """Return windows of type 0 only but for their hits."""
    types = {(window, at): kind for window, kind, at in hits}
    events = [(w, types.get((w, at), 0), at) for w, size in enumerate(sizes) for at in range(size)]
    return FinishedWindows(
        np.array(sizes),
        places_of(hits),
        np.arange(len(hits)),
        np.ones(len(sizes), np.bool_),
        places_of(events),
    )


@given(size=st.integers(1, 40), cells=st.integers(1, 40))
def test_each_position_has_a_cell_and_cells_have_a_position_each_way(size: int, cells: int) -> None:
    events, cell = covered(np.arange(size), np.full(size, size), cells)
    assert set(events) == set(range(size))
    assert (np.diff(cell) >= 0).all()
    assert set(cell) == set(range(cells)) or size > cells
    if size <= cells:  # scaled up: each cell is of one position
        assert len(cell) == cells
    else:  # scaled down: each position has one cell
        assert len(cell) == size


def test_windows_of_twice_the_cells_put_two_positions_in_one() -> None:
    """[espice] §3.6: N = 100, ws = 200, sf = 2."""
    _, cell = covered(np.array([0, 1, 2, 3, 198, 199]), np.full(6, 200), 100)
    assert cell.tolist() == [0, 0, 1, 1, 99, 99]


def test_what_lies_behind_the_predicted_end_is_in_the_last_cell() -> None:
    _, cell = covered(np.array([9, 10, 50]), np.full(3, 10), 10)
    assert cell.tolist() == [9, 9, 9]


def test_a_window_of_as_many_events_as_cells_counts_as_the_paper_has_it() -> None:
    table = UtilityTable(5, scale="type", smooth=0.0)
    hits = [(w, 1, 0) for w in range(7)] + [(7, 1, 1), (8, 1, 1), (9, 1, 2)]
    table.learn(finished([5] * 10, hits))
    table.turn(keep=1.0)
    learnt = table.learnt()
    assert learnt.utilities[1].tolist() == [70, 20, 10, 0, 0]
    assert learnt.expected[1].tolist() == pytest.approx([0.7, 0.2, 0.1, 0, 0])
    assert learnt.expected.sum(axis=0) == pytest.approx(np.ones(5))
    assert learnt.size == 5


def test_by_probability_a_place_that_always_hits_is_worth_all() -> None:
    table = UtilityTable(4, scale="probability", smooth=0.0)
    hits = [(w, 1, 2) for w in range(8)] + [(w, 0, 0) for w in range(2)]
    table.learn(finished([4] * 8, hits))
    table.turn(keep=1.0)
    learnt = table.learnt()
    assert learnt.rates[1, 2] == 1.0
    assert learnt.rates[0, 0] == 0.25
    assert learnt.utilities[:2].tolist() == [[25, 0, 0, 0], [0, 0, 100, 0]]


def test_ranks_share_out_a_windows_events_evenly() -> None:
    draw = np.random.default_rng(4)
    rates = draw.permutation(1000).reshape(10, 100) / 1e7
    found = scaled("rank", rates, rates, np.full((10, 100), 0.1))
    assert (np.diff(found.ravel()[np.argsort(rates.ravel())]) >= 0).all()
    assert (found == 0).sum() == 1  # the one of rate 0
    assert np.bincount(found.ravel())[1:100].max() <= 11
    assert found.max() <= 99


def test_smoothing_takes_a_lone_hit_for_less_than_many() -> None:
    rates = []
    for smooth in (0.0, 1.0):
        table = UtilityTable(10, smooth=smooth)
        # Type 0 hits once where it comes once, forty times of forty at another place.
        hits = [(0, 1, 9), (0, 0, 0)] + [(w, 0, 5) for w in range(40)]
        one = finished([10] * 40, hits)
        seen = one.events
        types = np.where((seen.positions == 0) & (seen.windows > 0), 1, seen.types)
        places = replace(seen, types=types)
        table.learn(replace(one, events=places))
        table.turn(keep=1.0)
        rates.append(table.learnt().rates[0])
    assert rates[0][[0, 5]].tolist() == [1.0, 1.0]
    assert rates[1][0] < 0.6
    assert rates[1][5] > 0.95
    assert 0 < rates[1][1] < 0.01


def test_shares_come_from_sampled_windows_and_hits_from_all() -> None:
    draw = Random(2)  # noqa: S311
    table = UtilityTable(20, smooth=0.0)
    table.learn(windows_of(draw, windows=4_000, sample=0.2, match=1.0, pattern=((0, 0.5),)))
    table.turn(keep=1.0)
    found = table.learnt()
    # Place 10 give or take one: of the windows' four types the hit's comes there in 5/8 and 7/16.
    assert found.rates[0, 9:12] == pytest.approx(
        [0.25 / 0.4375, 0.5 / 0.625, 0.25 / 0.4375], abs=0.1
    )
    assert found.expected.sum() == pytest.approx(20)


def test_a_turn_forgets_what_is_older_in_part() -> None:
    table = UtilityTable(2, smooth=0.0)
    table.learn(finished([2] * 8, [(w, 0, 0) for w in range(8)]))
    table.turn(keep=0.5)
    table.learn(finished([2] * 8, [(w, 0, 1) for w in range(8)]))
    table.turn(keep=0.5)
    assert table.learnt().rates[0] == pytest.approx([1 / 3, 2 / 3])
    table.turn(keep=0.0)
    assert not table.learnt().is_trained


def test_the_size_of_a_window_is_told_better_with_each_event() -> None:
    """Twenty events a window, of late; this one gets ten: at its end that is known."""
    positions = np.arange(10)
    found = likely_sizes(positions, 20.0, 1.0 - positions / 10)
    assert found[0] == 20
    assert (np.diff(found) <= 0).all()
    assert found[-1] == 11
    assert (likely_sizes(positions, 0.0, np.zeros(10)) == positions + 1).all()
