"""A gate shared by the replicas of an operator, on nodes: what the simulator finds."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import sorted_rows
from tests.support.replicas import ROWS, counts, paired, simulate

pytestmark = pytest.mark.ray


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

    expected, _ = simulate(flow(sw.collect_sink()))
    output = sw.parquet_sink(tmp_path / "out", rows=50)
    job = cluster.submit(flow(output), placement={"pairs.1": "node-2", "pairs.2": "node-3"})
    report = job.wait(timeout=60.0)
    assert imbalances(report) == []
    nodes = {stage.name: stage.node for stage in report.stages if stage.kind == "sink"}
    assert nodes == {"out.1": "node-2", "out.2": "node-3"}
    assert all(sink.published == sink.rows > 0 for sink in report.sinks)
    found = pq.read_table(tmp_path / "out")
    assert sorted_rows(found) == sorted_rows(expected.result("out"))
    (tmp_path / "out" / ".slackwater.json").unlink()
    assert len([*(tmp_path / "out").iterdir()]) == sum(sink.parts for sink in report.sinks)
