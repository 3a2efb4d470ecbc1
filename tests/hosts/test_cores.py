"""Hosts of several cores: a slot for each, by Unix sockets within a host, by TCP between two."""

from __future__ import annotations

import json

import pytest

from tests.hosts import Hosts, why_not
from tests.hosts.raylets import GCS_PORT, started

pytestmark = [pytest.mark.hosts, pytest.mark.ray]

DRIVER = """
import json, sys
import slackwater as sw
from tests.contract.test_cores import pairs, simulated

with sw.Cluster.connect(sys.argv[1]) as cluster:
    job = cluster.submit(pairs(replicas=4))
    report = job.wait(timeout=90)
    expected, _, plan = simulated(pairs(replicas=4), nodes=2, cores=2)
    said = {
        "offered": [slot.name for slot in cluster.slots],
        "placement": job.placement,
        "workers": len(set(job.workers().items())),
        "nodes": {stage.slot: stage.node for stage in report.stages},
        "right": job.result("out").equals(expected),
        "as_simulated": {s: p.replace("node", "host") for s, p in plan.slots.items()},
        "balanced": report.ledger.is_balanced,
    }
print(json.dumps(said), flush=True)
"""


def test_a_flow_spreads_over_the_cores_of_two_hosts_and_finds_what_the_simulator_finds() -> None:
    if reason := why_not():
        pytest.skip(reason)
    with Hosts(2) as hosts, started(hosts, slots=2) as environment:
        head = hosts.hosts[0]
        words = ["python3", "-c", DRIVER, f"{head.ip}:{GCS_PORT}"]
        done = head.run(words, timeout=180, env=environment)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
    slots = ["host-1/1", "host-1/2", "host-2/1", "host-2/2"]
    assert said["offered"] == slots
    assert said["placement"] == said["as_simulated"]
    assert said["nodes"] == {slot: slot[: len("host-1")] for slot in slots}
    assert said["workers"] == len(slots)
    assert said["right"]
    assert said["balanced"]


PARTITIONED = """
import json, sys
import slackwater as sw
from tests.simulate.test_source_stages import flow_of

with sw.Cluster.connect(sys.argv[1]) as cluster:
    job = cluster.submit(flow_of(3, replicas=3))
    report = job.wait(timeout=90)
    simulated = sw.Simulation(nodes=1).submit(flow_of(3, replicas=1))
    simulated.wait()
    print(json.dumps({
        "sources": [stage.node for stage in report.stages if stage.kind == "source"],
        "replicas": [stage.node for stage in report.stages if stage.kind == "aggregate"],
        "rows": job.result("out").num_rows,
        "same": job.result("out").equals(simulated.result("out")),
        "balanced": report.ledger.is_balanced,
    }), flush=True)
"""


def test_three_partitions_and_replicas_on_three_hosts_give_the_bytes_of_one_simulated_slot() -> (
    None
):
    if reason := why_not():
        pytest.skip(reason)
    with Hosts(3) as hosts, started(hosts, slots=1) as environment:
        head = hosts.hosts[0]
        words = ["python3", "-c", PARTITIONED, f"{head.ip}:{GCS_PORT}"]
        done = head.run(words, timeout=180, env=environment)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
    names = ["host-1", "host-2", "host-3"]
    assert sorted(said["sources"]) == sorted(said["replicas"]) == names
    assert said["rows"] > 50
    assert said["same"]
    assert said["balanced"]
