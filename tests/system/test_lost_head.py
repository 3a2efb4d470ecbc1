"""The head goes: gcs_server, or the raylet of the user's process. That process goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from tests.support.processes import below, command_lines
from tests.support.waiting import until

pytestmark = pytest.mark.ray

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 90.0

DRIVER = """
import slackwater as sw
import atexit
import sys
import time
from slackwater.actors.nodes import host_monitor, placement
from slackwater.runtime.errors import SlackwaterError
from tests.support.endless import EndlessInput
from tests.support.processes import below, command_lines

host_monitor.ASK_EVERY_S = 0.25  # 1 s outside of tests

def killed(wanted):
    found = [one for one, line in command_lines(below()).items() if all(w in line for w in wanted)]
    assert len(found) == 1, found
    found[0].kill()

def ignore(rows):
    pass

def lose(nodes, *wanted):
    with sw.Cluster.local(nodes) as cluster:
        flow = sw.Dataflow("endless")
        numbers = flow.source("numbers", EndlessInput(), event_time="ts")
        merged = numbers.merge(name="gate")
        merged.sink("lines", sw.jsonl_sink(sys.argv[1]))
        for more in range(3):  # a report of 100 kB, which Ray would lay into the raylet's store
            merged.sink(f"calls {more}", sw.callback_sink(ignore))
        job = cluster.submit(flow)
        while not job.report().sinks[0].rows:
            time.sleep(0.05)
        placement.ASK_S = 1.0  # 10 s outside of tests; a start beside others may take longer
        killed(wanted)
        began_s = time.monotonic()
        try:
            job.wait()
        except SlackwaterError as problem:
            report = job.report()
            assert report.error == str(problem), report
            print(report.state, report.sinks[0].rows > 0, problem, flush=True)
        finally:
            print("finally", time.monotonic() - began_s < 10, flush=True)
        if nodes == 1:
            try:
                cluster.submit(flow)
            except SlackwaterError as problem:
                print("refused", type(problem).__name__, flush=True)

atexit.register(lambda: print("at exit", flush=True))
try:
    lose(int(sys.argv[2]), *sys.argv[3:])
finally:
    print("last", flush=True)
sys.exit(7)
"""


FLOW = """
import psutil
import slackwater as sw
from tests.support.endless import EndlessInput
from tests.support.processes import command_lines

def lose(rows):
    for above in psutil.Process().parents():
        for node, line in command_lines(above.children()).items():
            if node.name() == "raylet" and "--node-name=node-1" in line:
                node.kill()
                return

flow = sw.Dataflow("endless")
numbers = flow.source("numbers", EndlessInput(), event_time="ts")
numbers.merge(name="gate").sink("calls", sw.callback_sink(lose))
"""
LOST = {  # {what is killed: how many nodes there are, and the words on its command line}
    "the head": ("1", "gcs_server", "--node-ip-address"),
    "the raylet": ("2", "raylet", "--node-name=node-1", "--raylet_socket_name"),
}


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Each with a cluster of its own, side by side."""
    folder = tmp_path_factory.mktemp("lost")
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    (folder / "flow.py").write_text(FLOW, encoding="utf-8")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    # To Ray these are processes whose raylet is dead, as a child of process 1 is, or of a worker.
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_RAYLET_PID": str(ended.pid)}
    commands = {
        lost: [str(folder / "driver.py"), f"{folder}/{lost}.jsonl", *words]
        for lost, words in LOST.items()
    }
    run = ["-m", "slackwater.cli.entry", "run", f"{folder}/flow.py", "--out", f"{folder}/run"]
    commands["the raylet of a run"] = [*run, "--nodes", "2", "--quiet"]
    with ExitStack() as stack:
        started = {}
        for lost, command in commands.items():
            started[lost] = stack.enter_context(
                subprocess.Popen(  # noqa: S603 our own program
                    [sys.executable, *command],
                    cwd=ROOT,
                    env=environ,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(started[lost].kill)
        yield started


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("the head", "the head of the Ray cluster (gcs"),
        ("the raylet", "the raylet of node node-1 (hos"),
    ],
)
def test_a_head_that_dies_is_named_its_job_has_a_report_and_the_users_process_lives(
    drivers: dict[str, subprocess.Popen[str]], lost: str, said: str
) -> None:
    out, errors = drivers[lost].communicate(timeout=LIMIT_S)
    assert drivers[lost].returncode == 7, errors
    told, last_word, *refused, last, at_exit = out.splitlines()
    assert told.startswith(f"failed True job 'endless' has failed: {said}")
    assert (last_word, last, at_exit) == ("finally True", "last", "at exit")
    assert refused == (["refused ClusterError"] if lost == "the head" else [])


def test_a_run_whose_raylet_dies_says_so_and_its_record_says_failed(
    drivers: dict[str, subprocess.Popen[str]],
) -> None:
    run = drivers["the raylet of a run"]
    errors = run.communicate(timeout=LIMIT_S)[1]
    assert run.returncode == 1
    assert "slackwater: job 'endless' has failed: the raylet of node node-1" in errors
    assert isinstance(run.args, list)
    record = Path(str(run.args[run.args.index("--out") + 1])) / "report.json"
    assert json.loads(record.read_text(encoding="utf-8"))["state"] == "failed"


def test_a_raylet_that_hangs_is_offered_to_nobody_until_it_goes_on(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.actors.nodes.gateway.GREET_S", 0.5)
    lines = command_lines(below())
    (raylet,) = (
        one
        for one, line in lines.items()
        if line.split(" ")[0].endswith("raylet") and "--node-name=node-3" in line
    )
    flow = sw.Dataflow("next")
    flow.source("numbers", sw.table({"ts": [1, 2]}), event_time="ts", time_unit="s").sink(
        "out", sw.collect_sink()
    )
    raylet.suspend()
    try:
        began_s = time.monotonic()
        assert cluster.plan(flow).slot_names
        assert cluster.nodes == ["node-1", "node-2"]
        assert time.monotonic() - began_s < 10
        with pytest.raises(FlowError, match="node-3") as caught:
            cluster.submit(flow, placement={"*": "node-3"})
        assert "(node node-3 is left out: its raylet" in "".join(caught.value.__notes__)
    finally:
        raylet.resume()
    until(
        lambda: bool(cluster.plan(flow)) and "node-3" in cluster.nodes, within_s=20, what="node-3"
    )
    assert psutil.pid_exists(raylet.pid)
