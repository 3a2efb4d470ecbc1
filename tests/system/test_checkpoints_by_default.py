"""A live flow whose user says nothing of checkpoints, on real Ray nodes."""

from __future__ import annotations

import os
import secrets
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput, rows_of
from slackwater.actors.jobs.reach import why_not_reached
from slackwater.actors.nodes.placement import list_nodes
from tests.support.endless import EndlessInput, LoggedInput
from tests.support.waiting import until

pytestmark = pytest.mark.ray

ROWS = 10_000
LIMIT_S, SOON_S = 60.0, 20.0


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def logged(path: Path, began_s: float, name: str = "log") -> sw.Dataflow:
    flow = sw.Dataflow("logged")
    rows = flow.source(name, LoggedInput(ROWS, began_s), event_time="ts")
    rows.sink("out", TableOutput(str(path)))
    return flow


@pytest.mark.parametrize("detach", [False, True])
def test_a_live_flow_comes_back_and_goes_on_after_a_stop(
    cluster: sw.Cluster, own_folder: Path, *, detach: bool
) -> None:
    path, folder = own_folder / "rows.db", own_folder / ".slackwater" / "logged"
    flow = logged(path, time.time())
    assert cluster.explain(flow).endswith(f"by default checkpoints each 1 s to {folder}")
    job = cluster.submit(flow, detach=detach)
    assert job.checkpoints == f"checkpoints each 1 s to {folder}"
    newest = partial(folder.glob, "checkpoint-*.json")
    until(lambda: [*newest()], within_s=SOON_S, what="a checkpoint")
    os.kill(job.workers()[job.placement["out"]], signal.SIGKILL)
    until(lambda: job.report().recoveries, within_s=SOON_S, what="a recovery")
    job.stop()
    had = rows_of(path)
    again = cluster.submit(flow, detach=detach)
    assert ("goes on from checkpoint " in again.checkpoints) != detach
    report = again.wait(timeout=LIMIT_S)
    assert report.ledger.is_balanced
    rows = rows_of(path)
    assert [ordinal for ordinal, _ in rows] == [*range(ROWS)]
    assert 0 < len(had) < ROWS
    assert rows[: len(had)] == had
    until(lambda: not folder.parent.exists(), within_s=SOON_S, what="its folder to go")


def test_a_second_job_of_the_flow_runs_without(cluster: sw.Cluster, own_folder: Path) -> None:
    began_s = time.time()
    first = cluster.submit(logged(own_folder / "a.db", began_s), placement={"*": "node-1"})
    second = cluster.submit(logged(own_folder / "b.db", began_s), placement={"*": "node-2"})
    assert first.checkpoints.startswith("checkpoints each 1 s")
    assert second.checkpoints.startswith("no checkpoints: ")
    for job in (first, second):
        assert job.wait(timeout=LIMIT_S).state == "done"
    assert second.checkpoints in second.report().notes


def test_an_input_that_does_not_say_how_it_is_read_on_has_none(cluster: sw.Cluster) -> None:
    flow = sw.Dataflow("endless")
    flow.source("numbers", EndlessInput(), event_time="ts").sink("out", sw.callback_sink(print))
    why = "no checkpoints: the input of source 'numbers' does not say"
    assert f"by default {why}" in cluster.explain(flow)
    job = cluster.submit(flow)
    job.stop()
    assert job.checkpoints.startswith(why)
    assert job.checkpoints in job.report().notes


def test_hosts_see_what_one_of_them_makes(cluster: sw.Cluster, own_folder: Path) -> None:
    nodes = [replace(node, ip=f"10.0.0.{n}") for n, node in enumerate(list_nodes())]
    before = [*own_folder.iterdir()]
    assert why_not_reached(str(own_folder / "not" / "there"), nodes) == ""
    assert [*own_folder.iterdir()] == before
    (own_folder / "file").write_text(secrets.token_hex(2))
    assert "cannot write to" in why_not_reached(str(own_folder / "file" / "below"), nodes)
