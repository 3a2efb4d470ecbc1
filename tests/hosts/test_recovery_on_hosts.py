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
from tests.hosts.raylets import GCS_PORT, join, started
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
import ray
import slackwater as sw
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from benchmarks.engine.recovery.flow import TableOutput
from slackwater.actors.jobs import lasting
from slackwater.actors.nodes.placement import list_nodes
from tests.support.pairs import pairs
from tests.support.waiting import until

address, shared, limit_s, *cases = sys.argv[1:]

def say(**what):
    sys.stdout.write(json.dumps(what) + "\\n")  # at once: two threads say something
    sys.stdout.flush()

def pause(moment):
    file = own / moment
    if file.exists():
        say(paused=moment)
        until(lambda: not file.exists(), within_s=60, what=f"the end of the pause {moment}")

def answering(listed, ask=lasting.hosts_that_answer):
    pause("before")
    answers = ask(listed)
    pause("after")
    return answers

def committing(*about, act=lasting.commit):
    pause("commit")
    return act(*about)

lasting.hosts_that_answer, lasting.commit = answering, committing  # of a job in this process

def fill_up(node):
    place = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    filler = ray.remote(lambda: time.sleep(600)).options(num_cpus=1, scheduling_strategy=place)
    fillers = [filler.remote() for _ in range(4)]  # one waits: the job has a CPU
    until(lambda: [own.free_cpus for own in list_nodes() if own.name == node] == [0],
        within_s=60, what=f"no free CPU on {node}")
    return fillers

with sw.Cluster.connect(address) as cluster:
    for case in cases:
        own = Path(shared) / case
        own.mkdir()
        over, (joined, _, out) = own / "over", case.partition("+")
        is_last = case == cases[-1]
        job = cluster.submit(
            pairs(TableOutput(str(own / "rows.db")), over=over),
            placement={"*": "host-1", "joined": joined, "out": out},
            checkpoint="200ms",
            checkpoint_folder=own / "checkpoints",
            limits=sw.Limits(lost_ns=int(limit_s) * 10**9),
            detach=not is_last,
        )
        def has_checkpoint():
            return job.metrics.checkpoint and job.metrics.checkpoint.number
        until(lambda: job.report().sinks[0].rows > 600 and has_checkpoint(), within_s=60,
            what="rows, and a checkpoint")
        if is_last:
            fillers = fill_up("host-1")
            say(workers=job.workers())
        told = None
        def changed():
            state = {
                "recoveries": len(recoveries := job.metrics.recoveries),
                "works": bool(recoveries) and recoveries[-1].gap_s is not None,
                "lost": [recovery.lost_nodes for recovery in recoveries],
                "waits": recoveries[-1].waits if recoveries else None,
            }
            if is_last and (own / "room").exists():
                (own / "room").unlink()
                for filler in fillers:
                    ray.cancel(filler, force=True)
            return state if state != told else over.exists() and [0]
        while (told := until(changed, within_s=120, what="news")) != [0]:
            say(at=time.time(), **told)
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

    def until(self, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Return what the driver first said for which this holds."""
        while not holds(said := self.heard()):
            pass
        return said

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


def lose_two_hosts_then_one(
    jobs: Jobs,
    hosts: Hosts,
    environment: dict[str, str],
    expected: list[tuple[int, str]],
    case: str,
) -> None:
    """Lose hosts at a commit, and as the job asks before an attempt which hosts there are."""
    head, cut, dead, _, late = hosts.hosts
    own = hosts.shared / case

    def is_moved(said: dict[str, Any], lost: list[list[str]]) -> bool:
        return bool(said.get("works")) and said["lost"] == lost

    workers = jobs.until(lambda said: "workers" in said)["workers"]
    (own / "commit").touch()
    jobs.until(lambda said: said.get("paused") == "commit")
    began_s = time.time()
    cut.unplug()
    (own / "before").touch()
    (own / "commit").unlink()
    jobs.until(lambda said: said.get("paused") == "before")
    dead.kill()  # its slot has stopped in order, and waits for the next attempt
    (own / "before").unlink()
    said = jobs.until(lambda said: said.get("waits"))
    assert said["at"] - began_s < WITHIN_S
    assert said["waits"].startswith("2 slots of lost nodes wait for a node with a free CPU")
    assert said["lost"] == [[cut.name, dead.name]]
    join(late, hosts, environment)
    began_s = time.time()
    said = jobs.until(lambda said: is_moved(said, [[cut.name, dead.name]]))
    assert said["at"] - began_s < WITHIN_S
    # Now a host that has answered a moment ago.
    (own / "room").touch()
    (own / "after").touch()
    began_s = time.time()
    head.run(["kill", "-9", str(workers["host-1/1"])])
    jobs.until(lambda said: said.get("paused") == "after")
    late.kill()
    (own / "after").unlink()
    said = jobs.until(lambda said: is_moved(said, [[cut.name, dead.name], [], [late.name]]))
    assert said["at"] - began_s < 2 * WITHIN_S
    said = jobs.done(case, expected)
    assert set(said["nodes"].values()) == {head.name}
    assert late.name in said["causes"][2]


def test_jobs_go_on_though_links_are_cut_and_nodes_are_lost(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with sw.Simulation() as nodes:
        nodes.submit(pairs(TableOutput(str(tmp_path / "rows.db")))).wait()
    expected = rows_of(tmp_path / "rows.db")
    with Hosts(5) as hosts, started(hosts, count=4) as environment:
        head, cut, dead, bare, _ = hosts.hosts
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
            assert jobs.until(lambda said: said["works"])["at"] - began_s < WITHIN_S
            said = jobs.done(raylet, expected)
            assert len(said["causes"]) == 1
            assert said["nodes"]["joined"] != bare.name

            lose_two_hosts_then_one(jobs, hosts, environment, expected, both)
            assert driver.wait(timeout=SOON_S) == 0
        cut.plug()
        until(lambda: slots(cut) == "", within_s=2 * SOON_S, what="the slot of the host cut off")
        assert rows_of(hosts.shared / both / "rows.db") == expected, "it wrote nothing more"
