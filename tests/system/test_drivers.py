"""The end of a driver, kind or not: no process is left, and no half result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.waiting import until

pytestmark = pytest.mark.ray

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
WHOLE_RUN_S = 100.0  # below what pytest gives a test
GONE_S = 10.0
FLOW = """
import slackwater as sw
from tests.support.endless import EndlessInput

flow = sw.Dataflow("endless", deadline="1s")
numbers = flow.source("numbers", EndlessInput(), event_time="ts").merge(name="gate")
numbers.sink("lines", sw.jsonl_sink("{folder}/out.jsonl"))
numbers.sink("folder", sw.parquet_sink("{folder}/out"))
"""
KILLS_ITSELF = """
import os
import slackwater as sw
from tests.support.endless import EndlessInput

def die(rows):
    os._exit(3)

flow = sw.Dataflow("dies")
flow.source("numbers", EndlessInput(), event_time="ts").sink("calls", sw.callback_sink(die))
"""


class Driver:
    """A flow on the command line, in a session of its own."""

    def __init__(self, folder: Path, flow: str, *options: str) -> None:
        self.folder = folder
        self.started: list[psutil.Process] = []
        """All that it had started when it was struck."""
        (folder / "flow.py").write_text(flow, encoding="utf-8")
        command = ["-m", "slackwater.cli.main", "run", str(folder / "flow.py"), "--nodes", "1"]
        self.process = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, *command, "--out", str(folder / "run"), *options],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def has_results(self) -> bool:
        path = self.folder / "run" / "status.json"
        if not path.exists():
            return False
        status = json.loads(path.read_text(encoding="utf-8"))
        if status["tuning"] is None or not status["tuning"]["gates"][0]["by"]:
            return False  # its tuner is not up yet, and must not be left either
        return min((sink["rows"] for sink in status["sinks"]), default=0) > 0

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Driver]]:
    """Three that start side by side: one gets Ctrl-C, one is killed, and one loses its worker.

    The first two are struck as soon as they have results: they would take all of the CPU.
    """
    with ExitStack() as stack:

        def start(name: str, flow: str, *options: str) -> Driver:
            folder = tmp_path_factory.mktemp(name)
            flow = flow.replace("{folder}", str(folder))
            return stack.enter_context(Driver(folder, flow, *options))

        interrupted, killed = start("interrupted", FLOW), start("killed", FLOW)
        loses = start("loses", KILLS_ITSELF, "--json")
        waiting = [interrupted, killed]

        def are_struck() -> bool:
            for driver in [driver for driver in waiting if driver.has_results()]:
                waiting.remove(driver)
                driver.started = psutil.Process(driver.process.pid).children(recursive=True)
                if driver is killed:
                    driver.process.kill()
                else:
                    os.killpg(driver.process.pid, signal.SIGINT)  # as a terminal does
            return not waiting

        until(are_struck, within_s=START_S, what="results")
        yield {"interrupted": interrupted, "killed": killed, "loses": loses}


def test_ctrl_c_stops_the_job_keeps_whole_results_and_leaves_no_process(
    drivers: dict[str, Driver],
) -> None:
    driver = drivers["interrupted"]
    assert len(driver.started) > 5
    out, errors = driver.process.communicate(timeout=GONE_S + START_S)
    assert psutil.wait_procs(driver.started, timeout=GONE_S)[1] == []
    assert driver.process.returncode == 130
    assert out == ""
    interrupted, kept = errors.splitlines()[-2:]
    assert interrupted == "slackwater: interrupted"
    assert kept.startswith("(what had been done until then is in ")
    assert "Traceback" not in errors
    text = (driver.folder / "out.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line)["n"] for line in text.splitlines()]
    assert text.endswith("\n")
    assert found == list(range(len(found)))
    folder = pq.read_table(driver.folder / "out")["n"].to_pylist()
    assert folder == list(range(len(folder)))
    report = json.loads((driver.folder / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["state"] == "stopped"
    assert report["ledger"]["balanced"]
    rows = {sink["name"]: sink["rows"] for sink in report["sinks"]}
    assert rows == {"lines": len(found), "folder": len(folder)}


def test_a_killed_driver_leaves_no_process_and_no_half_result(drivers: dict[str, Driver]) -> None:
    driver = drivers["killed"]
    assert len(driver.started) > 5
    assert psutil.wait_procs(driver.started, timeout=GONE_S)[1] == []
    assert not (driver.folder / "out.jsonl").exists()
    (left,) = driver.folder.glob(".out.jsonl.*.incomplete")
    assert left.stat().st_size > 0
    for part in (driver.folder / "out").glob("*.parquet"):
        pq.read_table(part)


def test_with_json_stdout_is_one_object_and_a_worker_that_left_is_told_with_its_exit_code(
    drivers: dict[str, Driver],
) -> None:
    driver = drivers["loses"]
    out, errors = driver.process.communicate(timeout=WHOLE_RUN_S)
    assert driver.process.returncode == 1
    error = json.loads(out)["error"]
    assert error["kind"] == "WorkerDied"
    assert "its process was ended by exit code 3 (os._exit), at " in error["message"]
    place = ", line 7, in die; the last code of yours that ran there is that of 'calls'"
    assert place in error["message"]
    assert errors.startswith("slackwater: the worker of slot 'node-1'")
    assert "raylet" not in errors
