"""Prints of users' functions are shown, and no terminal obeys them."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.actors.jobs.user_output_relay import UserOutputRelay
from slackwater.actors.slot.user_output import OutputLine
from tests.support.flows import late_pair


def test_escapes_in_what_a_function_prints_are_shown_and_not_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with sw.Simulation(1) as nodes:
        relay = UserOutputRelay(nodes.plan(late_pair("late", seconds=1)), {})
    relay.show([OutputLine(False, "[clean] \x1b]0;owned\x07 \u202edone")])
    assert capsys.readouterr() == ("", "[clean] ␛]0;owned␇ \ufffddone\n")
    relay.show([OutputLine(False, "[out] \x1b7", is_result=True)])
    assert capsys.readouterr() == ("[out] ␛7\n", "")
