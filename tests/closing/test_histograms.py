"""The chance that something is missing: by hand, by its sum, and where it is small enough.

[probslack] §3.1, Fig. 3 and 4.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.closing.histograms import MOST_VALUES, Histograms
from slackwater.runtime.closing.tables import FOR_EVER_NS, MOST_OF_LINE, NEVER_NS, Tables
from tests.closing.literal_probslack import Fit
from tests.support.chance import chance
from tests.support.examples import a_third

SMALL = st.lists(st.integers(0, 12), min_size=1, max_size=12)
AS_PRINTED = {"conditional": False}


def known(gaps: list[int], delays: list[int], at_most: int | None = None, **more: bool) -> Tables:
    return Tables([of(gaps, delays, at_most, **more)])


def of(gaps: list[int], delays: list[int], at_most: int | None = None, **more: bool) -> Histograms:
    return Histograms.of(np.array(gaps), np.array(delays), tick_ns=1, at_most_ns=at_most, **more)


def asked(tables: Tables, alpha: int, beta: int) -> float:
    return tables.chance(np.array([0]), np.array([alpha]), np.array([beta])).item()


def ranges(tables: Tables, bound: float, alpha: int) -> list[tuple[int, int]]:
    """Return the ranges of β in which a window may close."""
    _, begins, ends = tables.ranges(tables.released(bound), np.array([0]), np.array([alpha]))
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def by_the_sum(gaps: list[int], delays: list[int], alpha: int, beta: int) -> Fraction:
    """The share of pairs (g, d) whose event is in the window and still to come."""
    missing = sum(1 for g in gaps for d in delays if g < alpha and g + d > beta)
    return Fraction(missing, len(gaps) * len(delays))


def given_nothing_came(gaps: list[int], delays: list[int], alpha: int, beta: int) -> Fraction:
    """The share of those pairs among all whose event is still to come."""
    missing = by_the_sum(gaps, delays, alpha, beta)
    return missing / by_the_sum(gaps, delays, max(gaps) + 1, beta) if missing else missing


def as_told(gaps: list[int], delays: list[int], alpha: int, beta: int) -> Fraction:
    """The same; and after the longest wait known the chance that one is longer still."""
    if by_the_sum(gaps, delays, max(gaps) + 1, beta):
        return given_nothing_came(gaps, delays, alpha, beta)
    return Fraction(1, 1 + len(delays))


def test_figure_3_the_next_event_is_in_the_window_and_has_not_come() -> None:
    # The last event happened at 100, the window ends at 115. The next happens at 110 or at 120,
    # and takes 1, 2, 3 or 4: only that of 110 is in the window, and at 112 it is half there.
    printed, one = known([10, 20], [1, 2, 3, 4], **AS_PRINTED), known([10, 20], [1, 2, 3, 4])
    assert asked(printed, 115 - 100, 110 - 100) == 0.5  # whatever the delay, it is still to come
    assert asked(one, 115 - 100, 110 - 100) == 0.5
    assert asked(printed, 115 - 100, 112 - 100) == 0.25
    assert asked(one, 115 - 100, 112 - 100) == pytest.approx(1 / 3)  # of 6 of 8 still to come, 2
    assert asked(one, 115 - 100, 114 - 100) == asked(printed, 115 - 100, 114 - 100) == 0.0
    assert asked(one, 110 - 100, 100 - 100) == 0.0  # an event at the end is past it
    assert asked(printed, 125 - 100, 112 - 100) == 0.75
    assert asked(one, 125 - 100, 112 - 100) == 1.0  # in it whichever comes, and none has
    # β is d_max + g_max: nothing that is known is later, but the fifth of five may be the longest.
    assert asked(printed, 125 - 100, 124 - 100) == 0.0
    assert asked(one, 125 - 100, 124 - 100) == 0.2


def test_figure_4_the_area_above_the_bound_has_a_poly_line_for_its_edge() -> None:
    # δ 0.3: g up to 10 has a share of 0.5 > δ, so α_min is 11, the first α with that event.
    tables = known([10, 20], [1, 2, 3, 4], **AS_PRINTED)
    # Up to α 10 the chance is never above δ; from 11 on till β = 12 (0.25); from 21 on till 22
    # (0.25 of an event at 120), however far the window goes on: α behind g_max changes nothing.
    least = [ranges(tables, 0.3, alpha) for alpha in (10, 11, 20, 21, 40)]
    assert least == [
        [(first, FOR_EVER_NS)] for first in (NEVER_NS, 12, 12, 22, 22)
    ]  # where it falls with β there is one range
    assert tables.edges(tables.released(0.3)) == 2


def test_a_window_that_may_close_may_have_to_wait_again() -> None:
    # Events at 1 or 4, of which each fourth takes 9 instead of 1. By 2 nothing came: it is of 1
    # and slow (1 of 8), or of 4 (4 of 8). By 5 still nothing: slow, of 1 as likely as of 4.
    tables = known([1, 4], [1, 1, 1, 9])
    chances = [round(asked(tables, 3, beta), 3) for beta in (0, 2, 5, 9, 10)]
    assert chances == [0.5, 0.2, 0.5, 0.5, 0.0]
    assert ranges(tables, 0.3, 3) == [(2, 5), (10, FOR_EVER_NS)]


@given(SMALL, SMALL, st.integers(-2, 26), st.integers(-2, 26))
def test_the_chance_is_the_sum_of_the_paper_over_what_is_still_to_come(
    gaps: list[int], delays: list[int], alpha: int, beta: int
) -> None:
    printed = asked(known(gaps, delays, **AS_PRINTED), alpha, beta)
    assert abs(printed - by_the_sum(gaps, delays, alpha, beta)) < 1e-12
    found = asked(known(gaps, delays), alpha, beta)
    assert abs(found - as_told(gaps, delays, alpha, beta)) < 1e-12


@a_third
@given(
    SMALL, SMALL, st.integers(0, 9), st.integers(0, 26), st.sampled_from([0.05, 0.3]), st.booleans()
)
def test_what_comes_behind_the_latest_closing_is_not_waited_for_and_yet_told(
    gaps: list[int], delays: list[int], at_most: int, alpha: int, bound: float, conditional: bool
) -> None:
    """Eq. 8: an event counts if it comes by end + at_most; classes of α take the latest end."""
    tables = known(gaps, delays, at_most, conditional=conditional)
    end = min([g for g in sorted(gaps) if g >= alpha], default=10**6)
    good = ranges(tables, bound, alpha)
    for beta in range(-1, 26):
        pairs = [(g, d) for g in gaps for d in delays]
        waited = [g for g, d in pairs if g < alpha and beta < g + d <= end + at_most]
        among = [g for g, d in pairs if g + d > beta or not conditional]
        may_close = len(waited) <= (bound + 1e-9) * len(among)
        assert may_close == any(begin <= beta < until for begin, until in good)
        exact = (as_told if conditional else by_the_sum)(gaps, delays, alpha, beta)
        assert abs(asked(tables, alpha, beta) - exact) < 1e-12


@a_third
@given(SMALL, SMALL, st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9]))
def test_windows_may_close_where_the_chance_is_small_enough_and_nowhere_else(
    gaps: list[int], delays: list[int], bound: float
) -> None:
    """Directly, and as printed by the listings' own cache."""
    fit = Fit()
    fit.gaps.update(gaps)
    fit.delays.update(delays)
    listed, printed = fit.cached(bound), known(gaps, delays, **AS_PRINTED)
    tables = known(gaps, delays)
    for alpha in range(-1, 28):
        good, good_as_printed = ranges(tables, bound, alpha), ranges(printed, bound, alpha)
        assert len(good_as_printed) == 1
        for beta in range(-1, 28):
            waits = given_nothing_came(gaps, delays, alpha, beta) > bound + 1e-9
            assert waits == (not any(begin <= beta < end for begin, end in good)), (alpha, beta)
            assert listed(alpha, beta) == (beta < good_as_printed[0][0]), (alpha, beta)


@given(chance)
def test_a_chance_does_not_depend_on_what_is_asked_with_it(draw: Random) -> None:
    one = known([draw.randint(0, 99) for _ in range(300)], [draw.randint(1, 40) for _ in range(99)])
    alphas = np.array([draw.randint(0, 120) for _ in range(30)])
    betas = np.array([draw.randint(0, 140) for _ in range(30)])
    together = one.chance(np.zeros(30, dtype=np.int64), alphas, betas).tolist()
    assert together == [
        asked(one, alpha, beta) for alpha, beta in zip(alphas.tolist(), betas.tolist(), strict=True)
    ]


@a_third
@given(chance)
def test_where_gaps_and_ticks_share_cells_a_chance_is_never_too_small(draw: Random) -> None:
    gaps = [draw.randint(0, 5_000) for _ in range(3 * MOST_VALUES)]
    delays = [draw.randint(1, 300) for _ in range(50)]
    one = of(gaps, delays)
    assert one.entries <= MOST_VALUES + 50
    cells = len(one.cells_ns(MOST_OF_LINE))
    assert cells * MOST_VALUES <= MOST_OF_LINE
    tables, printed = Tables([one]), known(gaps, delays, **AS_PRINTED)
    g, d = np.array(gaps)[:, None], np.array(delays)
    off = []
    for _ in range(20):
        alpha, beta = draw.randint(0, 5_200), draw.randint(0, 5_400)
        missing, coming = ((g < alpha) & (g + d > beta)).mean(), (g + d > beta).mean()
        assert asked(printed, alpha, beta) >= missing - 1e-12
        exact = missing / coming if missing else 0.0
        assert asked(tables, alpha, beta) >= exact - 1e-12
        off.append(asked(tables, alpha, beta) - exact)
    assert np.median(off) < 0.02  # nor much too large


def test_negative_gaps_count_as_none_and_negative_delays_as_they_are() -> None:
    one = known([-5, 10], [-3, 1], **AS_PRINTED)
    assert asked(one, 1, -4) == 0.5  # g 0: an event at once, here by −3 or 1
    assert asked(one, 1, -3) == 0.25
    assert asked(one, 11, 0) == 0.75


def test_times_of_a_hundred_years_fit() -> None:
    far = 2**62
    ((begin, end),) = ranges(known([far, 1], [far, -far]), 0.1, far)
    assert 0 < begin < far + far // 2
    assert end == FOR_EVER_NS
