"""The rivals do what they are said to do, so that Mace-HC is compared with something."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mace.placement_rivals import best_random, corr, load_correlation
from slackwater.runtime.foresight.placement import PlacementProblem, worst_mace_s


def two_kinds(*, m: int = 24, n: int = 4, d: int = 40) -> PlacementProblem:
    """Return operators half of which are busy when the other half is not."""
    rng = np.random.default_rng(1)
    wave = 1 + np.sin(np.arange(d) / 3)
    load = np.where(np.arange(m)[:, None] % 2, wave, 2 - wave) * rng.uniform(0.5, 1.5, m)[:, None]
    load *= 0.8 * n / load.sum(axis=0).mean()
    return PlacementProblem(load, np.ones(n), 1.0)


def test_the_correlation_is_that_of_numpy() -> None:
    problem = two_kinds()
    nodes = problem.random(np.random.default_rng(2))
    load = np.stack([problem.load_s[nodes == k].sum(axis=0) for k in range(4)])
    truth = np.corrcoef(load)[np.triu_indices(4, 1)].mean()
    assert load_correlation(problem, nodes) == pytest.approx(truth)


def test_corr_puts_together_what_is_not_busy_together() -> None:
    problem = two_kinds()
    found = corr(problem)
    load = np.stack([problem.load_s[found.nodes == k].sum(axis=0) for k in range(4)])
    chance = problem.random(np.random.default_rng(2))
    by_chance = np.stack([problem.load_s[chance == k].sum(axis=0) for k in range(4)])
    assert load.var(axis=1).mean() < by_chance.var(axis=1).mean() / 4
    assert np.ptp(load.mean(axis=1)) < 0.2 * load.mean(), "the average load is balanced"
    assert worst_mace_s(problem, found.nodes) < worst_mace_s(problem, chance)


def test_corr_exchanges_until_theta_and_says_what_it_reached() -> None:
    rng = np.random.default_rng(4)
    sources = rng.exponential(1.0, (4, 50)) ** 2
    load = sources[rng.integers(0, 4, 100)] * rng.uniform(0.2, 2.0, 100)[:, None]
    problem = PlacementProblem(load, np.ones(12), 1.0)
    first = corr(problem, go_on=lambda exchanges: exchanges < 0)
    assert first.exchanges == 0
    more = corr(problem, theta=first.correlation + 0.02)
    assert more.exchanges > 0
    assert more.correlation > first.correlation
    assert more.reached == (more.correlation >= first.correlation + 0.02)
    assert more.correlation == pytest.approx(load_correlation(problem, more.nodes))


def test_corr_ends_where_theta_is_out_of_reach_and_leaves_what_is_pinned() -> None:
    rng = np.random.default_rng(4)
    problem = PlacementProblem(
        rng.exponential(1.0, (20, 50)), np.ones(4), 1.0, pinned={0: 3, 1: 3, 19: 0}
    )
    found = corr(problem, theta=2.0)
    assert not found.reached
    assert found.nodes[[0, 1, 19]].tolist() == [3, 3, 0]
    alone = PlacementProblem(problem.load_s, np.ones(1), 1.0)
    assert corr(alone).reached


def test_the_best_of_many_random_placements_is_no_worse_than_one() -> None:
    problem = two_kinds()
    one = best_random(problem, np.random.default_rng(3), go_on=lambda tried: tried < 1)
    many = best_random(problem, np.random.default_rng(3), go_on=lambda tried: tried < 50)
    assert (one[2], many[2]) == (1, 50)
    assert many[1] < one[1]
    assert many[1] == worst_mace_s(problem, many[0])
