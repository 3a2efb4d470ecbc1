"""The floor of policies: its evaluator is the simulator's equal, its plan keeps the deadline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from benchmarks.sltuner import chain, late_city, zipf
from benchmarks.sltuner.deadline import Experiment, Outcome, named, run
from benchmarks.sltuner.floor.arrivals import NotAloneError
from benchmarks.sltuner.floor.clairvoyant import planned
from benchmarks.sltuner.floor.hold_program import HoldProgram
from benchmarks.sltuner.floor.local_search import (
    MOST_NS,
    RESERVE_S,
    on_grid,
    searched,
    tasks_of,
)
from benchmarks.sltuner.floor.one_gate import OneGate, Seconds
from benchmarks.sltuner.floor.search import QUICK, best_of, floor_plan
from examples.city import zipf_delays
from slackwater.runtime.model import Int64Array

SECONDS, DEADLINE_S, SEED = 14, 2.5, 3


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """A wave of late buses over a sink that cannot keep up; every second counts."""
    like = zipf.experiment(SECONDS)

    def build(seed: int, sink: sw.connectors.Output) -> sw.Dataflow:
        rng = np.random.default_rng(seed)
        times_ns = late_city.times(SECONDS)
        return late_city.congestion(
            "small",
            sink,
            deadline_s=DEADLINE_S,
            seconds=SECONDS,
            bus_times_ns=times_ns,
            arrival_ns=zipf_delays(times_ns, rng),
            rng=rng,
        )

    return replace(like, build=build, first_second=0)


@pytest.fixture(scope="module")
def gate(experiment: Experiment) -> OneGate:
    return OneGate(experiment, seed=SEED)


@pytest.fixture(scope="module")
def floor(gate: OneGate) -> tuple[Int64Array, float]:
    """The plan of the floor: holds, shape (SECONDS,), and what it costs; it is searched once."""
    return floor_plan(gate, first_second=0, effort=QUICK, seed=SEED)


def assert_same(found: Seconds, simulated: Outcome, *, rows: int = 0) -> None:
    np.testing.assert_allclose(found.slack_ready, simulated.slack_ready, rtol=0, atol=rows)
    np.testing.assert_allclose(found.latency_s, simulated.latency_s, atol=RESERVE_S)


def test_the_evaluator_says_of_any_holds_what_the_simulator_says(
    experiment: Experiment, gate: OneGate
) -> None:
    rng = np.random.default_rng(SEED)
    holds_ns = on_grid(rng.uniform(0, 4e9, SECONDS))
    found = gate.part(0, SECONDS).evaluate(holds_ns)
    assert found.slack_ready.sum() > 1_000
    assert_same(found, run(experiment, planned(gate, holds_ns), seed=SEED))


def test_the_evaluator_says_of_a_constant_slack_what_the_simulator_says(
    experiment: Experiment, gate: OneGate
) -> None:
    found = gate.part(0, SECONDS).under_slack(1_000_000_000)
    assert found.slack_ready.sum() > 1_000
    # A row may be ready by one message and due by another that comes with it.
    assert_same(found, run(experiment, named("1s"), seed=SEED), rows=3)


def test_an_evaluation_does_not_depend_on_what_was_evaluated_before(gate: OneGate) -> None:
    rng = np.random.default_rng(SEED)
    used = gate.part(0, SECONDS)
    for _ in range(20):
        holds_ns = on_grid(rng.uniform(0, 4e9, SECONDS))
        again, fresh = used.evaluate(holds_ns), gate.part(0, SECONDS).evaluate(holds_ns)
        np.testing.assert_array_equal(again.slack_ready, fresh.slack_ready)
        np.testing.assert_array_equal(again.latency_s, fresh.latency_s)


def test_the_plan_of_the_floor_keeps_the_deadline_and_costs_what_was_promised(
    experiment: Experiment, gate: OneGate, floor: tuple[Int64Array, float]
) -> None:
    never = gate.part(0, SECONDS).evaluate(np.full(SECONDS, MOST_NS))
    assert (never.latency_s > DEADLINE_S).any()  # else there is nothing to be decided
    holds_ns, cost = floor
    outcome = run(experiment, planned(gate, holds_ns), seed=SEED)
    assert outcome.over == 0
    assert outcome.slack_ready_rows == cost < np.inf


def test_the_program_says_of_its_plans_what_the_evaluator_says(gate: OneGate) -> None:
    (task,) = tasks_of(gate, first_second=0)
    plans = HoldProgram(gate, task, may_be_over=1).plans(QUICK.grains[0])
    assert [plan.over for plan in plans] == [0, 1]
    for plan in plans:
        found = task.part.evaluate(plan.holds_ns)
        assert found.slack_ready.sum() == pytest.approx(plan.rows, rel=0.01)
        assert int((found.latency_s > task.limit_s + RESERVE_S).sum()) <= plan.over


def test_local_search_alone_finds_no_better_plan_than_the_floor(
    gate: OneGate, floor: tuple[Int64Array, float]
) -> None:
    _, local = searched(gate, first_second=0, evaluations=20, seed=SEED)
    assert floor[1] <= local < np.inf


def test_a_second_that_may_be_over_saves_rows(gate: OneGate) -> None:
    (task,) = tasks_of(gate, first_second=0)
    rng = np.random.default_rng(SEED)
    never, once = best_of(gate, task, 1, effort=QUICK, rng=rng)
    assert once.cost < never.cost < np.inf


def test_flows_of_another_shape_are_refused_by_name() -> None:
    with pytest.raises(NotAloneError, match=r"flow 'chain'.*simulate"):
        OneGate(chain.experiment(5), seed=1)
