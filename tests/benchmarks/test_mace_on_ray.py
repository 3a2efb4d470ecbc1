"""Operators that take a set time, and what a run on Ray is compared with."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.mace.on_ray import service
from benchmarks.mace.on_ray.judge import by_second, error_by_second, judged
from benchmarks.mace.on_ray.service import Account, Moment, working
from benchmarks.mace.on_ray.trial import (
    TAIL_S,
    OnRay,
    core_shares,
    limits_for,
    pattern_s,
    with_costs,
)
from benchmarks.mace.query import STAGES, add_query
from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, QueryOperator
from slackwater.runtime.foresight.curves import WindowCurve
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.registry.operators import MACHINES
from slackwater.runtime.simulate import LinkModel, Simulation

MS = 1_000_000
COUNT = 40
URLS = ("http://b.org/", "https://a.com/x")
COSTS_NS = {f"1.{name}": float((number + 1) * MS) for number, name in enumerate(STAGES)}


class Thread:
    """A thread's clock: time goes by where it spends it, or is told to."""

    def __init__(self, *, late_ns: int = 0) -> None:
        self.at = Moment(0, 0, 0)
        self.late_ns = late_ns
        self.spent: list[int] = []

    def __call__(self) -> Moment:
        return self.at

    def works(self, ns: int, *, held_up_ns: int = 0) -> None:
        self.at = Moment(self.at.wall_ns + ns + held_up_ns, self.at.cpu_ns + ns, self.at.waits)

    def idles(self, ns: int, *, waits: int = 1) -> None:
        self.at = Moment(self.at.wall_ns + ns, self.at.cpu_ns, self.at.waits + waits)

    def spend(self, ns: int) -> int:
        self.spent.append(ns)
        took = ns + self.late_ns
        self.at = Moment(self.at.wall_ns + took, self.at.cpu_ns, self.at.waits + 1)
        return took


@pytest.mark.parametrize("seed", range(20))
def test_a_busy_thread_takes_the_set_time_whatever_holds_it_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    thread = Thread(late_ns=int(rng.integers(0, 3 * MS)))
    account = Account(thread, thread.spend)
    works_ns = rng.integers(0, 8 * MS, 200).tolist()
    for work_ns in works_ns:
        thread.works(
            int(rng.integers(0, MS)), held_up_ns=int(rng.choice([0, 20 * MS], p=[0.97, 0.03]))
        )
        account.take(work_ns)
    behind_ns = thread.at.wall_ns - sum(works_ns)
    assert behind_ns == -int(account.owed_ns), f"seed {seed}"
    assert account.owed_ns < service.LEAST_NS


def test_what_a_thread_was_behind_is_forgotten_once_it_was_idle() -> None:
    thread = Thread()
    account = Account(thread, thread.spend)
    thread.works(30 * MS)
    account.take(MS)
    assert account.owed_ns == -29 * MS
    thread.idles(20 * MS, waits=20)
    account.take(MS)
    assert account.owed_ns == -8 * MS
    thread.idles(1_000 * MS)
    account.take(10 * MS)
    assert thread.spent == [10 * MS]


def test_a_thread_is_never_far_behind() -> None:
    account = Account(thread := Thread(), thread.spend)
    thread.works(3_000 * MS)
    account.take(MS)
    assert account.owed_ns == -service.BEHIND_NS


def test_a_wait_for_another_thread_is_not_idleness_but_a_millisecond() -> None:
    thread = Thread()
    account = Account(thread, thread.spend)
    thread.idles(9 * MS, waits=2)
    account.take(10 * MS)
    assert thread.spent == [3 * MS]


def test_what_an_idle_thread_uses_to_look_around_counts_for_little() -> None:
    thread = Thread()
    account = Account(thread, thread.spend)
    thread.idles(MS)
    thread.works(300 * MS)
    account.take(10 * MS)
    assert thread.spent == [10 * MS - service.OWN_NS]


def a_plan() -> Plan:
    flow = sw.Dataflow("mace")
    table = pa.table(
        {
            "ts": (np.arange(COUNT) * 50 * MS).astype(np.int64),
            "panelist": pa.array(["ann" if n % 3 else "bob" for n in range(COUNT)]),
            "url": pa.array([URLS[n % len(URLS)] for n in range(COUNT)]),
        }
    )
    genders = {"ann": "female", "bob": "male"}
    add_query(flow, table, genders=genders, sink=sw.callback_sink(print), prefix="1")
    return prepare(flow, ["node-1", "node-2"], limits=limits_for(COSTS_NS))


def simulated(plan: Plan) -> JobReport:
    return Simulation(plan, egress=lambda *_: None, link=LinkModel(delay_ns=0)).run()


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Thread:
    counted = Thread()
    for step, entry in service.OWN_MACHINES.items():
        monkeypatch.setitem(MACHINES, step, entry)
    account = Account(counted, counted.spend)
    monkeypatch.setattr(service, "slots_account", lambda: account)
    return counted


def test_each_stage_takes_its_time_for_each_row_and_does_what_it_did(thread: Thread) -> None:
    before = simulated(a_plan())
    after = simulated(working(a_plan(), COSTS_NS))
    rows = {stage.name: (stage.rows_in, stage.rows_out) for stage in before.stages}
    assert {stage.name: (stage.rows_in, stage.rows_out) for stage in after.stages} == rows
    assert after.ledger == before.ledger
    set_ns = sum(came * COSTS_NS[name] for name, (came, _) in rows.items())
    assert sum(thread.spent) == pytest.approx(set_ns, abs=service.LEAST_NS)


def test_a_step_that_works_brings_its_machine_to_the_slot_that_unpickles_it() -> None:
    for stage in working(a_plan(), COSTS_NS).stages:
        packed = pickle.dumps(stage.chain if stage.kind in ("source", "sink") else stage.step)
        for step in service.OWN_MACHINES:
            assert step not in MACHINES
        arrived = pickle.loads(packed)  # noqa: S301 - our own
        assert set(service.OWN_MACHINES) <= set(MACHINES), arrived
        for step in service.OWN_MACHINES:
            del MACHINES[step]


def test_slices_take_some_ten_milliseconds() -> None:
    for cost_ms, rows in ((0.01, 25), (1.0, 10), (8.0, 5)):
        limits = limits_for({"one": cost_ms * MS})
        assert (limits.min_slice_rows, limits.max_slice_rows) == (rows, rows)


@pytest.mark.parametrize("seed", range(5))
def test_a_pattern_goes_faster_and_ends_in_a_low_period(seed: int) -> None:
    at_s = pattern_s(np.random.default_rng(seed), queries=3, scale=0.2)
    assert (np.diff(at_s) >= 0).all()
    assert 0.75 * 58 < at_s[-1] < 1.25 * 59 + TAIL_S, f"seed {seed}"
    assert (at_s > at_s[-1] - 0.9 * TAIL_S).sum() < 3 * TAIL_S * 3
    rates = np.histogram(at_s, np.arange(0.0, at_s[-1], 0.2))[0] / 0.2
    assert np.median(rates[rates > 160]) == pytest.approx(333, rel=0.1)


def test_a_process_had_the_share_of_a_core_that_its_threads_ran_of_what_they_wanted(
    tmp_path: Path,
) -> None:
    for pid, task, told in ((7, 7, "300 100 9\n"), (7, 8, "0 200 1\n"), (9, 9, "50 0 1\n")):
        folder = tmp_path / str(pid) / "task" / str(task)
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(told)
    pids = {"node-1": 7, "node-2": 9, "node-3": 11}
    assert core_shares(pids, proc=tmp_path) == {"node-1": 0.5, "node-2": 1.0}


def an_estimate(*latency_s: float) -> LatencyEstimate:
    series = np.array(latency_s)
    found = LatencyEstimate.__new__(LatencyEstimate)
    for name, value in {"width_s": 0.5, "mace_s": series, "held_up_s": series + 1}.items():
        object.__setattr__(found, name, value)
    return found


def a_run(begins_s: list[float], worst_s: list[float]) -> OnRay:
    report = JobReport.__new__(JobReport)
    return OnRay(np.array(begins_s), 1.0, np.array(worst_s), {}, report)


def test_predictions_count_where_there_was_output() -> None:
    # Subintervals of half a second; results in the bins from 0.3 and from 2.3 s on.
    estimate = an_estimate(1, 2, 3, 9, 4, 5, 6, 9)
    run = a_run([0.3, 2.3], [4.0, 8.0])
    one = judged(run, estimate, "exact loads")
    assert one.measured_s == 8
    assert one.predicted_s == {"Mace": 6.0, "held up": 7.0}
    assert by_second(run, estimate).tolist() == [4.0, 7.0]
    assert error_by_second(run, estimate) == pytest.approx(0.0625)
    early = judged(run, estimate, "exact loads", between_s=(0.0, 1.0))
    assert (early.measured_s, early.predicted_s["Mace"]) == (4, 3)


def test_what_the_end_of_the_input_lets_go_is_left_out() -> None:
    assert a_run([0.3, 1.3, 2.3], [1, 2, 9]).until(2.5).worst_s.tolist() == [1, 2]


def test_costs_are_those_that_were_set_and_selectivities_those_of_the_sample() -> None:
    curve = WindowCurve(size_s=10.0, slide_s=0.05, keys=1.0, row_s=9.0, result_s=0.0)
    one = QueryOperator(name="one", inputs=("a",), cost_s=(9.0,), selectivity=(0.5,))
    two = replace(one, name="two", inputs=("one", "a"), cost_s=(9.0, 9.0), selectivity=(1.0, 1.0))
    three = replace(one, name="three", inputs=("two",), curve=curve)
    found = with_costs(
        QueryGraph(("a",), (one, two, three)), {"one": 1e6, "two": 2e6, "three": 3e6}
    )
    assert [op.cost_s for op in found.operators] == [(0.001,), (0.002, 0.002), (0.003,)]
    assert [op.selectivity for op in found.operators] == [(0.5,), (1.0, 1.0), (0.5,)]
    assert found.operators[2].curve == replace(curve, row_s=0.003)
