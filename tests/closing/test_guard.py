"""What a bound promises: the share of windows that miss something, the mean slack, the longest."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from benchmarks.probslack.streams import Stream
from benchmarks.probslack.trial import tried
from slackwater.runtime.closing.aim import Aim
from slackwater.runtime.closing.budget import GUARDS, Budget, GuardWord
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.errors import SettingError
from tests.closing.streams import columns, drawn, missed, ran
from tests.support.chance import chance
from tests.support.examples import a_third

SMALL = {"fit_rows": 40, "first_rows": 8, "tick_ns": 1}
STRICT = {
    "as it is": ProbSlack(0.2, **SMALL),
    "δ small": ProbSlack(0.03, **SMALL),
    "δ large": ProbSlack(0.8, **SMALL),
    "ε fitted": ProbSlack(0.3, scale=None, **SMALL),
    "sliding": ProbSlack(0.2, sliding=True, **SMALL),
    "one fit for all types": ProbSlack(0.2, together=True, **SMALL),
    "not early": ProbSlack(0.2, early=False, **SMALL),
}


@given(name=st.sampled_from(sorted(STRICT)), draw=chance)
def test_the_strict_guard_never_lets_more_miss_than_was_promised(name: str, draw: Random) -> None:
    """At no time, whatever comes: gaps and delays change as they like, types fall silent."""
    policy = STRICT[name]
    assert policy.miss is not None
    rows = [row for n in range(3) for row in _later(drawn(draw, types=2, rows=40), 1_500 * n)]
    if draw.random() < 0.5:
        rows = [row for row in rows if row[0] == 0 or row[2] < 1_000]  # one type falls silent
    windows = WindowEnds(60, draw.choice([3, 10, 25]))
    run = policy.begin(windows)
    for start in range(0, len(rows), 3):
        run.observe(*columns(rows[start : start + 3]))
        counts = run.counts()
        assert counts.missed <= policy.miss * counts.windows + 1e-9
    run.pass_time(rows[-1][2] + 50)
    counts = run.counts()
    assert counts.missed <= policy.miss * counts.windows + 1e-9


def _later(rows: list[tuple[int, int, int]], by: int) -> list[tuple[int, int, int]]:
    return [(kind, made + by, came + by) for kind, made, came in rows]


@given(guard=st.sampled_from(GUARDS), ordered=st.sampled_from([None, True, False]), draw=chance)
def test_what_missed_something_is_counted_whatever_the_guard(
    guard: GuardWord, ordered: bool | None, draw: Random
) -> None:
    rows = drawn(draw, types=draw.randint(1, 3), rows=90, shuffled=draw.random() < 0.5)
    windows = WindowEnds(10_000, draw.choice([3, 10, 25]))  # each has begun: all of them count
    policy = ProbSlack(0.3, guard=guard, ordered=ordered, **SMALL)
    found = ran(policy, windows, rows, until=rows[-1][2] + 50)
    assert found.counts.missed == len(missed(windows, rows, found.closed_at))
    assert found.counts.windows == len(found.closed)
    assert found.counts.slack_ns == sum(at - end for end, at, _ in found.closed)
    # Just before a row came all windows had closed whose time had come before.
    for told, (_, _, came) in zip(found.told, rows, strict=True):
        assert told == max([e for e, at in found.closed_at.items() if at < came], default=-(2**63))


def test_that_events_come_in_no_order_is_found_out() -> None:
    rows = [(0, made, made + (made * 7) % 13) for made in range(0, 3_000, 2)]
    mixed = sorted(rows, key=lambda row: row[2])
    windows = WindowEnds(40, 20)
    found_out, told, in_order = (
        ran(ProbSlack(0.1, ordered=ordered, **SMALL), windows, mixed, until=4_000)
        for ordered in (None, False, True)
    )
    assert found_out.counts.slack_ns == pytest.approx(told.counts.slack_ns, rel=0.05)
    assert found_out.counts.missed <= 0.1 * found_out.counts.windows < in_order.counts.missed
    straight = [(0, made, made + 9) for made in range(0, 3_000, 2)]
    seldom = [(kind, made - 5 * (made % 400 == 0), came) for kind, made, came in straight]
    for rows_in_order in (straight, seldom):  # one in 200 is behind: that is an order still
        watched, sure = (
            ran(ProbSlack(0.1, ordered=ordered, **SMALL), windows, rows_in_order, until=4_000)
            for ordered in (None, True)
        )
        assert (watched.told, watched.closed_at) == (sure.told, sure.closed_at)
        assert watched.counts == sure.counts


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_budget_that_is_spent_makes_no_estimates_of_one_poll(seed: int) -> None:
    draw = Random(seed)  # noqa: S311
    rows = []
    for poll in range(10, 6_000, 10):  # each brings events as old as another oldest
        oldest = draw.choice([8, 12, 12, 12, 30])
        rows += [(0, poll - draw.randint(2, oldest), poll) for _ in range(20)]
    policy = ProbSlack(0.1, fit_rows=600, first_rows=32, tick_ns=1)
    counts = ran(policy, WindowEnds(30, 10), rows, until=6_050).counts
    assert counts.windows > 500
    assert counts.missed <= 0.1 * counts.windows


REGIMES = tuple((tenth / 10 + at / 10, 1 + 9 * (tenth % 2)) for tenth in range(10) for at in (0, 1))
OUT_OF_ORDER = {
    "100 s, 50/s": (100_000, 0.02, 100.0, ((0.0, 1.0),)),
    "1 s, jump": (40_000, 0.1, 1.0, ((0.5, 1.0), (0.5, 21.0))),
    "10 s, grow": (40_000, 0.1, 10.0, ((0.0, 1.0), (1.0, 21.0))),
    "1 s, regimes": (40_000, 0.1, 1.0, REGIMES),
}
"""{mean delay at the beginning: (events, mean gap in s, mean delay in s, factors of delays)}.

Factors are (share of the events, factor), straight between; a share that is there twice is a jump.
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", OUT_OF_ORDER)
def test_the_share_holds_while_delays_exceed_windows_or_grow(kind: str, seed: int) -> None:
    second = 1_000_000_000
    outcome = tried(ProbSlack(0.1), _out_of_order(kind, seed), WindowEnds(second, second))
    assert outcome.windows > 1_000
    assert outcome.mer <= outcome.worst_mer <= 0.1


def _out_of_order(kind: str, seed: int) -> Stream:
    """Return events of one type with exponential delays, in order of arrival."""
    events, gap_s, delay_s, factors = OUT_OF_ORDER[kind]
    rng = np.random.default_rng(seed)
    event_time_ns = np.cumsum(rng.exponential(gap_s * 1e9, events)).astype(np.int64)
    factor = np.interp(np.linspace(0, 1, events), *np.array(factors).T)
    arrival_ns = event_time_ns + (rng.exponential(delay_s * 1e9, events) * factor).astype(np.int64)
    order = np.argsort(arrival_ns, kind="stable")
    types = np.zeros(events, dtype=np.int64)
    return Stream(types, event_time_ns[order], arrival_ns[order])


def test_an_event_decades_ahead_closes_what_lies_between_at_once() -> None:
    rows = [(0, made, made + 5) for made in range(0, 200, 2)]
    rows += [(0, 2**61, 210), (0, 204, 215), (0, 2**61 + 5, 2**61 + 9)]
    found = ran(ProbSlack(0.3, **SMALL), WindowEnds(10, 10), rows, until=2**61 + 40)
    assert found.counts.windows <= 24  # those that had a row, and the one decades on
    assert found.told[-2] > 2**61 - 40
    assert found.counts.missed == len(missed(WindowEnds(10, 10), rows, found.closed_at)) + 1


@a_third
@given(draw=chance)
def test_no_window_closes_before_its_turn_nor_in_another_order(draw: Random) -> None:
    rows = drawn(draw, types=draw.randint(1, 2), rows=90)
    slide = draw.choice([3, 10, 25])
    policy = ProbSlack(0.5, guard="none", early=draw.random() < 0.5, **SMALL)
    found = ran(policy, WindowEnds(10_000, slide), rows, until=rows[-1][2] + 50)
    lead = slide if policy.early else 1
    assert all(at > end - lead for end, at, _ in found.closed)
    ats = [at for _, at, _ in found.closed]
    assert ats == sorted(ats)


def test_the_listings_own_test_lets_the_share_pass_by_one_window() -> None:
    listed, strict = Budget(0.1, "listed", slack_ns=None), Budget(0.1, "strict", slack_ns=None)
    for budget in (listed, strict):
        budget.windows = 5
    assert listed.allows()  # 0/5 < δ; the sixth misses something: 1/6 > δ
    assert not strict.allows()
    strict.windows = 9
    assert strict.allows()  # 1/10 = δ, if it does
    strict.pending = 1  # one more that has closed early may have missed something, too
    assert not strict.allows()
    assert Budget(0.1, "known", slack_ns=None).allows() is False


@a_third
@given(draw=chance)
def test_epsilon_makes_it_wait_for_longer(draw: Random) -> None:
    """[probslack] §3.1: P_miss <= ε·δ. Without the guard nothing else decides."""
    rows = drawn(draw, types=draw.randint(1, 2), rows=90)
    windows = WindowEnds(10_000, 10)
    until = rows[-1][2] + 200
    closed = [
        ran(ProbSlack(0.5, scale=scale, guard="none", **SMALL), windows, rows, until=until)
        for scale in (1.0, 0.5, 0.05)
    ]
    for bold, careful in itertools.pairwise(closed):
        assert all(bold.closed_at[end] <= at for end, at in careful.closed_at.items())


def test_each_of_several_types_has_a_share_of_the_chance() -> None:
    each = Aim(0.19, 1.0, None, slide_ns=1).of_each(2)
    assert each == pytest.approx(0.1)
    assert 1 - (1 - each) ** 2 == pytest.approx(0.19)


@a_third
@given(draw=chance)
def test_no_window_waits_for_longer_than_at_most(draw: Random) -> None:
    rows = drawn(draw, types=draw.randint(1, 2), rows=90, shuffled=draw.random() < 0.5)
    at_most = draw.choice([0, 2, 9])
    ordered = draw.random() < 0.5
    policy = ProbSlack(0.1, at_most_ns=at_most, ordered=ordered, **SMALL)
    windows = WindowEnds(10_000, draw.choice([3, 10]))
    found = ran(policy, windows, rows, until=rows[-1][2] + 50)
    begun = rows[0][2]  # nothing closes before the first rows
    assert all(at <= max(end + at_most, begun) for end, at, _ in found.closed)
    assert found.counts.missed == len(missed(windows, rows, found.closed_at))


@a_third
@given(draw=chance)
def test_the_mean_slack_never_passes_its_bound(draw: Random) -> None:
    rows = drawn(draw, types=draw.randint(1, 2), rows=90, shuffled=draw.random() < 0.5)
    slack = draw.choice([0, 2, 9, 30])
    policy = ProbSlack(None, slack_ns=slack, ordered=draw.random() < 0.5, **SMALL)
    windows = WindowEnds(10_000, draw.choice([3, 10, 25]))
    run = policy.begin(windows)
    first = rows[0][2] + 60  # till then it may pay back what windows had waited before any row
    for start in range(0, len(rows), 3):
        run.observe(*columns(rows[start : start + 3]))
        counts = run.counts()
        if rows[min(start + 2, len(rows) - 1)][2] > first:
            assert counts.slack_ns <= slack * counts.windows
    run.pass_time(rows[-1][2] + 50)
    counts = run.counts()
    assert counts.slack_ns <= slack * counts.windows
    closed_at = ran(policy, windows, rows, until=rows[-1][2] + 50).closed_at
    assert counts.missed == len(missed(windows, rows, closed_at))


@pytest.mark.parametrize("name", ["ordered", "early", "sliding", "together"])
@pytest.mark.parametrize("value", [0, 1, "no", "yes", [], None, np.float64(1)], ids=repr)
def test_a_flag_of_another_type_is_refused_by_its_name(name: str, value: Any) -> None:
    if (name, value) == ("ordered", None):
        return
    with pytest.raises(SettingError, match=rf"probslack: {name}=.* must be True"):
        sw.closing.probslack(miss=0.1, **{name: value})


def test_numbers_of_numpy_are_taken_as_those_of_python() -> None:
    settings = {"scale": np.float32(0.5), "fit_rows": np.int64(40), "first_rows": np.int32(8)}
    policy = sw.closing.probslack(np.float32(0.25), **settings)  # type: ignore[arg-type]
    assert policy == sw.closing.probslack(0.25, scale=0.5, fit_rows=40, first_rows=8)
    assert isinstance(policy, ProbSlack)
    assert type(policy.miss) is float
    assert type(policy.fit_rows) is int


@pytest.mark.parametrize("miss", [np.float32("nan"), np.float64(1), np.int64(0), 1j, np.True_])
def test_a_share_out_of_range_is_refused_in_any_type(miss: Any) -> None:
    with pytest.raises(SettingError, match=r"probslack: miss=.* must be a share of windows"):
        sw.closing.probslack(miss)
