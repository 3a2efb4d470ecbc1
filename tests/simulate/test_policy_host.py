"""A policy in the simulator: once a second, repeatable, and never a reason to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.config import Limits
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import JobStopped
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, Batch, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Slice
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths, SetRelease, SlackPolicy, measured_ns
from slackwater.runtime.tune.decide.policies import (
    Aimd,
    Calibration,
    EvenSplit,
    StaticSlack,
)
from tests.support.endless import SilentInput
from tests.support.rules import release

ReadyOnly: TypeAlias = tuple[Simulation, list[int]]
SECONDS = 30
LIMITS = Limits(source_gap_ns=20_000_000)


def late_table(late_s: float) -> pa.Table:
    """Return 20 rows a second; those of seconds 10 to 20 arrive so much late, in order."""
    times = np.arange(SECONDS * 20, dtype=np.int64) * (NS_PER_SECOND // 20)
    is_late = (times >= 10 * NS_PER_SECOND) & (times < 20 * NS_PER_SECOND)
    arrival = np.maximum.accumulate(times + is_late * round(late_s * NS_PER_SECOND))
    return pa.table({"ts": times, "arrival": arrival})


def silence() -> sw.connectors.Input:
    """Return an input that never has anything and never ends."""
    return SilentInput(sw.table(late_table(0).slice(0, 0)))


def plan(late: sw.connectors.Input) -> Plan:
    flow = sw.Dataflow("late", deadline="2s")
    inputs = {"on time": sw.table(late_table(0)), "late": late}
    sources = [
        flow.source(name.replace(" ", "-"), one, event_time="ts", arrival="arrival", speed=1.0)
        for name, one in inputs.items()
    ]
    sources[0].merge(sources[1], name="both").sink("out", sw.collect_sink())
    where = {"*": "a", "both": "b", "out": "c"}
    placed = place(
        flow.name,
        plan_stages(flow.graph),
        ["a", "b", "c"],
        placement=where,
        deadline_ns=flow.deadline_ns,
    )
    return replace(placed, limits=LIMITS)


def simulate(
    policy: SlackPolicy | None, late: sw.connectors.Input | None = None, *, seed: int = 0
) -> tuple[Simulation, list[int]]:
    """Return a run that is over, and the event times that left."""
    out: list[int] = []

    def egress(stage: str, batch: Batch | None, is_end: bool) -> None:
        out.extend([] if batch is None else batch.event_time_ns.tolist())

    one = Simulation(
        plan(late or sw.table(late_table(5))),
        egress=egress,
        seed=seed,
        cost=CostModel(jitter=3),
        link=LinkModel(jitter_ns=10**7),
        policy=policy,
    )
    report = one.run()
    assert report.ledger.is_balanced
    return one, out


PATHS = Paths.of(FlowGraph.of(plan(silence())))


@pytest.fixture(scope="module")
def ready_only() -> ReadyOnly:
    """A run that waits for all, and the event times that left."""
    return simulate(StaticSlack(PATHS, READY_ONLY))


def latency_s(one: Simulation) -> dict[int, float]:
    return {
        second: PATHS.latency_ns(measured_ns(samples)) / NS_PER_SECOND
        for second, samples in by_second(one.samples).items()
    }


def test_one_seed_gives_one_run_with_the_same_samples_and_settings() -> None:
    def once(seed: int) -> tuple[list[StageSample], list[tuple[int, SetRelease]], list[int]]:
        one, out = simulate(Aimd(PATHS, start_ns=NS_PER_SECOND), seed=seed)
        return one.samples, one.settings, out

    first = once(1)
    assert first == once(1)
    assert first[0] != once(2)[0]


def test_every_stage_has_one_sample_a_second(ready_only: ReadyOnly) -> None:
    seconds = by_second(ready_only[0].samples)
    assert list(seconds) == list(range(len(seconds)))
    assert all(samples.keys() == PATHS.inputs.keys() for samples in seconds.values())


def test_without_a_policy_there_are_no_samples_and_the_same_results(
    ready_only: ReadyOnly,
) -> None:
    bare, out = simulate(None)
    assert (bare.samples, bare.settings) == ([], [])
    assert ready_only[1] == out
    assert out == sorted(out)


def test_an_even_split_keeps_a_deadline_that_ready_only_breaks(ready_only: ReadyOnly) -> None:
    tuned, out = simulate(EvenSplit(PATHS, deadline_ns=2 * NS_PER_SECOND, margin_ns=10**8))
    plain, all_in_order = ready_only
    assert max(latency_s(plain).values()) > 4.9
    assert max(latency_s(tuned).values()) <= 2.0
    assert sorted(out) == sorted(all_in_order)
    assert sum(sample.slack_ready for sample in tuned.samples) > 0
    assert sum(sample.slack_ready for sample in plain.samples) == 0


def test_settings_and_samples_agree_on_the_slack_of_a_second() -> None:
    one, _ = simulate(Calibration(PATHS, most_ns=2 * NS_PER_SECOND, every_s=3))
    slack_ns: dict[int, int | None] = {second: s.rule.slack_ns for second, s in one.settings}
    current: int | None = None
    for second, samples in by_second(one.samples).items():
        current = slack_ns.get(second, current)
        assert samples[Subject("both")].rule.slack_ns == current


def test_two_tuned_gates_in_a_row_lose_nothing_whatever_their_slacks() -> None:
    flow = sw.Dataflow("chain", deadline="2s")
    tables = {"on-time": late_table(0), "late": late_table(5), "later": late_table(8)}
    first, second, third = (
        flow.source(name, sw.table(one), event_time="ts", arrival="arrival", speed=1.0)
        for name, one in tables.items()
    )
    all_ = first.merge(second, name="both").merge(third, name="all")
    all_.sink("out", sw.collect_sink())
    placed = place(
        flow.name,
        plan_stages(flow.graph),
        ["a", "b"],
        placement={"*": "a", "all": "b"},
        deadline_ns=flow.deadline_ns,
    )
    out: list[int] = []

    def egress(stage: str, batch: Batch | None, is_end: bool) -> None:
        out.extend([] if batch is None else batch.event_time_ns.tolist())

    policy = Calibration(Paths.of(FlowGraph.of(placed)), most_ns=4 * NS_PER_SECOND, every_s=1)
    placed = replace(placed, limits=LIMITS)
    one = Simulation(placed, egress=egress, policy=policy)
    report = one.run()
    assert report.ledger.is_balanced
    assert all(stage.slack_ready for stage in report.stages if stage.kind == "merge")
    assert sorted(out) == sorted(np.concatenate([t["ts"] for t in tables.values()]).tolist())
    assert [json.loads(json.dumps(s.to_json())) for s in one.samples]


class Restless:
    """Sets another slack, or another hold, every second."""

    name = "restless"

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds

    def begin(self) -> Sequence[SetRelease]:
        return self.decide(-1, {})

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        del samples
        much_ns = 10**15 + second
        if self._holds:
            return [release("both", None, hold_ns=much_ns)]
        return [release("both", much_ns)]


@pytest.mark.parametrize("holds", [False, True])
def test_a_policy_does_not_keep_a_run_alive_that_cannot_go_on(holds: bool) -> None:
    with pytest.raises(JobStopped, match="both waits for late"):
        simulate(Restless(holds=holds), silence())


def test_rows_behind_a_silent_source_leave_before_the_run_is_given_up() -> None:
    policy = StaticSlack(PATHS, ReleaseRule.slack(0))
    out: list[int] = []

    def egress(stage: str, batch: Batch | None, is_end: bool) -> None:
        out.extend([] if batch is None else batch.event_time_ns.tolist())

    with pytest.raises(JobStopped):
        Simulation(plan(silence()), egress=egress, policy=policy).run()
    assert len(out) == SECONDS * 20 - 1  # all but the newest, which nothing has passed


def test_load_makes_a_stage_slower_for_a_time() -> None:
    cost = CostModel(per_slice_ns=100, per_row_ns=10, load={"out": lambda ns: 3 if ns > 50 else 1})
    rng = np.random.default_rng(0)
    out, both = Slice("out", 10, [], 0, released=10), Slice("both", 10, [], 0, released=10)
    assert cost.slice_ns(out, rng, now_ns=50) == 200
    assert cost.slice_ns(out, rng, now_ns=51) == 600
    assert cost.slice_ns(both, rng, now_ns=51) == 200


def test_a_setting_for_a_stage_without_a_gate_is_refused_and_counted() -> None:
    class Wrong(Restless):
        def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
            del second, samples
            return [release("out", 5)]

    one, _ = simulate(Wrong(holds=False))
    report = one.report()
    assert report.tuning is not None
    assert report.tuning.errors
    assert "out" in (report.tuning.last_error or "")


def test_a_gate_with_a_slack_of_its_own_is_not_for_a_policy_to_set() -> None:
    flow = sw.Dataflow("own", deadline="2s")
    one, other = (
        flow.source(name, sw.table(late_table(0)), event_time="ts", arrival="arrival", speed=1.0)
        for name in ("one", "other")
    )
    fixed = one.merge(other, name="fixed", slack=None)
    fixed.merge(other, name="tuned").sink("out", sw.collect_sink())
    own = place(flow.name, plan_stages(flow.graph), ["a"], deadline_ns=flow.deadline_ns)
    assert own.tuned == ("tuned",)

    class Wrong(Restless):
        def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
            del second, samples
            return [release("fixed", 5), release("tuned", 5)]

    own = replace(own, limits=LIMITS)
    run = Simulation(own, egress=lambda *_: None, policy=Wrong(holds=False))
    report = run.run()
    assert report.ledger.is_balanced
    assert report.tuning is not None
    assert "'fixed' has no gate whose slack follows" in (report.tuning.last_error or "")
    assert {setting.subject.name for _, setting in run.settings} == {"tuned"}
