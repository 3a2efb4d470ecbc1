"""P_miss by hand, by its sum, and by the line kept of it: [probslack] §3.1, Fig. 3 and 4."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.probslack.straightforward import Fit
from runtime.closing.histograms import MOST_VALUES, NEVER_NS, Histograms, PolyLine
from tests.support.chance import chance
from tests.support.examples import a_third

SMALL = st.lists(st.integers(0, 12), min_size=1, max_size=12)


def known(gaps: list[int], delays: list[int], at_most: int | None = None) -> Histograms:
    return Histograms(np.array(gaps), np.array(delays), tick_ns=1, at_most_ns=at_most)


def asked(one: Histograms, alpha: int, beta: int) -> float:
    return one.chance(one.classes(np.array([alpha])), np.array([beta])).item()


def by_the_sum(gaps: list[int], delays: list[int], alpha: int, beta: int) -> Fraction:
    """The share of pairs (g, d) whose event is in the window and still to come."""
    missing = sum(1 for g in gaps for d in delays if g < alpha and g + d > beta)
    return Fraction(missing, len(gaps) * len(delays))


def test_figure_3_the_next_event_is_in_the_window_and_has_not_come() -> None:
    # The last event happened at 100, the window ends at 115. The next happens at 110 or at 120,
    # and takes 1, 2, 3 or 4: only that of 110 is in the window, and at 112 it is half there.
    one = known([10, 20], [1, 2, 3, 4])
    assert asked(one, 115 - 100, 110 - 100) == 0.5  # whatever the delay, it is still to come
    assert asked(one, 115 - 100, 112 - 100) == 0.25
    assert asked(one, 115 - 100, 114 - 100) == 0.0
    assert asked(one, 110 - 100, 100 - 100) == 0.0  # an event at the end is past it
    assert asked(one, 125 - 100, 112 - 100) == 0.75
    assert asked(one, 125 - 100, 124 - 100) == 0.0  # β is d_max + g_max: nothing is later


def test_figure_4_the_area_above_the_bound_has_a_poly_line_for_its_edge() -> None:
    # δ 0.3: g up to 10 has a share of 0.5 > δ, so α_min is 11, the first α with that event.
    line = PolyLine(known([10, 20], [1, 2, 3, 4]), 0.3)
    least = line.least_beta_ns(np.array([10, 11, 20, 21, 40])).tolist()
    # Up to α 10 the chance is never above δ; from 11 on till β = 12 (0.25); from 21 on till 22
    # (0.25 of an event at 120), however far the window goes on: α behind g_max changes nothing.
    assert least == [NEVER_NS, 12, 12, 22, 22]
    assert line.entries == 2  # of three classes: to α 10 nothing is waited for, to 20, and beyond


@given(SMALL, SMALL, st.integers(-2, 26), st.integers(-2, 26))
def test_the_chance_is_the_sum_of_the_paper(
    gaps: list[int], delays: list[int], alpha: int, beta: int
) -> None:
    expected = by_the_sum(gaps, delays, alpha, beta)
    assert abs(asked(known(gaps, delays), alpha, beta) - expected) < 1e-12


@given(SMALL, SMALL, st.integers(0, 9), st.integers(0, 26), st.integers(-2, 26))
def test_what_comes_behind_the_latest_closing_is_not_waited_for(
    gaps: list[int], delays: list[int], at_most: int, alpha: int, beta: int
) -> None:
    """Eq. 8: an event counts if it comes by end + at_most; classes of α take the latest end."""
    one = known(gaps, delays, at_most)
    end = min([g for g in sorted(gaps) if g >= alpha], default=10**6)
    waited = [(g, d) for g in gaps for d in delays if g < alpha and beta < g + d <= end + at_most]
    assert abs(asked(one, alpha, beta) - len(waited) / (len(gaps) * len(delays))) < 1e-12


@a_third
@given(SMALL, SMALL, st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9]), chance)
def test_directly_by_the_listings_cache_and_by_ours_filled_or_lazy_it_is_the_same(
    gaps: list[int], delays: list[int], bound: float, order: Random
) -> None:
    fit = Fit()
    fit.gaps.update(gaps)
    fit.delays.update(delays)
    listed = fit.cached(bound)
    filled, lazy = PolyLine(known(gaps, delays), bound), PolyLine(known(gaps, delays), bound)
    filled.fill()
    places = [(alpha, beta) for alpha in range(-1, 28) for beta in range(-1, 28)]
    order.shuffle(places)
    alphas = np.array([alpha for alpha, _ in places])
    # One by one and all together: what is computed with what does not show.
    one_by_one = [lazy.least_beta_ns(alphas[n : n + 1]).item() for n in range(len(alphas))]
    assert one_by_one == filled.least_beta_ns(alphas).tolist()
    for (alpha, beta), least in zip(places, one_by_one, strict=True):
        direct = by_the_sum(gaps, delays, alpha, beta) > bound + 1e-9
        assert direct == listed(alpha, beta) == (beta < least), (alpha, beta)


@given(chance)
def test_a_chance_does_not_depend_on_what_is_asked_with_it(draw: Random) -> None:
    one = known([draw.randint(0, 99) for _ in range(300)], [draw.randint(1, 40) for _ in range(99)])
    alphas = np.array([draw.randint(0, 120) for _ in range(30)])
    betas = np.array([draw.randint(0, 140) for _ in range(30)])
    together = one.chance(one.classes(alphas), betas).tolist()
    assert together == [
        asked(one, alpha, beta) for alpha, beta in zip(alphas.tolist(), betas.tolist(), strict=True)
    ]


@a_third
@given(chance)
def test_where_gaps_share_bins_a_chance_is_never_too_small(draw: Random) -> None:
    gaps = [draw.randint(0, 5_000) for _ in range(3 * MOST_VALUES)]
    delays = [draw.randint(1, 300) for _ in range(50)]
    one = known(gaps, delays)
    assert one.entries <= MOST_VALUES + 50
    g, d = np.array(gaps)[:, None], np.array(delays)
    for _ in range(20):
        alpha, beta = draw.randint(0, 5_200), draw.randint(0, 5_400)
        exact = ((g < alpha) & (g + d > beta)).mean()
        assert asked(one, alpha, beta) >= exact - 1e-12


def test_negative_gaps_count_as_none_and_negative_delays_as_they_are() -> None:
    one = known([-5, 10], [-3, 1])
    assert asked(one, 1, -4) == 0.5  # g 0: an event at once, here by −3 or 1
    assert asked(one, 1, -3) == 0.25
    assert asked(one, 11, 0) == 0.75


def test_times_of_a_hundred_years_fit() -> None:
    far = 2**62
    one = known([far, 1], [far, -far])
    line = PolyLine(one, 0.1)
    line.fill()
    assert 0 < line.least_beta_ns(np.array([far])).item() < far + far // 2
