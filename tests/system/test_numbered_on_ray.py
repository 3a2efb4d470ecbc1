"""Numbered sources on real Ray nodes: the rows and counts of the simulator."""

from __future__ import annotations

import pytest

import slackwater as sw
from tests.support.numbered import numbered_flow, shuffled_devices

pytestmark = pytest.mark.ray


def test_a_paced_numbered_source_gives_on_ray_what_the_simulator_gives(cluster: sw.Cluster) -> None:
    rows = shuffled_devices(5)
    results, counts = [], []
    for host in (sw.Simulation(nodes=3, seed=1), cluster):
        job = host.submit(numbered_flow(rows, speed=2.0, merge=False))
        report = job.wait(timeout=60)
        assert report.ledger.is_balanced
        results.append(job.result("counts"))
        counts.append(report.ledger.counts)
    assert results[0].equals(results[1])
    assert counts[0] == counts[1]
