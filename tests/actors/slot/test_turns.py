"""Threads of a slot's process wait for the interpreter for a short turn of another."""

from __future__ import annotations

import sys

from slackwater.actors.slot.process_setup import TURN_S, take_short_turns


def test_a_turn_is_at_most_the_time_in_which_a_loop_saves_more_of_a_cut() -> None:
    before_s = sys.getswitchinterval()
    try:
        take_short_turns()
        assert sys.getswitchinterval() <= TURN_S <= 0.001
    finally:
        sys.setswitchinterval(before_s)
