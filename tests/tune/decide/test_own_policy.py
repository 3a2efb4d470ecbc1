"""A policy of the user's: an object, a class or a function; each job has its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune import make_policy
from tests.support.flows import late_pair
from tests.support.graphs import node
from tests.support.rules import release, rule

GRAPH = FlowGraph(
    flow="one",
    steps=(node("gate", "a", is_tuned=True), node("out", "a")),
    deadline_ns=10**9,
)
GATE_STEP = Subject("gate")


class Mine:
    """Counts the seconds that it was shown, and sets as many milliseconds."""

    def __init__(self, gate: Subject = GATE_STEP) -> None:
        self.gate, self.seen = gate, 0

    def begin(self) -> Sequence[SetRelease]:
        return [SetRelease(self.gate, rule(0))]

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        del second, samples
        self.seen += 1
        return [SetRelease(self.gate, rule(self.seen * 10**6))]

    def status(self) -> Mapping[str, object]:
        return {"seen": self.seen}


class ByGraph(Mine):
    def __init__(self, graph: FlowGraph) -> None:
        super().__init__(graph.tuned[0])


class Half:
    def begin(self) -> Sequence[SetRelease]:
        return []


def made(policy: Any) -> Any:
    return make_policy(GRAPH, Tuning(policy=policy))


@pytest.mark.parametrize("policy", [Mine(), ByGraph, lambda graph: Mine(graph.tuned[0])])
def test_each_job_has_its_own_with_what_it_was_given(policy: Any) -> None:
    one, other = made(policy), made(policy)
    one.decide(0, {})
    assert (one.seen, other.seen) == (1, 0)
    assert list(other.begin()) == [release("gate", 0)]


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (7, r"policy=7 is an int without begin\(\) and decide\(second, samples\)"),
        (Half(), r"is a Half without decide\(second, samples\): a custom policy has begin"),
        (None, "is None without"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_rule(policy: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        Tuning(policy=policy)


def test_what_a_function_makes_must_be_a_policy() -> None:
    with pytest.raises(SettingError, match=r"which cannot be a policy: it lacks decide\("):
        made(lambda _: Half())


def test_what_cannot_be_copied_is_refused_as_it_could_not_be_sent() -> None:
    own = Mine()
    own.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(SettingError, match="cannot be copied for a job, nor sent to it"):
        made(own)


@pytest.mark.parametrize(
    ("policy", "name"),
    [("even split", "even split"), (Mine(), "Mine"), (ByGraph, "ByGraph"), (made, "made")],
)
def test_a_policy_has_a_name_before_it_is_made(policy: Any, name: str) -> None:
    assert Tuning(policy=policy).policy_name == name


def test_the_report_knows_it_by_its_class_and_has_what_it_says_of_itself() -> None:
    policy = Mine()
    with sw.Simulation(2) as nodes:
        flow = late_pair("late", seconds=4, deadline="1s")
        report = nodes.submit(flow, tuning=sw.Tuning(policy=policy)).wait()
    tuning = report.tuning
    assert tuning is not None
    assert (tuning.policy, tuning.gates[0].by) == ("Mine", "Mine")
    assert tuning.status == {"seen": tuning.seconds}
    assert tuning.gates[0].rule.slack_ns == tuning.seconds * 10**6
    assert policy.seen == 0
