"""Each policy on a series of samples made by hand."""

from __future__ import annotations

import pytest

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import by_step
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune import SetRelease, SlackPolicy
from slackwater.runtime.tune.decide.policies import (
    Aimd,
    Calibration,
    EvenSplit,
    LargestDelay,
    StaticSlack,
    deadline_margin_ns,
    make_split,
    the_last,
)
from tests.support.graphs import paths
from tests.support.rules import rule

S = NS_PER_SECOND
PATHS = paths(
    {"in": (), "one": ("in",), "two": ("one",), "out": ("two",)},
    ("one", "two"),
)


def sample(stage: str, second: int = 0, **what: int) -> StageSample:
    return StageSample(subject=Subject(stage), second=second, **{"rows": 1, **what})  # type: ignore[arg-type]


def slacks(settings: object) -> dict[str, int | None]:
    assert isinstance(settings, list)
    assert all(isinstance(one, SetRelease) and one.by for one in settings)
    return {one.subject.name: one.rule.slack_ns for one in settings}


def decide(policy: SlackPolicy, second: int, *samples: StageSample) -> dict[str, int | None]:
    return slacks(policy.decide(second, by_step(samples)))


@pytest.mark.parametrize(("slack_ns", "name"), [(S, "static 1.00 s"), (None, "ready-only")])
def test_static_sets_its_slack_once(slack_ns: int | None, name: str) -> None:
    policy = StaticSlack(PATHS, rule(slack_ns))
    assert policy.name == name
    assert slacks(policy.begin()) == {"one": slack_ns, "two": slack_ns}
    assert decide(policy, 0, sample("out", latency_ns=9 * S)) == {}


def test_max_timestamp_follows_the_largest_skew_of_each_gate_and_never_falls() -> None:
    policy = LargestDelay(PATHS)
    assert slacks(policy.begin()) == {"one": 0, "two": 0}
    assert decide(policy, 0, sample("one", newest_ns=9, frontier_ns=4)) == {"one": 5}
    assert decide(policy, 1, sample("one", newest_ns=20, frontier_ns=19)) == {}
    both = sample("one", newest_ns=40, frontier_ns=10), sample("two", newest_ns=3, frontier_ns=1)
    assert decide(policy, 2, *both) == {"one": 30, "two": 2}


def test_tcp_halves_when_latency_grows_and_adds_a_second_when_it_falls() -> None:
    policy = Aimd(PATHS, start_ns=3 * S)
    assert slacks(policy.begin()) == {"one": 3 * S, "two": 3 * S}
    series = [
        (4 * S, None),  # nothing to compare with
        (5 * S, 3 * S // 2),
        (5 * S, None),
        (2 * S, 5 * S // 2),
        (1 * S, 7 * S // 2),
        (6 * S, 7 * S // 4),
    ]
    for second, (latency_ns, slack_ns) in enumerate(series):
        found = decide(policy, second, sample("one", latency_ns=latency_ns))
        assert found == ({} if slack_ns is None else {"one": slack_ns, "two": slack_ns})


def test_tcp_does_not_take_a_second_without_work_for_a_fast_one() -> None:
    policy = Aimd(PATHS, start_ns=4 * S)
    decide(policy, 0, sample("one", latency_ns=5))
    assert decide(policy, 1, sample("one", rows=0)) == {}
    assert decide(policy, 2) == {}
    assert decide(policy, 3, sample("one", latency_ns=6))["one"] == 2 * S


def test_tcp_looks_at_the_whole_path() -> None:
    policy = Aimd(PATHS, start_ns=4 * S)
    decide(policy, 0, sample("one", latency_ns=5), sample("out", comm_ns=5))
    assert decide(policy, 1, sample("one", latency_ns=6), sample("out", comm_ns=4)) == {}
    assert decide(policy, 2, sample("one", latency_ns=6), sample("out", comm_ns=5))["one"] == 2 * S


def test_the_even_split_remembers_the_most_that_the_rest_has_taken() -> None:
    policy = EvenSplit(PATHS, deadline_ns=6 * S)
    assert slacks(policy.begin()) == {"one": 3 * S, "two": 3 * S}
    assert decide(policy, 0, sample("out", latency_ns=S, comm_ns=S))["one"] == 2 * S
    assert decide(policy, 1, sample("out", latency_ns=S))["one"] == 2 * S
    # Each stage is remembered by itself, gates' own waits are not.
    assert decide(policy, 2, sample("in", latency_ns=2 * S), sample("two", latency_ns=9 * S)) == {
        "one": S,
        "two": S,
    }


def test_the_even_split_that_forgets_takes_the_last_second_that_had_work() -> None:
    policy = EvenSplit(PATHS, deadline_ns=6 * S, expects=the_last)
    decide(policy, 0, sample("out", latency_ns=2 * S))
    assert decide(policy, 1, sample("out", rows=0))["one"] == 2 * S
    assert decide(policy, 2, sample("out", latency_ns=S))["one"] == 5 * S // 2


def test_by_the_clock_the_even_split_sets_holds_and_no_slack() -> None:
    policy = EvenSplit(PATHS, deadline_ns=6 * S, holds=True)
    assert [(one.subject.name, one.rule.slack_ns, one.rule.hold_ns) for one in policy.begin()] == [
        ("one", None, 3 * S),
        ("two", None, 3 * S),
    ]


def test_the_trend_is_followed_by_four_times_its_last_rise_and_not_by_its_falls() -> None:
    policy = make_split(PATHS, "trend-following", deadline_ns=10 * S)
    budget_ns = 10 * S - deadline_margin_ns(10 * S)

    def hold_ns(second: int, took_ns: int) -> int | None:
        known = by_step([sample("out", second, latency_ns=took_ns)])
        return policy.decide(second, known)[0].rule.hold_ns

    assert all(one.rule.slack_ns is None for one in policy.begin())
    assert hold_ns(0, S) == (budget_ns - S) // 2
    assert hold_ns(1, 2 * S) == (budget_ns - 2 * S - 4 * S) // 2
    assert hold_ns(2, S) == (budget_ns - S) // 2


def test_the_steady_trend_is_followed_by_three_times_its_mean_rise_of_two_seconds() -> None:
    policy = make_split(PATHS, "steady trend", deadline_ns=20 * S)
    rest_ns = []
    for second, took_s in enumerate((1, 2, 2, 1)):
        known = by_step([sample("out", second, latency_ns=took_s * S)])
        hold_ns = policy.decide(second, known)[0].rule.hold_ns
        assert hold_ns is not None
        rest_ns.append(20 * S - deadline_margin_ns(20 * S) - 2 * hold_ns)
    assert rest_ns == pytest.approx([S, 2 * S + 3 * S, 2 * S + 1.5 * S, S], abs=2)


@pytest.mark.parametrize(
    ("name", "left"), [("decaying maximum", 0.9), ("slowly decaying maximum", 0.99)]
)
def test_a_maximum_decays_by_a_share_of_it_a_second(name: str, left: float) -> None:
    policy = make_split(PATHS, name, deadline_ns=10 * S)
    rest_ns = []
    for second, took_ns in enumerate((S, 0, 0, S)):
        settings = policy.decide(second, by_step([sample("out", second, latency_ns=took_ns)]))
        assert settings[0].rule.hold_ns is not None
        rest_ns.append(10 * S - deadline_margin_ns(10 * S) - 2 * settings[0].rule.hold_ns)
    assert rest_ns == pytest.approx([S, left * S, left**2 * S, S], abs=2)


@pytest.mark.parametrize(
    ("deadline_ns", "expected_ns"), [(S, S // 40), (6 * S, 150_000_000), (60 * S, 150_000_000)]
)
def test_every_rule_keeps_back_the_same(deadline_ns: int, expected_ns: int) -> None:
    assert deadline_margin_ns(deadline_ns) == expected_ns


def test_the_even_split_keeps_its_margin_back_and_never_goes_below_nothing() -> None:
    assert slacks(EvenSplit(PATHS, deadline_ns=6 * S, margin_ns=S).begin())["one"] == 5 * S // 2
    assert slacks(EvenSplit(PATHS, deadline_ns=S, margin_ns=2 * S).begin())["one"] == 0
    policy = EvenSplit(PATHS, deadline_ns=S)
    assert decide(policy, 0, sample("out", latency_ns=5 * S)) == {"one": 0, "two": 0}


def test_calibration_draws_every_few_seconds_within_its_range_and_by_its_seed() -> None:
    def drawn(seed: int) -> list[dict[str, int | None]]:
        policy = Calibration(PATHS, most_ns=6 * S, every_s=5, seed=seed)
        return [slacks(policy.begin()), *(decide(policy, second) for second in range(200))]

    series = drawn(1)
    assert [n for n, found in enumerate(series) if found] == list(range(0, 201, 5))
    values = [value for found in series for value in found.values()]
    assert all(value is not None and 0 <= value <= 6 * S for value in values)
    assert len(set(values)) > 70
    assert drawn(1) == series
    assert drawn(2) != series


def test_calibration_goes_on_after_seconds_that_nobody_has_told_it_of() -> None:
    policy = Calibration(PATHS, most_ns=6 * S, every_s=5)
    assert decide(policy, 11)
    assert not decide(policy, 12)
    assert decide(policy, 16)
