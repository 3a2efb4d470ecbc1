"""`dedupe` and an operator of one's own on Ray."""

from __future__ import annotations

import pytest

import slackwater as sw
from examples import own_operator
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import sorted_rows
from tests.support.own_operators import EXPECTED, flow_of, run

pytestmark = pytest.mark.ray


def test_ray_and_the_simulator_give_the_same(cluster: sw.Cluster) -> None:
    flow = own_operator.flow()
    job = cluster.submit(flow, placement={"*": "node-2"})
    report = job.wait()
    assert not imbalances(report)
    assert job.result("out").to_pylist() == EXPECTED
    own = {stage.name: stage for stage in report.stages}
    assert own["once"].counted == {"duplicates": 1}
    wide = cluster.submit(flow_of(replicas=2))
    wide.wait()
    simulated_job, _ = run(flow_of(replicas=2))
    assert sorted_rows(wide.result("out")) == sorted_rows(simulated_job.result("out"))
