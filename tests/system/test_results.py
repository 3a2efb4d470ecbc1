"""Results that do not come are told of as what they are: late, or gone with their worker."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import ray

import slackwater as sw
from slackwater.actors.jobs import results
from slackwater.actors.jobs.results import Results
from slackwater.actors.slot.actor import Piece
from slackwater.runtime.errors import ClusterError, WorkerDied
from slackwater.runtime.plan.plan import Plan
from tests.support.flows import late_pair

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]

SOON_S = 30.0
LATE_S = 0.3


class Collector:
    """A slot whose results come at once, never, or end its process."""

    def __init__(self, how: str) -> None:
        self._how = how

    def is_there(self) -> bool:
        return True

    def collected(self, sink: str, at: int) -> Piece:
        if self._how == "never":
            threading.Event().wait()
        if self._how == "dies":
            os._exit(1)
        return Piece(sink.encode()[at : at + 2], len(sink))


@pytest.fixture(scope="module")
def plan() -> Plan:
    with sw.Simulation(1) as nodes:
        return nodes.plan(late_pair("late", seconds=1))


def results_of(plan: Plan, how: str) -> Results:
    (slot,) = plan.slot_names
    made: Any = ray.remote(Collector)
    actor = made.options(num_cpus=0).remote(how)
    ray.get(actor.is_there.remote(), timeout=SOON_S)
    return Results(plan, {slot: actor})


def test_results_that_came_are_kept(plan: Plan) -> None:
    found = results_of(plan, "at once")
    assert found.keep(["out"]) == []
    assert (found.fetched, found.of("out")) == (["out"], b"out")


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("never", ClusterError, "'out' did not come from slot 'node-1' within 0.3 s"),
        ("dies", WorkerDied, "'out' are gone with the worker of slot 'node-1'"),
    ],
)
def test_results_that_are_late_are_not_said_to_be_gone_with_their_worker(
    plan: Plan, how: str, kind: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "never":
        monkeypatch.setattr(results, "FETCH_S", LATE_S)
    found = results_of(plan, how)
    with pytest.raises(kind, match=words):
        found.fetch("out")
    (note,) = found.keep(["out"])
    assert words in note
    with pytest.raises(kind, match=words):
        found.of("out")
    assert found.fetched == []
