"""What a cell is taken to be worth before it has been seen: its type's times its place's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.shedding.priors import factors, prior_rates
from slackwater.runtime.shedding.table import UtilityTable
from tests.shedding.worlds import windows_of
from tests.support.chance import chance


def test_a_cell_begins_with_its_type_times_its_place() -> None:
    """The example of `runtime/shedding/priors.py`, with so many hits that 16 more say nothing."""
    hits = np.array([[6.0, 0.0], [2.0, 2.0]]) * 1e6
    seen = np.array([[40.0, 40.0], [10.0, 10.0]]) * 1e6
    expected = [[0.12, 0.03], [0.32, 0.08]]
    assert prior_rates(hits, seen) == pytest.approx(np.array(expected), rel=1e-4)


def test_where_types_and_places_work_apart_the_prior_is_the_truth() -> None:
    of_type, of_place = np.array([[0.1], [0.4], [0.0]]), np.array([[0.5, 1.0, 1.5, 1.0]])
    seen = np.full((3, 4), 1e7)
    found = prior_rates(seen * of_type * of_place, seen)
    assert found == pytest.approx(of_type * of_place, rel=1e-3, abs=1e-6)


@given(
    hits=st.lists(st.integers(0, 50), min_size=1, max_size=70),
    share=st.floats(0.01, 1.0),
)
def test_a_place_lies_between_what_it_has_seen_and_what_is_around_it(
    hits: list[int], share: float
) -> None:
    counted = np.array(hits, float)
    wanted = np.full(len(hits), counted.mean() if counted.any() else share)
    found = factors(counted, wanted)
    seen = counted / wanted
    assert found.shape == counted.shape
    assert (found >= min(seen.min(), 1.0) - 1e-9).all()
    assert (found <= max(seen.max(), 1.0) + 1e-9).all()


def test_a_place_without_hits_goes_by_its_neighbourhood() -> None:
    """One match in a window of 64 places: the places around it are likelier than far ones."""
    hits = np.zeros(64)
    hits[10] = 30.0
    found = factors(hits, np.full(64, 30.0 / 64))
    assert found[10] == found.max()
    assert found[9] > found[20] > found[50] > 0


def test_a_type_without_a_hit_is_worth_the_less_the_oftener_it_came() -> None:
    hits = np.array([[50.0], [0.0], [0.0]])
    found = prior_rates(hits, np.array([[100.0], [1000.0], [2.0]]))[:, 0]
    assert found[0] > found[2] > found[1] > 0


def test_nothing_seen_is_worth_nothing_and_raises_nothing() -> None:
    assert prior_rates(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0, 4)
    assert not prior_rates(np.zeros((2, 4)), np.zeros((2, 4))).any()


@given(draw=chance)
def test_rates_are_shares_whatever_was_seen(draw: object) -> None:
    table = UtilityTable(16)
    table.learn(windows_of(draw, windows=20, sizes=(5, 40), sample=0.5))  # type: ignore[arg-type]
    table.turn(keep=1.0)
    _, rates = table.rates_with()
    assert (rates >= 0).all()
    assert np.isfinite(rates).all()
