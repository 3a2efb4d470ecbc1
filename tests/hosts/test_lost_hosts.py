"""Hosts that are cut off or die in mid-run: soon named, nothing stays, the next job runs."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from tests.hosts import Host, Hosts, why_not
from tests.hosts.raylets import GCS_PORT, started
from tests.support.waiting import until

pytestmark = [pytest.mark.hosts, pytest.mark.ray, pytest.mark.timeout(400)]

WITHIN_S = 15.0  # 7.5 of them are constants of ours; the rest is for a busy machine
SOON_S = 60.0
DRIVER = """
import json, sys, time
import slackwater as sw
from slackwater.runtime.errors import WorkerDied
from tests.support.flows import ticking
from tests.support.waiting import until

def ignore(rows):
    pass

def submitted(name, placement):
    flow, numbers = ticking(name)
    numbers.merge(name="gate").sink("calls", sw.callback_sink(ignore))
    job = cluster.submit(flow, placement=placement)
    until(lambda: job.report().sinks[0].rows > 0, within_s=60, what="rows at the sink")
    return job

def say(**what):
    print(json.dumps(what), flush=True)

with sw.Cluster.connect(sys.argv[1]) as cluster:
    for victim in sys.argv[2:]:
        job = submitted("with " + victim, {"*": "host-1", "gate": victim})
        say(runs=job.id)
        try:
            job.wait(timeout=60)
        except WorkerDied as problem:
            say(at=time.time(), error=str(problem), status=job.status)
        again = submitted("without " + victim, {"*": "host-1"})
        again.stop()
        say(again=again.status, nodes=cluster.nodes)
"""


def slots(host: Host) -> str:
    return host.run(["sh", "-c", "ps -eo pid,args | grep '[r]ay::SlotActor' || true"]).stdout


def test_a_host_cut_off_and_a_host_that_dies_fail_their_jobs_by_name() -> None:
    if reason := why_not():
        pytest.skip(reason)
    with Hosts(3) as hosts, started(hosts) as environment:
        head, cut, dead = hosts.hosts
        driver = head.popen(
            ["python3", "-c", DRIVER, f"{head.ip}:{GCS_PORT}", cut.name, dead.name],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with driver:
            assert driver.stdout is not None
            assert driver.stderr is not None

            def heard() -> dict[str, Any]:
                line = driver.stdout.readline()  # type: ignore[union-attr]
                assert line, driver.stderr.read()  # type: ignore[union-attr]
                said: dict[str, Any] = json.loads(line)
                return said

            for host, harm in ((cut, cut.unplug), (dead, dead.kill)):
                assert heard()["runs"].startswith(f"with_{host.name}")
                began_s = time.time()
                harm()
                failed = heard()
                assert failed["at"] - began_s < WITHIN_S, failed
                assert failed["status"] == "failed"
                assert f"(stages: gate) died on node {host.name}" in failed["error"]
                assert "submit" in failed["error"]
                went_on = heard()
                assert went_on["again"] == "stopped"
                assert host.name not in went_on["nodes"]
            assert driver.wait(timeout=SOON_S) == 0
        until(lambda: slots(head) == "", within_s=SOON_S, what="the other slots to end")
        cut.plug()  # what it comes back to knows it as dead
        until(lambda: slots(cut) == "", within_s=2 * SOON_S, what="the slot of the host cut off")
