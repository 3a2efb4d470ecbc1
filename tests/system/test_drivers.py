"""The end of a driver, kind or not: no process is left, and no half result."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.drivers import ENDLESS, Driver
from tests.support.waiting import until

pytestmark = pytest.mark.ray

START_S = 60.0
WHOLE_RUN_S = 100.0  # below what pytest gives a test
GONE_S = 10.0
KILLS_ITSELF = """
import os
import slackwater as sw
from tests.support.endless import EndlessInput

def die(rows):
    os._exit(3)

flow = sw.Dataflow("dies")
flow.source("numbers", EndlessInput(), event_time="ts").sink("calls", sw.callback_sink(die))
"""


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Driver]]:
    """Three that start side by side: one gets Ctrl-C, one is killed, and one loses its worker.

    The first two are struck as soon as they have results: they would take all of the CPU.
    """
    with ExitStack() as stack:

        def start(name: str, flow: str, *options: str) -> Driver:
            folder = tmp_path_factory.mktemp(name)
            return stack.enter_context(Driver(folder, flow, *options))

        interrupted, killed = start("interrupted", ENDLESS), start("killed", ENDLESS)
        loses = start("loses", KILLS_ITSELF, "--json")
        waiting = [interrupted, killed]

        def are_struck() -> bool:
            for driver in [driver for driver in waiting if driver.has_results()]:
                waiting.remove(driver)
                driver.strike(signal.SIGKILL if driver is killed else signal.SIGINT)
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
    assert "balanced" in out
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
    place = ", line 7, in die; the last input, function or output that ran there is that of 'calls'"
    assert place in error["message"]
    assert errors.startswith("slackwater: the worker of slot 'node-1'")
    assert "raylet" not in errors
