"""A node of two cores: two slots, two processes, and the results of one, in both hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import ClusterError, FlowError, WorkerDied
from slackwater.runtime.measure.ledger import imbalances
from tests.support.crowds import crowd
from tests.support.endless import EndlessInput
from tests.support.flows import sorted_rows
from tests.support.processes import wait_for_free_cpus
from tests.support.waiting import until

LIMIT_S = 60.0
ROWS = 400
CONNECTED = "03"  # a state, in the words of /proc/net/unix


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cores")


@pytest.fixture(scope="module")
def cluster(temp: Path) -> Iterator[sw.Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temp))
        with sw.Cluster.local(nodes=1, cores=2) as opened:
            yield opened


def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 400, ROWS)) * 5,
            "key": rng.integers(0, 9, ROWS),
            "v": rng.integers(0, 1_000, ROWS),
        }
    )


def pairs(*, replicas: int) -> sw.Dataflow:
    flow = sw.Dataflow("pairs")
    left, right = (
        flow.source(name, sw.table(rows(n)), event_time="ts", time_unit="ms")
        for n, name in enumerate("lr")
    )
    left.join(right, on="key", within="60ms", replicas=replicas, name="pairs").sink(
        "out", sw.collect_sink()
    )
    return flow


def endless() -> sw.Dataflow:
    flow = sw.Dataflow("endless")
    numbers = flow.source("numbers", EndlessInput(), event_time="ts")
    numbers.merge(name="gate").sink("out", sw.callback_sink(ignore))
    return flow


def ignore(rows: pa.RecordBatch) -> None:
    pass


def simulated(flow: sw.Dataflow, **options: Any) -> tuple[pa.Table, sw.JobReport, Any]:
    job = sw.Simulation(**options).submit(flow)
    return job.result("out"), job.report(), job.plan


SLOTS = {
    "l": "node-1/1",
    "r": "node-1/2",
    "pairs.1": "node-1/1",
    "pairs.2": "node-1/2",
    "out": "node-1/1",
}


@pytest.mark.parametrize(("nodes", "cores"), [(1, 2), (1, 8), (2, 2), (3, 1)])
def test_in_the_simulator_cores_change_where_work_runs_and_not_what_comes_out(
    nodes: int, cores: int
) -> None:
    expected, alone, _ = simulated(pairs(replicas=1), nodes=1)
    found, report, plan = simulated(pairs(replicas=2), nodes=nodes, cores=cores)
    assert found.equals(expected)
    assert report.ledger == alone.ledger
    assert len(plan.slot_names) == min(nodes * cores, 4)
    assert report.nodes == [f"node-{n}" for n in range(1, nodes + 1)]
    assert {s.name: s.slot for s in report.stages} == plan.slots
    assert all(s.node in report.nodes for s in (*report.stages, *report.sinks))


def test_two_cores_take_less_virtual_time_than_one() -> None:
    cost = sw.testing.CostModel(stages={"pairs.1": 200_000, "pairs.2": 200_000})
    took = [
        simulated(pairs(replicas=2), nodes=1, cores=cores, cost=cost)[1].elapsed_s
        for cores in (1, 2)
    ]
    assert took[0] > 1.5 * took[1], "keys are not shared quite evenly"


@pytest.mark.ray
def test_on_ray_two_slots_of_a_node_find_what_the_simulator_finds(cluster: sw.Cluster) -> None:
    expected, _, plan = simulated(pairs(replicas=2), nodes=1, cores=2)
    assert plan.slots == SLOTS
    job = cluster.submit(pairs(replicas=2), detach=True)
    workers = job.workers()
    report = job.wait(timeout=LIMIT_S)
    assert job.placement == SLOTS
    assert list(workers) == ["node-1/1", "node-1/2"]
    assert len(set(workers.values())) == 2, "a process each"
    assert imbalances(report) == []
    assert report.nodes == ["node-1"]
    assert {s.name: (s.node, s.slot) for s in report.stages} == {
        stage: ("node-1", slot) for stage, slot in SLOTS.items()
    }
    assert [sink.node for sink in report.sinks] == ["node-1"]
    assert [clock.node for clock in report.clocks] == ["node-1"]
    assert all(one.error_ns == 0 for one in report.channels), "they share a clock"
    assert sorted_rows(job.result("out")) == sorted_rows(expected)


@pytest.mark.ray
def test_a_slot_with_a_stage_is_a_process_that_speaks_over_a_unix_socket_and_is_named_if_it_dies(
    cluster: sw.Cluster, temp: Path
) -> None:
    job = cluster.submit(endless(), placement={"*": "node-1/2"})
    assert list(job.workers()) == ["node-1/2"]
    job.stop()
    job = cluster.submit(endless(), placement={"gate": "node-1/1", "out": "node-1/2"})
    try:
        assert len(job.workers()) == 2

        def connections() -> int:
            lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
            ours = [line.split() for line in lines if f"{temp}/sw-" in line]
            return sum(fields[5] == CONNECTED for fields in ours)

        until(lambda: connections() == 1, within_s=LIMIT_S, what="a connection over a socket")
        psutil.Process(job.workers()["node-1/2"]).kill()
        said = r"the worker of slot 'node-1/2' \(stages: out\) died on node node-1 "
        with pytest.raises(WorkerDied, match=said):
            job.wait(timeout=LIMIT_S)
    finally:
        job.stop()


@pytest.mark.ray
def test_a_cpu_that_others_hold_is_left_to_them_unless_placement_names_it(
    cluster: sw.Cluster,
) -> None:
    wait_for_free_cpus("node-1", 5)  # two slots, and three CPUs beside them
    with crowd("node-1", cpus=4):
        wait_for_free_cpus("node-1", 1)
        assert set(cluster.plan(pairs(replicas=2)).slot_names) == {"node-1/1"}
        job = cluster.submit(pairs(replicas=2))
        assert job.wait(timeout=LIMIT_S).state == "done"
        wait_for_free_cpus("node-1", 1)
        placement = {"pairs.2": "node-1/2"}
        with pytest.raises(ClusterError, match="node-1 lacks 1 of 2 CPUs"):
            cluster.submit(pairs(replicas=2), placement=placement)


@pytest.mark.ray
def test_explain_and_errors_know_the_slots(cluster: sw.Cluster) -> None:
    text = cluster.explain(pairs(replicas=2))
    assert "  pairs.2  node-1/2  with r: 4 sources and operators for 2 slots" in text
    with pytest.raises(FlowError, match=r"There are: node-1 \(node-1/1 to node-1/2\)$"):
        cluster.plan(pairs(replicas=2), placement={"out": "somewhere"})
