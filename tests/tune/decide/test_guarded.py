from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.control.commands import Warn
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune import GuardedPolicies, GuardedPolicy, SetRelease
from tests.support.graphs import node
from tests.support.rules import release

RULE = ReleaseRule.slack(5)
GRAPH = FlowGraph(
    flow="one",
    steps=(node("buses", "a"), node("gate", "a", is_tuned=True)),
)
GOOD = SetRelease(Subject("gate"), RULE)


class Says:
    """A policy that decides what it is told."""

    name = "says"

    def __init__(self, decides: Callable[[], Any]) -> None:
        self._decides = decides

    def begin(self) -> Sequence[SetRelease]:
        return []

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        del second, samples
        decided: Sequence[SetRelease] = self._decides()
        return decided


def guarded(decides: Callable[[], Any]) -> GuardedPolicy:
    return GuardedPolicy(lambda: Says(decides), GRAPH)


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (SetRelease(Subject("gate"), None), "'gate': None is not a ReleaseRule"),  # type: ignore[arg-type]
        (SetRelease(Subject("gate"), RULE, trials=("model",)), "'gate': 'model' is not a Trial"),  # type: ignore[arg-type]
        (
            SetRelease(Subject("gate"), RULE, trials=(Trial("model", 5),)),
            "'gate': 5 is not a ReleaseRule",
        ),  # type: ignore[arg-type]
        (SetRelease(Subject("buses"), RULE), "step 'buses' has no gate"),
        (SetRelease("gate", RULE), "write sw.tuning.Subject('gate')"),  # type: ignore[arg-type]
        (SetRelease(Subject("gate", 1), RULE), "the flow has no step 'gate.1'"),
        (SetRelease(Subject("elsewhere"), RULE), "the flow has no step 'elsewhere'"),
        (Warn(Subject("elsewhere"), "slow"), "the flow has no step 'elsewhere'"),
        ("gate", "a policy returns SetRelease, not 'gate'"),
    ],
)
def test_a_slack_that_cannot_be_set_is_counted_and_the_others_are_set(
    wrong: Any, claim: str
) -> None:
    policy = guarded(lambda: [wrong, GOOD])
    assert policy.decide(0, {}) == [GOOD]
    assert policy.errors == 1
    assert claim in (policy.last_error or "")


class Reads:
    """A policy that reads one key of its samples."""

    name = "reads"

    def __init__(self, key: Any) -> None:
        self.key, self.got = key, []

    def begin(self) -> Sequence[SetRelease]:
        return []

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        del second
        self.got.append((samples.get(self.key), self.key in samples, dict(samples)))
        return [GOOD]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (
            Subject("buzes"),
            "samples have no step 'buzes', as the flow has no such stage; "
            "the nearest is 'buses'; there are: buses, gate; write sw.tuning.Subject(name)",
        ),
        ("gate.1", "no step 'gate.1', as the flow has no such stage; the nearest is 'gate'"),
        ("gate", "they are of whole steps; write samples.get(sw.tuning.Subject('gate'))"),
        (Subject("gate", 1), "they are of whole steps; write samples.get("),
    ],
    ids=repr,
)
def test_a_wrong_key_of_the_samples_is_an_error_and_no_absence(key: Any, says: str) -> None:
    own = Reads(key)
    policy = GuardedPolicy(lambda: own, GRAPH)
    sample = StageSample(subject=Subject("gate"), second=0)
    assert policy.decide(0, {sample.subject: sample}) == []
    assert own.got == []
    assert policy.errors == 1
    assert says in (policy.last_error or "")


def test_a_step_without_an_answer_is_absent_from_the_samples() -> None:
    own = Reads(Subject("buses"))
    sample = StageSample(subject=Subject("gate"), second=0)
    samples = {sample.subject: sample}
    assert GuardedPolicy(lambda: own, GRAPH).decide(0, samples) == [GOOD]
    assert own.got == [(None, False, samples)]


@pytest.mark.parametrize("slack_ns", [None, -1, 0, 10**12, np.int64(7)])
def test_every_slack_that_can_be_set_is(slack_ns: Any) -> None:
    policy = guarded(lambda: [release("gate", slack_ns, hold_ns=0)])
    assert len(policy.decide(0, {})) == 1
    assert policy.errors == 0


@pytest.mark.parametrize("slack_ns", [-2, 0.5, True, 10**30])
def test_a_slack_that_no_rule_has_is_counted_and_nothing_is_set(slack_ns: Any) -> None:
    policy = guarded(lambda: [GOOD, SetRelease(Subject("gate"), ReleaseRule.slack(slack_ns))])
    assert policy.decide(0, {}) == []
    assert policy.errors == 1
    assert f"slack_ns={slack_ns} must be a whole number" in (policy.last_error or "")


def test_a_policy_that_raises_is_counted_with_its_traceback_and_asked_again() -> None:
    policy = guarded(lambda: [{}["no model"]])
    assert policy.decide(0, {}) == policy.decide(1, {}) == []
    assert policy.errors == 2
    assert re.fullmatch(
        r"KeyError: 'no model', at .*test_guarded.py, line \d+", policy.errors_text() or ""
    )
    assert "Traceback" in (policy.trace or "")
    assert guarded(lambda: None).decide(0, {}) == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("fault", [SystemExit(3), GeneratorExit(), Unspeakable()], ids=repr)
def test_a_policy_may_raise_whatever_it_likes(fault: BaseException) -> None:
    def raises() -> Any:
        raise fault

    policy = guarded(raises)
    assert policy.decide(0, {}) == []
    assert policy.errors == 1
    assert (policy.last_error or "").startswith(type(fault).__name__)


def test_a_policy_that_cannot_be_made_sets_nothing() -> None:
    def make() -> Says:
        raise OSError("the history is not readable")

    policy = GuardedPolicy(make, GRAPH)
    assert (policy.begin(), policy.decide(0, {}), policy.name) == ([], [], None)
    report = policy.noted(TuningReport(1, "sltuner"))
    assert (report.policy, report.errors) == ("sltuner", 1)
    assert (report.last_error or "").startswith("OSError: the history is not readable, at ")


def test_what_a_policy_says_of_itself_becomes_plain_json_and_may_fail() -> None:
    policy = guarded(list)
    assert policy.status() == {}
    policy._policy.status = lambda: {"model": {"r2": np.float64(0.5)}, 3: (1, GOOD)}  # type: ignore[union-attr]
    assert policy.status() == {"model": {"r2": 0.5}, "3": [1, str(GOOD)]}
    policy._policy.status = lambda: 1 / 0  # type: ignore[union-attr]
    assert policy.noted(TuningReport(1, "x")).errors == 1


def test_of_two_policies_of_one_name_each_is_told_and_the_latest_error_stands() -> None:
    def fails() -> list[SetRelease]:
        raise KeyError("the first")

    both = GuardedPolicies([lambda: Says(list), lambda: Says(fails)], GRAPH)
    assert [one.by for one in both.decide(0, {})] == ["says 1", "says 2"]
    report = both.noted(TuningReport(1, "x"))
    assert report.policy == "says 1, says 2"
    assert report.errors == 1
    assert (report.last_error or "").startswith("KeyError: 'the first', at ")


def test_the_first_error_is_told_beside_the_last_and_status_hides_neither() -> None:
    faults = iter([KeyError("first"), OSError("then")])

    def fails() -> list[SetRelease]:
        raise next(faults)

    policy = guarded(fails)
    policy.decide(0, {})
    policy.decide(1, {})
    policy._policy.status = lambda: "all is well"  # type: ignore[union-attr]
    report = policy.noted(TuningReport(1, "x"))
    assert report.errors == 3
    claim = r"OSError: then, at .*, line \d+; the first time: KeyError: 'first', at .*, line \d+"
    assert re.fullmatch(claim, report.last_error or "")


def test_a_status_that_is_no_dict_is_said() -> None:
    policy = guarded(list)
    policy._policy.status = lambda: "all is well"  # type: ignore[union-attr]
    report = policy.noted(TuningReport(1, "x"))
    assert "a policy's status() returns a dict, not 'all is well'" in (report.last_error or "")
