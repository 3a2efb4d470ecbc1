"""The end of a driver, kind or not: no process is left, and no half result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """An endless flow on the command line that has results by now, and all that it started."""
    (folder / "flow.py").write_text(FLOW.format(folder=folder))
    command = ["-m", "slackwater.main", "run", str(folder / "flow.py")]
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, *command, "--nodes", "1", "--out", str(folder / "run")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            until(lambda: rows_so_far(folder), within_s=START_S, what="results")
            yield driver, psutil.Process(driver.pid).children(recursive=True)
        finally:
            driver.kill()


def rows_so_far(folder: Path) -> int:
    path = folder / "run" / "status.json"
    if not path.exists():
        return 0
    status = json.loads(path.read_text(encoding="utf-8"))
    if not status["tuning"]["gates"][0]["by"]:
        return 0  # its tuner is not up yet, and must not be left either
    sinks = status["sinks"]
    return min((sink["rows"] for sink in sinks), default=0)


def test_ctrl_c_stops_the_job_keeps_whole_results_and_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path) as (driver, started):
        assert len(started) > 5
        os.killpg(driver.pid, signal.SIGINT)  # the whole group, as a terminal does
        out, errors = driver.communicate(timeout=GONE_S + START_S)
        assert psutil.wait_procs(started, timeout=GONE_S)[1] == []
    assert driver.returncode == 130
    assert out == ""
    assert errors.splitlines()[-1] == "slackwater: interrupted"
    assert "Traceback" not in errors
    text = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line)["n"] for line in text.splitlines()]
    assert text.endswith("\n")
    assert found == list(range(len(found)))
    folder = pq.read_table(tmp_path / "out")["n"].to_pylist()
    assert folder == list(range(len(folder)))
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["state"] == "stopped"
    assert report["ledger"]["balanced"]
    rows = {sink["name"]: sink["rows"] for sink in report["sinks"]}
    assert rows == {"lines": len(found), "folder": len(folder)}


def test_a_killed_driver_leaves_no_process_and_no_half_result(tmp_path: Path) -> None:
    with running(tmp_path) as (driver, started):
        assert len(started) > 5
        driver.kill()
        assert psutil.wait_procs(started, timeout=GONE_S)[1] == []
    assert not (tmp_path / "out.jsonl").exists()
    (left,) = tmp_path.glob(".out.jsonl.*.incomplete")
    assert left.stat().st_size > 0
    for part in (tmp_path / "out").glob("*.parquet"):
        pq.read_table(part)


KILLS_ITSELF = """
import os
import signal
import slackwater as sw
from tests.support.endless import EndlessInput

def die(rows):
    os.kill(os.getpid(), signal.SIGKILL)

flow = sw.Dataflow("dies")
flow.source("numbers", EndlessInput(), event_time="ts").sink("calls", sw.callback_sink(die))
"""


def test_with_json_stdout_is_one_object_though_a_worker_was_killed(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(KILLS_ITSELF, encoding="utf-8")
    command = ["-m", "slackwater.main", "run", str(tmp_path / "flow.py"), "--nodes", "1", "--json"]
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, *command, "--out", str(tmp_path / "run")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WHOLE_RUN_S,
        check=False,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "WorkerDied"
    assert done.stderr.startswith("slackwater: the worker of slot 'node-1'")
    assert "raylet" not in done.stderr
