"""How rows are cut into calls, when time is passed between, and a restore: none of it shows."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.closing import Closing, WindowEnds, settling
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven
from tests.closing.streams import columns, drawn, ran
from tests.support.chance import chance

SMALL = {"fit_rows": 40, "first_rows": 8, "tick_ns": 1}
POLICIES: dict[str, Closing] = {
    "event-driven": EventDriven(tick_ns=1),
    "event-driven, disorder": EventDriven(12, tick_ns=3),
    "ignore": ByTime(0, tick_ns=1),
    "so long": ByTime(7, tick_ns=2),
    "mean delay": ByTime(tick_ns=1),
    "strict": ProbSlack(0.2, **SMALL),
    "known": ProbSlack(0.2, guard="known", **SMALL),
    "listed": ProbSlack(0.2, guard="listed", **SMALL),
    "no guard": ProbSlack(0.2, guard="none", **SMALL),
    "much allowed": ProbSlack(0.7, **SMALL),
    "little allowed": ProbSlack(0.02, **SMALL),
    "ε given": ProbSlack(0.4, scale=0.5, **SMALL),
    "ε fitted": ProbSlack(0.3, scale=None, **SMALL),
    "sliding": ProbSlack(0.2, sliding=True, **SMALL),
    "together": ProbSlack(0.2, together=True, **SMALL),
    "not early": ProbSlack(0.3, early=False, **SMALL),
    "not early, at most": ProbSlack(0.3, early=False, at_most_ns=0, **SMALL | {"tick_ns": 7}),
    "not early, in order": ProbSlack(0.3, early=False, ordered=True, **SMALL),
    "not early, slack bounded": ProbSlack(None, slack_ns=3, early=False, **SMALL),
    "at most": ProbSlack(0.1, at_most_ns=4, **SMALL),
    "surely in order": ProbSlack(0.2, ordered=True, **SMALL),
    "of any order": ProbSlack(0.2, ordered=False, **SMALL),
    "of any order, at most": ProbSlack(0.2, ordered=False, at_most_ns=3, **SMALL),
    "slack bounded": ProbSlack(None, slack_ns=3, **SMALL),
    "slack bounded, of any order": ProbSlack(None, slack_ns=3, ordered=False, **SMALL),
    "slack bounded, at most": ProbSlack(None, slack_ns=3, at_most_ns=6, **SMALL),
    "a coarse tick": ProbSlack(0.2, fit_rows=40, first_rows=8, tick_ns=7),
}


@given(name=st.sampled_from(sorted(POLICIES)), draw=chance)
def test_no_cut_shows(name: str, draw: Random) -> None:
    policy = POLICIES[name]
    rows = drawn(draw, types=draw.randint(1, 3), rows=120, shuffled=draw.random() < 0.5)
    slide = draw.choice([3, 10, 40])
    windows = WindowEnds(slide * draw.choice([1, 2, 9]) if draw.random() < 0.8 else 2, slide)
    until = rows[-1][2] + draw.choice([0, 1, 50, 1_000])
    whole = ran(policy, windows, rows, until=until)
    assert ran(policy, windows, rows, until=until, cut=draw) == whole


@given(name=st.sampled_from(sorted(POLICIES)), draw=chance)
def test_no_shortcut_shows(name: str, draw: Random) -> None:
    policy = POLICIES[name]
    rows = drawn(draw, types=draw.randint(1, 4), rows=150, shuffled=draw.random() < 0.2)
    windows = WindowEnds(draw.choice([10, 30]), draw.choice([3, 10]))
    with patch.object(settling, "_FEWEST_AT_ONCE", 1):
        short = ran(policy, windows, rows, until=rows[-1][2] + 50)
    with patch.object(settling, "_FEWEST_AT_ONCE", len(rows) * 1_000):  # each window by itself
        assert ran(policy, windows, rows, until=rows[-1][2] + 50) == short


@given(name=st.sampled_from(sorted(POLICIES)), draw=chance)
def test_nothing_closes_before_it_is_said_to_and_each_time_said_is_another(
    name: str, draw: Random
) -> None:
    policy = POLICIES[name]
    rows = drawn(draw, types=draw.randint(1, 2), rows=60, shuffled=draw.random() < 0.5)
    windows = WindowEnds(20, 10)
    run = policy.begin(windows)
    run.observe(*columns(rows))
    passed = rows[-1][2] + 1
    closed = run.pass_time(passed)
    for _ in range(8):
        due = run.next_ns()
        if due is None:
            assert run.pass_time(passed + 10_000) == closed
            return
        assert due > passed
        assert run.pass_time(due - 1) == closed
        closed, passed = run.pass_time(due), due


@given(name=st.sampled_from([one for one in POLICIES if one.startswith("not early")]), draw=chance)
def test_no_window_closes_before_its_end_though_rows_are_heard_before_their_time(
    name: str, draw: Random
) -> None:
    rows = drawn(draw, types=draw.randint(1, 3), rows=120, shuffled=draw.random() < 0.3)
    heard = [(kind, made + draw.choice([60, 5_000]), came) for kind, made, came in rows]
    windows = WindowEnds(draw.choice([10, 30]), draw.choice([3, 10]))
    found = ran(POLICIES[name], windows, heard if draw.random() < 0.5 else rows, until=6_000)
    assert found.closed_at
    assert all(at >= end for end, at in found.closed_at.items())
