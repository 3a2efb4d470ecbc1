"""What a gate does in the next second if its writers go on as they did."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.tune.predict.forecast import GateStates, next_second


def gate(
    *, skew: float, slope: float = 0.0, speed: float = 1.0, held_s: float, rate: float = 500.0
) -> GateStates:
    held = rate * held_s * speed
    return GateStates(*(np.array([one]) for one in (skew, slope, speed, held_s, held)))


def test_a_row_waits_for_the_frontier_or_for_the_slack_whichever_is_first() -> None:
    wait_s, _ = next_second(gate(skew=3.0, held_s=2.0), np.array([2.0, 4.0]))
    assert wait_s == pytest.approx([2.0, 3.0])


def test_in_a_replay_slack_is_event_time_and_waiting_is_the_clock() -> None:
    wait_s, _ = next_second(gate(skew=30.0, speed=10.0, held_s=2.0), np.array([20.0]))
    assert wait_s == pytest.approx([2.0])


def test_under_a_slack_that_binds_a_second_of_the_fast_writer_is_slack_ready() -> None:
    _, early = next_second(gate(skew=3.0, held_s=2.0), np.array([2.0]))
    assert early == pytest.approx([500.0])


def test_a_slack_that_is_halved_lets_the_difference_go_at_once() -> None:
    wait_s, early = next_second(gate(skew=3.0, held_s=2.0), np.array([1.0]))
    assert wait_s == pytest.approx([2.0])
    assert early == pytest.approx([500.0 + 500.0])


def test_a_slack_that_the_skew_reaches_in_half_a_second_binds_for_the_other_half() -> None:
    _, early = next_second(gate(skew=1.9, slope=0.2, held_s=1.9), np.array([2.0]))
    assert early == pytest.approx([250.0])


def test_a_slack_beyond_the_skew_lets_nothing_go_early() -> None:
    _, early = next_second(gate(skew=3.0, slope=0.2, held_s=3.0), np.array([3.3, np.inf]))
    assert early == pytest.approx([0.0, 0.0])


lengths = st.floats(0.0, 60.0)


@given(
    skew=lengths,
    share=st.floats(0.0, 1.0),
    slope=st.floats(-20.0, 20.0),
    speed=st.floats(0.1, 20.0),
    slacks=st.lists(lengths, min_size=2, max_size=6),
)
def test_with_the_slack_waits_never_fall_and_slack_ready_rows_never_grow(
    skew: float, share: float, slope: float, speed: float, slacks: list[float]
) -> None:
    state = gate(skew=skew, slope=slope, speed=speed, held_s=share * skew / speed)
    wait_s, early = next_second(state, np.sort(np.array(slacks)))
    assert (np.diff(wait_s) >= -1e-9).all()
    assert (np.diff(early) <= 1e-6 * (1.0 + early[:-1])).all()
