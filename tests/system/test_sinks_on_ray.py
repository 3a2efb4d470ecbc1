"""A live sink on Ray nodes is killed; its rerun makes what a run that nobody disturbed makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import slackwater as sw
from benchmarks.engine.sinks.flow import PLACES, flow_of, write_inputs
from benchmarks.engine.sinks.reader import Watcher, shown
from slackwater.actors.jobs.records import JobRecord, Records, Worker
from slackwater.actors.sinks.lock import here_as
from slackwater.runtime.errors import SinkError, WorkerDied
from tests.support.endless import EndlessInput
from tests.support.sinks import RUN, seen
from tests.support.small_disks import mounted
from tests.support.waiting import until

pytestmark = pytest.mark.ray

SOON_S = 30.0


def test_a_killed_live_sink_shows_whole_parts_and_its_rerun_makes_the_same_bytes(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    expected = write_inputs(tmp_path)
    with sw.Simulation(1) as place:
        place.submit(flow_of(tmp_path, tmp_path / "whole", "rows", speed=None)).wait()
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with Watcher(out, expected) as watcher:
        slowly = flow_of(tmp_path, out, "rows", speed=0.2)  # fifteen seconds
        job = cluster.submit(slowly, placement=PLACES)
        # Whoever merely waits hears of its slots, too: of the killed one that is all there is.
        until(lambda: job.status == "running" and watcher.rows >= 300, within_s=SOON_S, what="rows")
        psutil.Process(job.workers()["node-3"]).kill()
        with pytest.raises(WorkerDied):
            job.wait(timeout=SOON_S)
        assert 300 <= watcher.rows < len(expected)
        (killed,) = job.report().sinks
        assert killed.published is not None
        assert killed.published <= watcher.rows
        note = f"when last heard of, {killed.published:,} rows of this job were published"
        assert any(note in one for one in job.report().notes)
        again = cluster.submit(
            flow_of(tmp_path, out, "rows", speed=None), placement={"*": "node-1"}
        )
        report = again.wait(timeout=SOON_S)
    assert watcher.problems == []
    assert report.ledger.is_balanced
    (sink,) = report.sinks
    assert sink.already_committed >= 300
    assert sink.already_committed + sink.rows == len(expected)
    assert shown(out) == shown(tmp_path / "whole")
    assert (out / "notes.txt").read_text() == "mine"


def test_a_slot_asks_the_cluster_s_records_whether_the_holder_of_a_lock_is_over(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    holder = replace(
        here_as("out", RUN, since_ns=0), host="elsewhere", machine="m2", boot="b2", pid=7
    )
    (tmp_path / ".slackwater.lock").write_text(json.dumps(holder.to_json()))
    flow = sw.Dataflow("next")
    rows = sw.table({"ts": [1, 2, 3], "n": [0, 1, 2]})
    numbers = flow.source("numbers", rows, event_time="ts", time_unit="ms")
    numbers.sink("out", sw.jsonl_sink(tmp_path))
    with pytest.raises(SinkError, match=r"on elsewhere\), and whether"):
        cluster.submit(flow, placement={"*": "node-1"})
    workers = {"node-9": Worker("node-9", "n9", "elsewhere", holder.pid)}
    record = JobRecord(
        id=RUN.job, flow="f", state="lost", submitter="me", submitted_ns=0, workers=workers
    )
    Records().write(record)
    try:
        report = cluster.submit(flow, placement={"*": "node-1"}).wait(timeout=SOON_S)
    finally:
        Records().delete(RUN.job)
    assert any("the end of that job is on record" in note for note in report.notes)
    assert seen(tmp_path) == [0, 1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "size=1m") as folder:
        yield folder


def test_a_full_disk_at_the_sink_is_an_error_and_what_was_written_is_whole(
    cluster: sw.Cluster, small_disk: Path
) -> None:
    flow = sw.Dataflow("full-disk")
    numbers = flow.source("numbers", EndlessInput(), event_time="ts")
    path = small_disk / "out.parquet"
    numbers.sink("out", sw.parquet_sink(path))
    job = cluster.submit(flow, placement={"*": "node-1"})
    with pytest.raises(SinkError) as caught:
        job.wait(timeout=SOON_S)
    said = str(caught.value)
    assert said.startswith(f"sink 'out' could not write {path}: No space left on device (")
    assert "make room, or choose another path" in said
    assert "0 rows are published and safe" in said
    assert [one.name for one in small_disk.iterdir() if not one.name.startswith(".")] == []
