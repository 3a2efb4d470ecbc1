"""A tuner that is far away, slow, refused or dead, in virtual time: seeded, so repeatable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import Command, Move, SetRelease, Warn
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation, TunerModel
from slackwater.runtime.tune import Paths, SlackPolicy, make_policy, measured_ns
from slackwater.runtime.tune.decide.policies import EvenSplit
from tests.simulate.test_policy_host import late_table, plan
from tests.support.rules import release

S, MS = NS_PER_SECOND, 10**6
PLAN = plan(sw.table(late_table(5)))
GRAPH = FlowGraph.of(PLAN)
PATHS = Paths.of(GRAPH)
ROWS = 2 * late_table(0).num_rows
SEEDS = range(3)
BOTH = Subject("both")


class Counting:
    """Sets another slack after each interval, so that one can see which one rules."""

    name = "counting"

    def __init__(self) -> None:
        self.decided = 0

    def begin(self) -> Sequence[SetRelease]:
        return [release("both", 10**12)]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        del samples
        self.decided += 1
        return [release("both", 10**12 + 1 + second)]


def simulate(
    policy: SlackPolicy, tuner: TunerModel, *, seed: int = 0, plan: Plan = PLAN
) -> tuple[Simulation, JobReport]:
    one = Simulation(
        plan,
        egress=lambda *_: None,
        seed=seed,
        cost=CostModel(jitter=3),
        link=LinkModel(jitter_ns=10 * MS),
        policy=policy,
        tuner=tuner,
    )
    report = one.run()
    assert report.ledger.is_balanced
    assert report.ledger.entered == ROWS
    return one, report


def rule_now(one: Simulation) -> ReleaseRule:
    gate = one._slots["b"].stages["both"].gate
    assert gate is not None
    return gate.rule


def seconds_of(report: JobReport) -> list[int]:
    assert report.tuning is not None
    return [span.second for span in report.tuning.series.spans]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_commands_that_overtake_each_other_on_a_long_way_the_last_one_rules(seed: int) -> None:
    far = TunerModel(link=LinkModel(delay_ns=1, jitter_ns=4 * S))
    one, report = simulate(Counting(), far, seed=seed)
    assert rule_now(one).slack_ns is not None
    in_samples = [s.rule.slack_ns for s in one.samples if s.stage == "both"]
    slacks = [slack_ns for slack_ns in in_samples if slack_ns is not None]
    assert slacks == sorted(slacks), "a rule that was meant before came after"
    again, same = simulate(Counting(), far, seed=seed)
    assert (one.samples, one.settings) == (again.samples, again.settings)
    assert report.to_json() == same.to_json()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_that_comes_late_counts_and_nobody_waits_for_it(seed: int) -> None:
    policy = Counting()
    slow = TunerModel(link=LinkModel(delay_ns=200 * MS, jitter_ns=800 * MS))  # a round is 500 ms
    one, report = simulate(policy, slow, seed=seed)
    seconds = seconds_of(report)
    assert seconds == list(range(len(seconds)))
    assert len(seconds) >= 25  # the last are still on their way as the run ends
    keys = [(sample.stage, sample.second) for sample in one.samples]
    assert len(keys) == len(set(keys))
    assert policy.decided > 10
    assert all(second >= 0 for second, _ in one.settings)


def test_a_decision_that_takes_seconds_stops_nothing_and_the_seconds_meanwhile_are_shown() -> None:
    policy = Counting()
    one, report = simulate(policy, TunerModel(takes_ns=2_500 * MS))
    assert seconds_of(report) == sorted({sample.second for sample in one.samples})
    assert 8 <= policy.decided <= 16
    interval_ns = [second for second, _ in one.settings]
    assert interval_ns == list(range(len(interval_ns))), "each second once, in order"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", [None, LinkModel(delay_ns=50 * MS, jitter_ns=200 * MS)])
def test_while_no_tuner_lives_rules_stay_and_the_next_one_goes_on(
    seed: int, link: LinkModel | None
) -> None:
    dies_ns, back_ns = 10 * S + 300 * MS, 14 * S + 300 * MS
    one, report = simulate(
        Counting(), TunerModel(link=link, deaths_ns=((dies_ns, back_ns),)), seed=seed
    )
    assert report.tuning is not None
    assert report.tuning.restarts == 1
    seconds = seconds_of(report)
    assert seconds[0] == 0
    assert len(seconds) == len(set(seconds))
    # It lost what was on its way, and all that it had heard since the job last asked it.
    assert len(set(range(seconds[-1])) - set(seconds)) <= 3
    slack = {k: s[BOTH].rule.slack_ns for k, s in by_second(one.samples).items() if BOTH in s}
    quiet = {slack[k] for k in range(11, 14) if k in slack}
    assert len(quiet) == 1, "nobody sets anything"
    slacks = [slack[k] or 0 for k in sorted(slack)]
    assert slacks == sorted(slacks), "the second one does not begin anew"
    assert slacks[-1] > max(slack_ns or 0 for slack_ns in quiet)


def test_who_takes_the_place_of_a_dead_one_learns_from_what_that_one_had_heard() -> None:
    heard: list[Sequence[StageSample]] = []

    def successor(samples: Sequence[StageSample]) -> SlackPolicy:
        heard.append(samples)
        made = make_policy(GRAPH, Tuning(), history=samples)
        assert made is not None
        return made

    first = make_policy(GRAPH, Tuning())
    assert first is not None
    fates = ((9 * S + 1, 10 * S), (20 * S + 1, 20 * S + 2))
    _, report = simulate(first, TunerModel(deaths_ns=fates, successor=successor))
    assert [max(sample.second for sample in samples) for samples in heard] == [7, 18]
    assert report.tuning is not None
    assert (report.tuning.restarts, report.tuning.errors) == (2, 0)


@pytest.mark.parametrize("interval_ns", [S // 2, S, 2 * S])
def test_samples_are_of_any_length_and_the_deadline_is_kept_by_them(interval_ns: int) -> None:
    policy = EvenSplit(PATHS, deadline_ns=2 * S, margin_ns=10**8)
    one, report = simulate(
        policy, TunerModel(), plan=replace(PLAN, tuning=Tuning(interval=f"{interval_ns}ns"))
    )
    intervals = by_second(one.samples)
    assert list(intervals) == list(range(len(intervals)))
    assert {sample.interval_ns for sample in one.samples} == {interval_ns}
    assert abs(len(intervals) * interval_ns - 32 * S) <= 4 * S
    assert sum(samples[BOTH].rows for samples in intervals.values()) >= 0.9 * ROWS
    worst_ns = max(PATHS.latency_ns(measured_ns(samples)) for samples in intervals.values())
    assert worst_ns <= 2 * S
    assert report.tuning is not None
    assert report.tuning.interval_ns == interval_ns
    assert np.isclose(report.tuning.seconds, len(intervals))


class Wants(Counting):
    """Also wants what no slot can do yet, once, and warns each second."""

    def begin(self) -> Sequence[Command]:  # type: ignore[override]
        return [*super().begin(), Move(Subject("both"), "a")]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[Command]:  # type: ignore[override]
        return [*super().decide(second, samples), Warn(Subject("both"), "it is slow")]


def test_what_a_slot_cannot_do_is_the_policys_mistake_and_a_warning_is_a_note() -> None:
    _, report = simulate(Wants(), TunerModel())  # type: ignore[arg-type]
    tuning = report.tuning
    assert tuning is not None
    assert tuning.errors == 1
    assert "stage 'both' cannot move to slot 'a' while it runs" in (tuning.last_error or "")
    (note,) = [note for note in report.notes if "warns of" in note]
    assert note == f"the policy 'counting' warns of both: it is slow ({tuning.seconds} times)"
