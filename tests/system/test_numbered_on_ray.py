"""Numbered sources, and all that puts rows in order, on Ray: rows as in the simulator."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.runtime.measure.outcomes import SLACK_READY
from tests.support.numbered import all_parts_flow, numbered_flow, shuffled_devices

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


def test_clocks_drift_k_slack_and_closing_together_give_on_ray_what_the_simulator_gives(
    cluster: sw.Cluster,
) -> None:
    rows = shuffled_devices(6)
    results, counts = [], []
    for host in (sw.Simulation(nodes=3, seed=2), cluster):
        job = host.submit(all_parts_flow(rows, speed=2.0))
        report = job.wait(timeout=60)
        assert report.ledger.is_balanced
        results.append([job.result(sink) for sink in ("counts", "pairs", "closing")])
        # Which rows left the gate in front of windows that close in time depends on the clock.
        counts.append({**report.ledger.counts, SLACK_READY: 0})
    assert all(len(table) for table in results[0])
    for simulated, real in zip(*results, strict=True):
        assert simulated.equals(real)
    assert counts[0] == counts[1]
