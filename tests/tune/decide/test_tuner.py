"""SLTuner: the rule with the best record rules, and the safe one until another has one."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.accounts import TRIAL_S, RuleAccounts
from slackwater.runtime.tune.decide.tuner import MODEL, SAFE_RULE, SlackTuner
from tests.support.gates import JOIN, OUT, PATHS, S, course, second
from tests.support.graphs import paths

DEADLINE = 3 * S
OTHER = "last second, by the clock"


def tuner(known: Sequence[StageSample] = ()) -> SlackTuner:
    tuning = Tuning(predictor="linear")
    return SlackTuner(PATHS, deadline_ns=DEADLINE, tuning=tuning, history=known)


def one(settings: Sequence[SetRelease]) -> SetRelease:
    (only,) = settings
    return only


def told(
    k: int, rows: Mapping[str, int], waits_s: Mapping[str, float] | None = None
) -> dict[Subject, StageSample]:
    """A second in which rules would have let so many rows go, after so long at most."""
    waits = waits_s or {}
    tried = tuple(Tried(name, lost, int(waits.get(name, 1.0) * S)) for name, lost in rows.items())
    samples = second(k, skew_s=1.0, slack_s=2.0)
    return {**samples, JOIN: replace(samples[JOIN], tried=tried)}


def test_it_begins_with_the_safe_rule_by_the_clock_and_lets_the_others_run_along() -> None:
    setting = one(tuner().begin())
    assert (setting.by, setting.rule.slack_ns) == (SAFE_RULE, None)
    assert setting.rule.hold_ns == DEADLINE - 75_000_000
    assert {trial.name for trial in setting.trials} >= {SAFE_RULE, OTHER, "trend-following"}
    assert MODEL not in {trial.name for trial in setting.trials}, "it knows nothing yet"


def test_a_rule_takes_over_once_it_has_run_along_for_long_enough_and_lost_fewer_rows() -> None:
    own = tuner()
    own.begin()
    ruled = [one(own.decide(k, told(k, {SAFE_RULE: 100, OTHER: 50}))).by for k in range(40)]
    assert ruled == [SAFE_RULE] * (TRIAL_S - 1) + [OTHER] * (41 - TRIAL_S)
    status = own.status()
    assert status["seconds"] == {SAFE_RULE: TRIAL_S - 1, OTHER: 41 - TRIAL_S}
    assert "50 rows a second leave as slack-ready of late" in str(status["why"])


def test_as_many_rows_are_no_reason_to_leave_the_safe_rule() -> None:
    own = tuner()
    own.begin()
    for k in range(60):
        assert one(own.decide(k, told(k, {SAFE_RULE: 100, OTHER: 97}))).by == SAFE_RULE


def test_it_goes_back_when_the_record_says_that_it_loses() -> None:
    own = tuner()
    own.begin()
    for k in range(60):
        own.decide(k, told(k, {SAFE_RULE: 100, OTHER: 50}))
    back = [one(own.decide(60 + k, told(60 + k, {SAFE_RULE: 0, OTHER: 50}))).by for k in range(100)]
    assert back[0] == OTHER
    assert back[-1] == SAFE_RULE
    assert back.index(SAFE_RULE) < 60


def test_a_rule_that_would_have_broken_the_deadline_does_not_rule() -> None:
    own = tuner()
    own.begin()
    for k in range(60):
        wait_s = 3.1 if k == 5 else 1.0
        told_ = told(k, {SAFE_RULE: 100, OTHER: 50}, {OTHER: wait_s})
        assert one(own.decide(k, told_)).by == SAFE_RULE


def test_a_second_that_no_rule_could_have_saved_counts_for_the_one_that_led_to_it() -> None:
    own = tuner()
    own.begin()
    for k in range(40):
        ruled = one(own.decide(k, told(k, {SAFE_RULE: 100, OTHER: 50}))).by
    assert ruled == OTHER
    samples = told(40, {SAFE_RULE: 100, OTHER: 50})
    late = replace(samples[OUT], latency_ns=4 * S)  # what `OTHER` let go too late is in its way
    assert one(own.decide(40, {**samples, OUT: late})).by == SAFE_RULE


def test_no_simple_rule_rules_once_the_run_has_used_up_what_may_be_over() -> None:
    own = tuner()
    own.begin()
    third = "trend-following"  # was never over on trial
    ruled = []
    for k in range(100):
        broken = {OTHER: 3.1} if k == 40 else {}
        samples = told(k, {SAFE_RULE: 100, OTHER: 50, third: 80}, broken)
        if k == 40:
            samples[JOIN] = replace(samples[JOIN], latency_ns=int(3.1 * S))
        ruled.append(one(own.decide(k, samples)).by)
    assert ruled[39] == OTHER
    assert set(ruled[40:98]) == {SAFE_RULE}, "one of 100 seconds may be"
    assert ruled[99] == OTHER


@pytest.mark.parametrize(("gates", "until_s"), [(1, 100), (2, 200)])
def test_of_gates_in_a_row_each_may_be_over_in_its_share_of_the_seconds(
    gates: int, until_s: int
) -> None:
    row = [f"gate-{n}" for n in range(gates)]
    inputs = {"in": (), row[0]: ("in",), **{b: (a,) for a, b in pairwise(row)}, "out": (row[-1],)}
    names = "safe", "quick"
    own = RuleAccounts(
        paths(inputs, row), names, benefit=(), deadline_ns=DEADLINE, probability=0.99
    )
    ruled = []
    for k in range(300):
        tried = Tried("safe", 100, 0), Tried("quick", 50, 0)
        samples = {
            gate: StageSample(subject=gate, second=k, tried=tried) for gate in map(Subject, row)
        }
        took_ns = 4 * S if k == 40 else 0
        own.add({**samples, OUT: StageSample(subject=OUT, second=k, latency_ns=took_ns)})
        ruled.append(own.choose(names))
    assert ruled[39] == "quick"
    assert ruled.index("quick", 40) + 1 == until_s


def test_what_others_heaped_up_is_forgotten_by_the_safe_rule() -> None:
    own = tuner()
    own.begin()
    holds_ns = []
    for k in range(140):
        samples = told(k, {SAFE_RULE: 50, OTHER: 50})
        took_ns = 4 * S if 10 <= k < 20 else samples[OUT].latency_ns
        late = replace(samples[OUT], latency_ns=took_ns)
        holds_ns.append(one(own.decide(k, {**samples, OUT: late})).rule.hold_ns or 0)
    assert holds_ns[19] == 0
    assert holds_ns[-1] > DEADLINE // 2


def test_a_second_that_no_rule_could_have_saved_is_held_against_none_that_did_not_rule() -> None:
    own = tuner()
    own.begin()
    for k in range(40):
        samples = told(k, {SAFE_RULE: 100, OTHER: 50})
        took_ns = 4 * S if k == 5 else samples[OUT].latency_ns
        late = replace(samples[OUT], latency_ns=took_ns)
        ruled = one(own.decide(k, {**samples, OUT: late})).by
    assert ruled == OTHER


def test_what_the_gates_work_took_counts_for_every_rule() -> None:
    own = tuner()
    own.begin()
    for k in range(60):
        samples = told(k, {SAFE_RULE: 100, OTHER: 50}, {SAFE_RULE: 1.0, OTHER: 2.9})
        busy = replace(samples[JOIN], latency_ns=2 * S)  # a second more than the rows waited
        assert one(own.decide(k, {**samples, JOIN: busy})).by == SAFE_RULE


def test_the_models_rule_once_their_record_is_better() -> None:
    own = tuner([s for samples in course(150, seed=5) for s in samples.values()])
    own.begin()
    for k in range(TRIAL_S + 1):
        setting = one(own.decide(k, told(k, {SAFE_RULE: 100, MODEL: 50})))
    assert setting.by == MODEL
    assert MODEL in {trial.name for trial in setting.trials}


def test_a_rule_that_comes_later_is_not_the_better_one_for_what_it_did_not_live_through() -> None:
    own = tuner([s for samples in course(150, seed=5) for s in samples.values()])
    own.begin()
    for k in range(40):  # the models do not run along in the worst of it
        own.decide(k, told(k, {SAFE_RULE: 100}))
    for k in range(40, 120):
        assert one(own.decide(k, told(k, {SAFE_RULE: 5, MODEL: 8}))).by == SAFE_RULE
    for k in range(120, 240):
        ruled = one(own.decide(k, told(k, {SAFE_RULE: 8, MODEL: 5}))).by
    assert ruled == MODEL
    assert f"{SAFE_RULE} has 7 over the same seconds" in str(own.status()["why"])


def test_a_history_of_records_is_a_record() -> None:
    known = [s for k in range(40) for s in told(k, {SAFE_RULE: 100, OTHER: 50}).values()]
    own = tuner(known)
    assert one(own.begin()).by == OTHER


def test_a_second_without_the_gates_samples_changes_no_record() -> None:
    own = tuner()
    own.begin()
    samples = told(0, {SAFE_RULE: 100, OTHER: 50})
    del samples[JOIN]
    assert one(own.decide(0, samples)).by == SAFE_RULE
    assert own.status()["records"] == {}


def test_the_same_samples_give_the_same_settings_also_in_another_process() -> None:
    own = tuner()
    own.begin()
    for k in range(20):
        own.decide(k, told(k, {SAFE_RULE: 100, OTHER: 50}))
    other = pickle.loads(pickle.dumps(own))  # noqa: S301 our own
    later = [told(k, {SAFE_RULE: 100, OTHER: 50}) for k in range(20, 50)]
    assert [own.decide(20 + k, s) for k, s in enumerate(later)] == [
        other.decide(20 + k, s) for k, s in enumerate(later)
    ]
