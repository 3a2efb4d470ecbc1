"""Deciders name steps: one command for a step, however many replicas it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import Command, SetRelease, Shed
from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import ControlLoop, Tell
from slackwater.runtime.control.rest import RestDownstream
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import CostModel, Simulation
from slackwater.runtime.tune import SlackPolicy, TuningRecord, make_policy

S = NS_PER_SECOND
SECONDS = 3
FOUND, COUNTS = Subject("found"), Subject("counts")
REPLICAS = pytest.mark.parametrize("replicas", [1, 3])


def planned(replicas: int) -> Plan:
    """A pattern that sheds, and an aggregate with a tuned gate, each in so many replicas."""
    rng = np.random.default_rng(1)
    at = np.sort(rng.integers(0, SECONDS * S, SECONDS * 200))
    table = pa.table(
        {"ts": at, "key": rng.integers(0, 12, len(at)), "kind": rng.integers(0, 3, len(at))}
    )
    flow = sw.Dataflow("steps", deadline="2s")
    events = flow.source("events", sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
    events.pattern(
        sw.patterns.seq(*(sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(2))),
        type="kind",
        by="key",
        window=sw.patterns.count_window(10),
        shed=sw.shedding.espice("400ms"),
        replicas=replicas,
        name="found",
        slack="0s",
    ).sink("matches", sw.collect_sink())
    events.aggregate(
        by="key", window=sw.tumbling("1s"), n=sw.count(), replicas=replicas, name="counts"
    ).sink("out", sw.collect_sink())
    with sw.Simulation(3) as nodes:
        return nodes.plan(flow)


class Watched:
    """A policy that another one is asked for, and what it was shown and wanted."""

    name = "watched"

    def __init__(self, policy: SlackPolicy) -> None:
        self._policy = policy
        self.shown: list[set[Subject]] = []
        self.wanted: list[list[Subject]] = []

    def begin(self) -> Sequence[SetRelease]:
        return self._noted(self._policy.begin())

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        self.shown.append(set(samples))
        return self._noted(self._policy.decide(second, samples))

    def _noted(self, commands: Sequence[SetRelease]) -> Sequence[SetRelease]:
        self.wanted.append([one.subject for one in commands])
        return commands


@pytest.mark.parametrize(
    ("policy", "replicas"),
    [
        ("sltuner", 1),
        ("sltuner", 3),
        ("even split", 2),
        ("calibration", 2),
        ("500ms", 1),
    ],
)
def test_a_policy_sees_steps_and_sets_one_slack_for_each(policy: str, replicas: int) -> None:
    plan = planned(replicas)
    made = make_policy(FlowGraph.of(plan), Tuning(policy=policy))
    assert made is not None
    watched = Watched(made)
    run = Simulation(plan, egress=lambda *_: None, cost=CostModel(), policy=watched)
    report = run.run()
    steps = {Subject(name) for name in ("events", "found", "matches", "counts", "out")}
    assert watched.shown
    assert all(seen == steps for seen in watched.shown)
    assert {tuple(wanted) for wanted in watched.wanted} <= {(), (COUNTS,)}
    assert watched.wanted[0] == [COUNTS]
    assert report.tuning is not None
    assert report.tuning.errors == 0, report.tuning.last_error
    (gate,) = report.tuning.gates
    assert (gate.step, gate.rows_in) == ("counts", SECONDS * 200)


@REPLICAS
def test_the_rest_of_a_step_that_sheds_is_one_command(replicas: int) -> None:
    plan = planned(replicas)
    run = Simulation(plan, egress=lambda *_: None, cost=CostModel())
    run.run()
    rest = RestDownstream(FlowGraph.of(plan))
    told = [rest.decide(second, samples) for second, samples in by_second(run.samples).items()]
    assert len(told) >= SECONDS - 1
    assert all([one.subject for one in commands] == [FOUND] for commands in told)


@REPLICAS
def test_the_loop_finds_the_parts_that_carry_a_command_out(replicas: int) -> None:
    graph = FlowGraph.of(planned(replicas))
    loop = ControlLoop(graph, TuningRecord(graph, policy="mine"), keeps=10)
    commands: list[Command] = [SetRelease(COUNTS, ReleaseRule.slack(5)), Shed(FOUND, 7)]
    tells = [one for one in loop.begin(0, [Wanted("mine", commands)]) if isinstance(one, Tell)]
    told = [(type(tell.command), tell.command.subject, tell.slot) for tell in tells]
    gates = [Subject("counts", n + 1) for n in range(replicas)] if replicas > 1 else [COUNTS]
    sheds = [Subject("found", n + 1) for n in range(replicas)] if replicas > 1 else [FOUND]
    assert told == [
        *[(SetRelease, gate, graph.slots[gate.name]) for gate in gates],
        *[(Shed, part, graph.slots[part.name]) for part in sheds],
    ]
    assert [tell.number for tell in tells] == [(0, n + 1) for n in range(len(tells))]


@REPLICAS
def test_a_command_to_one_part_is_for_that_part(replicas: int) -> None:
    graph = FlowGraph.of(planned(replicas))
    for part in graph.parts:
        assert [one.subject for one in graph.parts_for(Shed(part.subject, 1))][:1] != []
        if part.subject.part is not None:
            assert graph.parts_for(Shed(part.subject, 1)) == [part]
