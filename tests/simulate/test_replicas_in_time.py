"""A shared gate and time: a deadline that its replicas keep, samples of both, silent sources."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport, StageReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths, make_policy, measured_ns

SECONDS = 12
DEADLINE_NS = 2 * NS_PER_SECOND
LIMITS = Limits(source_gap_ns=20_000_000)
"""Sources look as often as they have rows, which is quicker to simulate."""
SHARES = pytest.mark.parametrize("share", ["keys", "all"])


def rows(seed: int, *, most_late_s: float) -> pa.Table:
    """50 rows a second of 6 keys that arrive up to so much late."""
    rng = np.random.default_rng(seed)
    times = np.arange(SECONDS * 50) * (NS_PER_SECOND // 50)
    arrivals = times + rng.integers(0, round(most_late_s * NS_PER_SECOND) + 1, len(times))
    arrivals[0] = 0
    order = arrivals.argsort(kind="stable")
    known = np.minimum.accumulate(times[order][::-1])[::-1]
    return pa.table(
        {
            "t": times[order],
            "a": arrivals[order],
            "p": known,
            "key": rng.integers(0, 6, len(times)),
        }
    )


def planned(share: Any) -> Plan:
    """One stream is up to 5 s late, so that the deadline cannot wait for all of it."""
    flow = sw.Dataflow("deadline", deadline="2s")
    left, right = (
        flow.source(
            name,
            sw.table(rows(seed, most_late_s=late_s)),
            event_time="t",
            arrival="a",
            speed=1.0,
            promise=sw.col("p"),
        )
        for name, seed, late_s in (("left", 1, 0.0), ("right", 2, 5.0))
    )
    pairs = left.join(right, on="key", within="1s", replicas=2, share=share, name="pairs")
    pairs.sink("out", sw.collect_sink())
    placed = place(
        flow.name,
        plan_stages(flow.graph),
        ["node-1", "node-2", "node-3"],
        placement={"*": "node-1", "pairs.1": "node-2", "pairs.2": "node-3"},
        deadline_ns=flow.deadline_ns,
    )
    return replace(placed, limits=LIMITS)


def run(plan: Plan, *, policy: str, egress: Any = None) -> tuple[Simulation, JobReport]:
    simulation = Simulation(
        plan,
        egress=egress or (lambda *_: None),
        cost=CostModel(per_comparison_ns=1_000.0, jitter=1.0),
        link=LinkModel(jitter_ns=5_000_000),
        policy=make_policy(FlowGraph.of(plan), Tuning(policy=policy)),
    )
    return simulation, simulation.run()


@cache
def even_split(share: Any) -> tuple[Simulation, JobReport]:
    """A run that several tests look at."""
    return run(planned(share), policy="even split")


def gates_of(report: JobReport, share: Any) -> list[StageReport]:
    """Return the stages with the gates of the join: one for all replicas, or each of them."""
    names = ["pairs.gate"] if share == "all" else ["pairs.1", "pairs.2"]
    return [stage for stage in report.stages if stage.name in names]


@SHARES
def test_replicas_keep_a_deadline_and_every_event_is_accounted_for(share: Any) -> None:
    plan = planned(share)
    paths = Paths.of(FlowGraph.of(plan))
    assert paths.tuned == (Subject("pairs"),)
    simulation, report = even_split(share)
    assert imbalances(report) == []
    assert report.ledger.is_balanced
    # Behind the end of event time a slack is no limit: nothing is newer.
    seconds = [one for second, one in by_second(simulation.samples).items() if second < SECONDS]
    took_ns = [paths.latency_ns(measured_ns(samples)) for samples in seconds]
    assert 0.5 * DEADLINE_NS < max(took_ns) <= DEADLINE_NS
    # And it is slack that keeps it.
    gates = gates_of(report, share)
    assert sum(gate.slack_ready for gate in gates) > 0
    assert sum(gate.late for gate in gates) > 0
    waiting, _ = run(plan, policy="ready-only")
    longest_ns = max(
        paths.latency_ns(measured_ns(one)) for one in by_second(waiting.samples).values()
    )
    assert longest_ns > 2 * DEADLINE_NS


@SHARES
def test_samples_count_what_is_slack_ready_or_late_once_and_name_the_readers(share: Any) -> None:
    simulation, report = even_split(share)
    stages = {stage.name: stage for stage in report.stages}
    counted: dict[str, list[int]] = {}
    for sample in simulation.samples:
        sums = counted.setdefault(sample.stage, [0, 0, 0])
        sums[0] += sample.rows
        sums[1] += sample.slack_ready
        sums[2] += sample.late
        if share == "all":
            shared = {"pairs.gate": 2, "pairs.1": 0, "pairs.2": 0}
            assert sample.readers == shared.get(sample.stage, 1)
        if sample.stage.startswith("pairs"):
            assert sample.window_ns == NS_PER_SECOND
    # The last second is not over when the run ends.
    for gate in gates_of(report, share):
        assert 0.9 * gate.unready <= counted[gate.name][1] <= gate.unready
        assert 0.9 * gate.late <= counted[gate.name][2] <= gate.late
    for name in ("pairs.1", "pairs.2"):
        if share == "all":
            assert counted[name][1:] == [0, 0]
        assert 0.9 * stages[name].rows_in <= counted[name][0] <= stages[name].rows_in


def test_a_slow_replica_shows_in_its_own_samples_not_in_those_of_the_gate() -> None:
    plan = planned("all")
    simulation = Simulation(
        plan,
        egress=lambda *_: None,
        cost=CostModel(stages={"pairs.2": 60_000_000.0}),
        policy=make_policy(FlowGraph.of(plan), Tuning(policy="0s")),
    )
    simulation.run()
    latest = {
        name: max(one.latency_ns for one in simulation.samples if one.stage == name)
        for name in ("pairs.gate", "pairs.1", "pairs.2")
    }
    held = {
        name: max(one.held_ns for one in simulation.samples if one.stage == name) for name in latest
    }
    # 50 rows/s at 60 ms each: three times more than it can do, so rows wait longer and longer.
    assert latest["pairs.2"] > 2 * NS_PER_SECOND
    assert held["pairs.2"] > NS_PER_SECOND
    assert latest["pairs.1"] < NS_PER_SECOND // 10
    assert latest["pairs.gate"] < NS_PER_SECOND // 10


def silent(*, replicas: int, idle: str | None) -> sw.Dataflow:
    """Two sources, of which one is silent from 3 s to 20 s."""
    flow = sw.Dataflow("silent")
    talks = {"t": list(range(30)), "key": [t % 3 for t in range(30)]}
    falls_silent = {"t": [0, 1, 2, 5, 21, 22], "key": [0, 1, 2, 0, 1, 2]}
    arrives = {"left": talks["t"], "right": [0, 1, 2, 20, 21, 22]}
    left, right = (
        flow.source(
            name,
            sw.table(pa.table({**table, "a": arrives[name]})),
            event_time="t",
            time_unit="s",
            arrival="a",
            speed=1.0,
            idle=idle,
        )
        for name, table in (("left", talks), ("right", falls_silent))
    )
    pairs = left.join(right, on="key", within="30s", replicas=replicas, name="pairs")
    behind = pairs.filter(sw.col("key") >= 0)
    behind.merge(name="merged").sink("out", sw.collect_sink())
    return flow


def test_gates_of_replicas_go_on_without_a_silent_source_and_say_so() -> None:
    found = {}
    for replicas in (1, 2):
        job = sw.Simulation(nodes=3).submit(silent(replicas=replicas, idle="4s"))
        report = job.wait()
        assert imbalances(report) == []
        gates = [stage for stage in report.stages if stage.kind == "join"]
        assert len(gates) == replicas
        assert all(gate.idle_marks == {"right": 1} for gate in gates)
        assert sum(gate.late for gate in gates) > 0
        pairs = job.result("out").to_pylist()
        found[replicas] = sorted((row["key"], row["t"], row["t_right"]) for row in pairs)
        assert report.ledger.is_balanced
    assert found[1] == found[2]


def test_each_replica_knows_how_long_a_source_may_be_silent_and_its_rows_are_mixed() -> None:
    for idle in ("4s", None):
        stages = {stage.name: stage for stage in plan_stages(silent(replicas=2, idle=idle).graph)}
        expected = None if idle is None else 4 * NS_PER_SECOND
        for name in ("pairs.1", "pairs.2"):
            assert [channel.idle_ns for channel in stages[name].inputs] == [expected] * 2
        mixed = [channel.is_mixed for channel in stages["merged"].inputs]
        assert all(mixed) is any(mixed) is (idle is not None)
