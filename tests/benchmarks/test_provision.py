"""The random flows of `provision`, and how its answers are judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.mace.provision import NEAR, judge
from benchmarks.mace.random_flow import LIMITS, MOST, random_flow


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_draws_one_flow_with_more_to_do_than_a_node_can(seed: int) -> None:
    one, other = (random_flow(seed, seconds=8.0) for _ in range(2))
    assert one.flow.explain() == other.flow.explain()
    assert (one.cost_s, one.link, one.floor_s) == (other.cost_s, other.link, other.floor_s)
    assert sum(one.shares) > 1.1 * one.cores
    assert max(one.shares) <= MOST
    assert (one.link is not None) is (seed % 2 == 1)


def test_costs_are_exact_and_a_sample_knows_how_many_rows_come_to_each_operator() -> None:
    drawn = random_flow(4, seconds=5.0)
    host = drawn.host(2)
    made = host.predict(drawn.flow, drawn.trace(), sample=drawn.sample, horizon=5.0)
    job = host.submit(drawn.flow, placement=made.plan.slots, limits=LIMITS)
    busy_s = {stage.name: stage.service_ns / 1e9 for stage in job.wait().stages}
    for name, share in zip(drawn.cost_s, drawn.shares, strict=True):
        assert made.cores_by[name] == pytest.approx(share, rel=0.01)
        assert busy_s[name] == pytest.approx(share * drawn.seconds, rel=0.05)


def test_an_answer_is_right_if_n_nodes_keep_the_deadline_and_one_fewer_does_not() -> None:
    found = judge(3, seconds=5.0)
    limit_s = found.deadline_s
    keeps, breaks = replace(found.enough, measured_s=limit_s), replace(found.fewer, measured_s=99.0)
    assert replace(found, enough=keeps, fewer=breaks).is_provisioned
    assert not replace(found, enough=breaks, fewer=breaks).is_provisioned
    assert not replace(found, enough=keeps, fewer=keeps).is_provisioned
    verdict = found.admitted.made.keeps(found.deadline_s)
    near = replace(found.admitted, measured_s=limit_s * (1 + NEAR / 2))
    far = replace(found.admitted, measured_s=limit_s * (1 + NEAR * 2))
    assert replace(found, admitted=near).is_near
    assert not replace(found, admitted=far).is_near
    assert replace(found, admitted=far).is_admission_right is (verdict is False)
    lower, upper = found.enough.made.estimate.bounds_s
    for measured_s, is_within in ((lower, True), (upper, True), (upper + 1, False), (-1.0, False)):
        assert replace(found.enough, measured_s=measured_s).is_within is is_within
