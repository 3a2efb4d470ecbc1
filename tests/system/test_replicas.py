"""A gate shared by the replicas of an operator, on nodes: what the simulator finds."""

from __future__ import annotations

from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.errors import WorkerDied
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import sorted_rows
from tests.support.replicas import ROWS, counts, paired, simulate
from tests.support.waiting import until
from tests.support.writers import expected, flow_of, manifest_of, rows_of

pytestmark = pytest.mark.ray

SOON_S = 30.0


def test_on_ray_replicas_find_what_the_simulator_finds(cluster: sw.Cluster) -> None:
    def flow() -> sw.Dataflow:
        made, pairs = paired(replicas=2, share="all")
        pairs.sink("out", sw.collect_sink())
        counts(pairs, replicas=2).sink("counted", sw.collect_sink())
        return made

    expected, _ = simulate(flow())
    placement = {"pairs.gate": "node-1", "pairs.1": "node-2", "pairs.2": "node-3"}
    job = cluster.submit(flow(), placement=placement)
    report = job.wait(timeout=60.0)
    assert imbalances(report) == []
    assert report.ledger.out == report.ledger.entered == 2 * ROWS
    assert {s.name: s.node for s in report.stages if s.name in placement} == placement
    for sink in ("out", "counted"):
        assert sorted_rows(job.result(sink)) == sorted_rows(expected.result(sink))


def test_on_ray_each_replica_writes_parts_of_one_output(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    def flow(output: sw.connectors.Output) -> sw.Dataflow:
        made, pairs = paired(replicas=2)
        pairs.sink("out", output, ordered=False)
        return made

    alone, _ = simulate(flow(sw.collect_sink()))
    output = sw.parquet_sink(tmp_path / "out", rows=50)
    job = cluster.submit(flow(output), placement={"pairs.1": "node-2", "pairs.2": "node-3"})
    report = job.wait(timeout=60.0)
    assert imbalances(report) == []
    nodes = {stage.name: stage.node for stage in report.stages if stage.kind == "sink"}
    assert nodes == {"out.1": "node-2", "out.2": "node-3"}
    assert all(sink.published == sink.rows > 0 for sink in report.sinks)
    found = pq.read_table(tmp_path / "out")
    assert sorted_rows(found) == sorted_rows(alone.result("out"))
    (tmp_path / "out" / ".slackwater.json").unlink()
    assert len([*(tmp_path / "out").iterdir()]) == sum(sink.parts for sink in report.sinks)


def test_on_ray_a_killed_writer_leaves_whole_parts_and_the_next_run_its_own(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    places = {"counts.1": "node-1", "counts.2": "node-2", "counts.3": "node-3"}
    slowly = flow_of(sw.parquet_sink(out, rows=5), speed=0.05)  # eight seconds
    job = cluster.submit(slowly, placement=places)
    until(lambda: len([*out.glob("*.parquet")]) >= 6, within_s=SOON_S, what="parts")
    psutil.Process(job.workers()["node-2"]).kill()
    with pytest.raises(WorkerDied):
        job.wait(timeout=SOON_S)
    before = manifest_of(out)
    assert {part.rows for part in before.parts} == {5}
    assert not rows_of(pq.read_table(out)) - expected()
    again = flow_of(sw.parquet_sink(out, rows=50, overwrite=True))
    report = cluster.submit(again, placement=places).wait(timeout=SOON_S)
    assert report.state == "done"
    assert rows_of(pq.read_table(out)) == expected()
    parts = {part.name for part in manifest_of(out).parts}
    assert {path.name for path in out.iterdir()} == {".slackwater.json", *parts}
