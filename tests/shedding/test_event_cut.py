"""Which events go from all their windows: those of least worth, as many as are to go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.state import restore, save
from slackwater.runtime.shedding.event_cut import RANKS, EventCut, chances_of, ranks_of


@given(
    counts=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    share=st.floats(0, 1),
)
def test_as_many_go_as_are_to_go_and_the_least_first(counts: list[int], share: float) -> None:
    of = np.array(counts, dtype=np.float64)
    chances = chances_of(of, share)
    assert (chances * of).sum() == pytest.approx(share * of.sum())
    had = chances[of > 0]
    assert (np.diff(had) <= 0).all()
    assert ((had > 0) & (had < 1)).sum() <= 1


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1, exclude_max=True)), max_size=40))
def test_worth_goes_before_the_draw_and_ranks_are_in_range(
    pairs: list[tuple[float, float]],
) -> None:
    worths = np.array([one for one, _ in pairs])
    draws = np.array([one for _, one in pairs])
    ranks = ranks_of(worths, draws)
    assert ((ranks >= 0) & (ranks < RANKS)).all()
    order = np.argsort(worths, kind="stable")
    double = worths[order][1:] >= 2 * np.maximum(worths[order][:-1], 2.0**-24)
    small = worths[order][1:] < 64
    assert (np.diff(ranks[order])[double & small] > 0).all()


def test_the_share_is_met_over_reads_and_the_same_events_go_again() -> None:
    rng = np.random.default_rng(3)
    first, again = EventCut(seed=5), EventCut(seed=5)
    dropped = total = 0
    for read in range(60):
        ranks = ranks_of(rng.exponential(0.1, 100), rng.random(100))
        events = np.arange(read * 100, read * 100 + 100)
        mask = first.dropped(ranks, events, share=0.3)
        assert (again.dropped(ranks, events, share=0.3) == mask).all()
        first.saw(ranks, length=2_000)
        again.saw(ranks, length=2_000)
        state = save(again)
        again = EventCut(seed=5)
        restore(again, state)
        dropped, total = dropped + int(mask.sum()), total + 100
    assert dropped / total == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(("share", "goes"), [(0.0, 0), (1.0, 100)])
def test_nothing_and_all_are_shares_too(share: float, goes: int) -> None:
    ranks = ranks_of(np.linspace(0.001, 1, 100), np.zeros(100))
    assert int(EventCut(seed=0).dropped(ranks, np.arange(100), share=share).sum()) == goes
