"""A gate shared by the replicas of an operator, on nodes: what the simulator finds."""

from __future__ import annotations

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
