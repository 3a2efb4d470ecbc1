"""A detached job goes on, ends and leaves, whatever becomes of the store that has its record."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.actors.jobs import detached
from slackwater.actors.jobs.named_actors import coordinator_of
from tests.support.coordinators import FAILURES, ForsakenCoordinator, TroubledCoordinator
from tests.support.flows import ticking
from tests.support.waiting import until

pytestmark = pytest.mark.ray

SECONDS = 2.0
LIMIT_S = 60.0
GONE_S = 30.0


def flow(name: str) -> sw.Dataflow:
    flow, numbers = ticking(name, seconds=SECONDS)
    numbers.sink("out", sw.callback_sink(len))
    return flow


def has_left(job: sw.Job) -> bool:
    return coordinator_of(job.id) is None  # those of other tests may keep what was collected


def test_a_store_that_fails_for_a_while_does_not_end_a_job(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "Coordinator", TroubledCoordinator)
    job = cluster.submit(flow("troubled"), detach=True)
    report = job.wait(timeout=LIMIT_S)
    assert (report.state, report.ledger.out) == ("done", 100 * SECONDS)
    assert any(f"could not be written {FAILURES} times" in note for note in report.notes)
    until(lambda: has_left(job), within_s=GONE_S, what="the coordinator to leave")
    assert cluster.job("troubled").report().to_json() == report.to_json()


def test_a_store_that_never_answers_again_leaves_an_end_that_is_told_and_no_actor(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "Coordinator", ForsakenCoordinator)
    job = cluster.submit(flow("forsaken"), detach=True)
    until(lambda: job.status != "running", within_s=LIMIT_S, what="the job to end")
    assert job.status == "done"
    until(lambda: has_left(job), within_s=GONE_S, what="the coordinator to leave")
    assert cluster.job("forsaken").status == "lost"  # which is what the store can tell
