"""A lost node is answered near what a whole search finds, and most operators stay."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mace.lost_node import replace_lost
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.placement import (
    PlacementProblem,
    SearchBudget,
    mace_hc,
    worst_mace_s,
)
from tests.support.placements import drawn


def test_a_lost_node_is_answered_near_what_a_whole_search_finds() -> None:
    few = SearchBudget(starts=2)
    for seed in range(3):
        problem = drawn(seed, m=120, n=12, d=60)
        before = mace_hc(problem, seed, budget=few)
        for lost in (0, 11):
            nodes, mace_s = replace_lost(problem, before.nodes, lost)
            rest = PlacementProblem(problem.load_s, np.delete(problem.capacity, lost), 1.0)
            whole = mace_hc(rest, seed, budget=few)
            assert not (nodes == lost).any()
            assert mace_s == pytest.approx(worst_mace_s(problem, nodes))
            assert mace_s <= 1.05 * whole.mace_s


def test_after_a_loss_most_operators_stay() -> None:
    problem = drawn(1, m=400, n=40, pinned={7: 3})
    before = mace_hc(problem, 1, budget=SearchBudget(starts=1)).nodes
    nodes, _ = replace_lost(problem, before, 9, most_steps=10)
    stayed = before != 9
    assert (nodes[stayed] == before[stayed]).mean() > 0.9
    assert nodes[7] == 3


def test_a_loss_that_makes_no_sense_is_refused() -> None:
    problem = PlacementProblem(np.ones((2, 3)), np.ones(2), 1.0, pinned={1: 1})
    with pytest.raises(SettingError, match="node 2 of 2 cannot be done without"):
        replace_lost(problem, np.array([0, 1]), 2)
    with pytest.raises(SettingError, match="operator 1 is pinned to node 1, which is lost"):
        replace_lost(problem, np.array([0, 1]), 1)
    alone = PlacementProblem(np.ones((2, 3)), np.ones(1), 1.0)
    with pytest.raises(SettingError, match="of two at least"):
        replace_lost(alone, np.array([0, 0]), 0)
