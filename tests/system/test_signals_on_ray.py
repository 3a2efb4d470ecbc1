"""SIGTERM and SIGHUP end a run on Ray in order: while it starts, runs, and in a user's script."""

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
import pytest

from tests.support.drivers import ENDLESS, ROOT, Driver
from tests.support.waiting import until

pytestmark = pytest.mark.ray

START_S = 60.0
ENDS_S = 40.0
SCRIPT = """
import sys
import slackwater as sw
from tests.support.endless import EndlessInput

flow = sw.Dataflow("endless")
numbers = flow.source("numbers", EndlessInput(), event_time="ts")
numbers.sink("out", sw.jsonl_sink("{folder}/out.jsonl"))
with sw.Cluster.local(1) as cluster:
    job = cluster.submit(flow)
    job.wait(on_report=lambda seen: seen.sinks[0].rows and print("runs", flush=True))
"""


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Driver]]:
    with ExitStack() as stack:

        def start(name: str, *options: str, under: tuple[str, ...] = ()) -> Driver:
            folder = tmp_path_factory.mktemp(name)
            return stack.enter_context(Driver(folder, ENDLESS, *options, under=under))

        starts = start("starts", "--json")
        until(lambda: starts.status is not None, within_s=START_S, what="a start")
        starts.strike(signal.SIGTERM)
        kept = start("kept", "--json", under=("nohup",))
        until(kept.has_results, within_s=START_S, what="results")
        kept.strike(signal.SIGHUP)  # ignored, so the next is the first
        kept.strike(signal.SIGTERM)
        yield {"starts": starts, "kept": kept}


def ended(driver: Driver) -> tuple[str, str]:
    """Return what a driver printed; nothing that it had started is left."""
    out, errors = driver.process.communicate(timeout=ENDS_S)
    assert driver.process.returncode == 143, errors
    assert "***" not in errors, "Ray dumped its stack"
    assert psutil.wait_procs(driver.started, timeout=ENDS_S)[1] == []
    return out, errors


def test_sigterm_while_a_run_starts_leaves_its_report_and_one_object(
    drivers: dict[str, Driver],
) -> None:
    out, errors = ended(drivers["starts"])
    assert json.loads(out)["error"]["kind"] == "Interrupted"
    run = drivers["starts"].folder / "run"
    assert errors == (
        f"slackwater: interrupted\n(the flow had not begun; its report is {run / 'report.json'})\n"
    )
    assert json.loads((run / "report.json").read_text())["state"] == "stopped"
    assert (run / "latency.png").exists()


def test_sigterm_while_a_run_runs_publishes_all_and_shows_the_report(
    drivers: dict[str, Driver],
) -> None:
    """It runs under nohup, and a SIGHUP comes first: that ends nothing."""
    driver = drivers["kept"]
    out, _ = ended(driver)
    lines = (driver.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    report = json.loads((driver.folder / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["state"] == "stopped"
    assert report["ledger"]["balanced"]
    assert {sink["name"]: sink["rows"] for sink in report["sinks"]}["lines"] == len(lines) > 0
    assert (driver.folder / "run" / "latency.png").exists()
    assert json.loads(out)["state"] == "stopped"


def test_sigterm_ends_a_script_with_a_job_in_order(tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-c", SCRIPT.replace("{folder}", str(tmp_path))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as script:
        try:
            assert script.stdout is not None
            assert script.stdout.readline() == "runs\n"
            script.terminate()
            _, errors = script.communicate(timeout=ENDS_S)
        finally:
            script.kill()
    assert (script.returncode, errors) == (143, "")
    assert (tmp_path / "out.jsonl").read_text().endswith("\n")
