"""How rows are cut into calls, when time is passed between, and a restore: none of it shows."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.runtime.closing import probslack_run, settling
from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven
from slackwater.runtime.closing.windows import WindowEnds
from tests.closing.streams import Row, columns, drawn, ran
from tests.support.chance import Seeded, chance
from tests.support.examples import a_third

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


IN_DISORDER = [name for name, policy in POLICIES.items() if isinstance(policy, ProbSlack)]


@a_third
@example(name="strict", draw=Seeded(82))  # a stretch breaks off at a tick at which many close
@example(name="strict", draw=Seeded(18))  # and what is known then is not for others of that tick
@example(name="strict", draw=Seeded(55))  # windows are known one by one in a pause
@given(name=st.sampled_from(IN_DISORDER), draw=chance)
def test_no_pause_that_is_passed_at_once_shows(name: str, draw: Random) -> None:
    policy = replace(POLICIES[name], ordered=False)  # type: ignore[type-var]
    windows = WindowEnds(draw.choice([10, 30]), draw.choice([3, 7, 10]))
    rows: list[Row] = []
    for _ in range(3):
        begin = rows[-1][2] if rows else 0
        pause = draw.choice([0, 400, 1_321, 3_000])
        some = drawn(draw, types=draw.randint(1, 2), rows=40, shuffled=True)
        early = draw.choice([0, 0, pause // 2])  # rows of the pause itself, which come after it
        rows += [(k, made + begin + pause - early, came + begin + pause) for k, made, came in some]
    until = rows[-1][2] + draw.choice([50, 2_000])
    with patch.multiple(probslack_run, MOST_OPEN=64, FEW_OPEN=2**40):
        expected = ran(policy, windows, rows, until=until)
    cut = draw if draw.random() < 0.5 else None
    with patch.multiple(probslack_run, MOST_OPEN=64, FEW_OPEN=draw.choice([4, 16])):
        assert ran(policy, windows, rows, until=until, cut=cut) == expected


def test_a_pause_of_months_out_of_order_costs_no_time() -> None:
    draw, pause = Random(3), 20 * 86_400_000  # noqa: S311 - a draw
    rows = drawn(draw, rows=400, shuffled=True)
    rows += [(kind, made + pause, came + pause) for kind, made, came in rows]
    run = ProbSlack(0.1, ordered=False, **SMALL).begin(WindowEnds(10, 10))
    with patch.object(run, "_settle", wraps=run._settle) as settle:  # type: ignore[attr-defined]
        run.observe(*columns(rows))
    assert settle.call_count < 100
    assert run.counts().empty > pause // 10 - 400


def test_a_new_type_in_the_tick_after_a_pause_is_learned_first() -> None:
    after = 250_000  # further than windows are looked at ahead
    rows = [(0, 10 * i, 10 * i + 2) for i in range(300)]
    rows += [(0, after, after + 2), (1, after, after + 2)]
    rows += [(i % 2, after + 90 * i, after + 90 * i + 2) for i in range(1, 100)]
    policy = ProbSlack(0.1, ordered=True, at_most_ns=4, **SMALL)
    found = ran(policy, WindowEnds(10, 10), rows, until=rows[-1][2] + 50)
    assert found.counts.windows > 390
