"""When a running flow is placed anew: if its worst latency gains more than the gap costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate, NodeEstimate
from slackwater.runtime.foresight.chosen.worthwhile import move_worth


def estimate(worst_s: float, load: float = 0.5) -> LatencyEstimate:
    return LatencyEstimate(
        width_s=0.1,
        mace_s=np.array([worst_s]),
        mace_least_s=np.array([worst_s]),
        mace_most_s=np.array([worst_s]),
        held_up_s=np.array([worst_s]),
        has_result=np.array([True]),
        epsilon_s=0.0,
        nodes=(NodeEstimate(name="one", load=load, peak=load, worst_s=worst_s, operators=()),),
    )


@pytest.mark.parametrize(
    ("now_s", "then_s", "gap_s", "is_worth"),
    [
        (2.0, 0.5, 0.25, True),
        (2.0, 0.5, 1.5, False),  # what is gained is what it costs
        (0.7, 0.5, 0.25, False),
        (0.5, 2.0, 0.0, False),
    ],
)
def test_a_move_is_worth_it_if_the_worst_latency_falls_by_more_than_the_gap(
    now_s: float, then_s: float, gap_s: float, is_worth: bool
) -> None:
    assert move_worth(estimate(now_s), estimate(then_s), gap_s=gap_s).is_worth is is_worth


def test_what_falls_behind_for_ever_is_worth_any_gap_unless_it_would_do_so_there_too() -> None:
    behind, fine = estimate(9.0, load=1.2), estimate(0.5)
    assert move_worth(behind, fine, gap_s=3_600.0).is_worth
    assert not move_worth(fine, behind, gap_s=0.0).is_worth
    assert not move_worth(behind, estimate(1.0, load=1.1), gap_s=0.0).is_worth


def test_a_gate_that_holds_rows_for_ever_is_worse_than_any_latency() -> None:
    held, fine = replace(estimate(0.1), is_held=True), estimate(0.5)
    assert held.lasting_worst_s == float("inf")
    assert move_worth(held, fine, gap_s=3_600.0).is_worth
    assert not move_worth(fine, held, gap_s=0.0).is_worth


def test_where_others_take_more_than_there_is_no_rate_is_low_enough() -> None:
    (node,) = estimate(9.0, load=1.75).nodes
    found = replace(estimate(9.0), nodes=(replace(node, others=1.25),))
    assert found.sustainable == 0.0


def test_a_gap_below_zero_is_refused() -> None:
    with pytest.raises(SettingError, match="gap_s=-1 must be 0 or more"):
        move_worth(estimate(1.0), estimate(0.5), gap_s=-1.0)
