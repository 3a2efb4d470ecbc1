"""Jobs with checkpoints in a shared folder, on hosts that fail: the same output as without."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput, rows_of
from tests.hosts import Host, Hosts, why_not
from tests.hosts.host_init import SHARED
from tests.hosts.raylets import GCS_PORT, started
from tests.hosts.test_lost_hosts import slots
from tests.support.pairs import pairs
from tests.support.waiting import until

pytestmark = [pytest.mark.hosts, pytest.mark.ray, pytest.mark.timeout(400)]

WITHIN_S = 20.0  # 2.4 to 3 of them are constants of ours; the rest is for a busy machine
SOON_S = 60.0
LIMIT_S = 5
DRIVER = """
import json, sys, time
from pathlib import Path
import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput
from tests.support.pairs import pairs
from tests.support.waiting import until

address, shared, limit_s, *cases = sys.argv[1:]

def say(**what):
    print(json.dumps(what), flush=True)

with sw.Cluster.connect(address) as cluster:
    for case in cases:
        own = Path(shared) / case
        own.mkdir()
        over, (joined, _, out) = own / "over", case.partition("+")
        job = cluster.submit(
            pairs(TableOutput(str(own / "rows.db")), over=over),
            placement={"*": "host-1", "joined": joined, "out": out},
            checkpoint="200ms",
            checkpoint_folder=own / "checkpoints",
            limits=sw.Limits(lost_ns=int(limit_s) * 10**9),
        )
        def has_checkpoint():
            return job.metrics.checkpoint and job.metrics.checkpoint.number
        until(lambda: job.report().sinks[0].rows > 600 and has_checkpoint(), within_s=60,
            what="rows, and a checkpoint")
        told = None
        def changed():
            newest = job.metrics.recoveries[-1:]
            state = [len(job.metrics.recoveries), bool(newest) and newest[0].gap_s is not None]
            return state if state != told else over.exists() and [0]
        while (told := until(changed, within_s=120, what="news")) != [0]:
            say(at=time.time(), recoveries=told[0], works=told[1])
        report = job.wait(timeout=90)
        say(state=report.state, balanced=report.ledger.is_balanced,
            causes=[recovery.cause for recovery in report.recoveries],
            checkpoints=[recovery.checkpoint for recovery in report.recoveries],
            nodes={stage.name: stage.node for stage in report.stages})
"""


class Jobs:
    """Jobs that a driver on the first host runs, one after another."""

    def __init__(self, hosts: Hosts, environment: dict[str, str], cases: list[str]) -> None:
        head = hosts.hosts[0]
        words = [f"{head.ip}:{GCS_PORT}", SHARED, str(LIMIT_S), *cases]
        self._shared, pipe = hosts.shared, subprocess.PIPE
        self.driver = head.popen(
            ["python3", "-c", DRIVER, *words], env=environment, stdout=pipe, stderr=pipe
        )

    def heard(self) -> dict[str, Any]:
        assert self.driver.stdout is not None
        assert self.driver.stderr is not None
        line = self.driver.stdout.readline()
        assert line, self.driver.stderr.read()
        said: dict[str, Any] = json.loads(line)
        return said

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> float:
        """Return when the driver first said something for which this holds."""
        while not holds(said := self.heard()):
            pass
        return float(said["at"])

    def done(self, case: str, expected: list[tuple[int, str]]) -> dict[str, Any]:
        """Let a job end; return what its driver says of it."""
        (self._shared / case / "over").touch()
        while "state" not in (said := self.heard()):
            pass
        assert said["state"] == "done"
        assert said["balanced"]
        assert None not in said["checkpoints"], "each goes on from a checkpoint"
        assert rows_of(self._shared / case / "rows.db") == expected
        return said


def kill_raylet(host: Host) -> None:
    done = host.run(["sh", "-c", "kill -9 $(pgrep -x raylet)"])
    assert done.returncode == 0, done.stderr


def test_jobs_go_on_though_links_are_cut_and_nodes_are_lost(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with sw.Simulation() as nodes:
        nodes.submit(pairs(TableOutput(str(tmp_path / "rows.db")))).wait()
    expected = rows_of(tmp_path / "rows.db")
    with Hosts(4) as hosts, started(hosts) as environment:
        head, cut, dead, bare = hosts.hosts
        link, raylet, both = (
            f"{cut.name}+{dead.name}",
            f"{bare.name}+{head.name}",
            f"{dead.name}+{cut.name}",
        )
        jobs = Jobs(hosts, environment, [link, raylet, both])
        with jobs.driver as driver:
            # Both sides are reached by the job, so neither is replaced: it tries again.
            jobs.until(lambda said: said["recoveries"] == 0)
            cut.cut_link(dead)
            jobs.until(lambda said: said["recoveries"] == 2)
            cut.mend_link(dead)
            jobs.until(lambda said: said["works"])
            said = jobs.done(link, expected)
            assert re.search("link .*cut", said["causes"][0])
            assert said["nodes"]["joined"] == cut.name

            jobs.until(lambda said: said["recoveries"] == 0)
            began_s = time.time()
            kill_raylet(bare)
            assert jobs.until(lambda said: said["works"]) - began_s < WITHIN_S
            said = jobs.done(raylet, expected)
            assert len(said["causes"]) == 1
            assert said["nodes"]["joined"] != bare.name

            # A second host is lost as the job goes back from the loss of the first.
            jobs.until(lambda said: said["recoveries"] == 0)
            began_s = time.time()
            cut.unplug()
            jobs.until(lambda said: said["recoveries"] == 1)
            dead.kill()
            jobs.until(lambda said: said["recoveries"] == 2 and said["works"])
            assert time.time() - began_s < 2 * WITHIN_S
            said = jobs.done(both, expected)
            assert set(said["nodes"].values()) == {head.name}
            assert driver.wait(timeout=SOON_S) == 0
        cut.plug()
        until(lambda: slots(cut) == "", within_s=2 * SOON_S, what="the slot of the host cut off")
        assert rows_of(hosts.shared / both / "rows.db") == expected, "it wrote nothing more"
