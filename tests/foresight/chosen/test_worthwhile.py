"""A job is placed anew as a prediction has it, if the worst latency gains more than it costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.jobs import Job, Running
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.chosen.worthwhile import worthwhile_moves
from slackwater.runtime.foresight.predicted.predicting import on_machines
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.sampling import sample_flow
from tests.support.flows import ticking

MS = 1_000_000
RATE = 100
HERE = {"numbers": "node-1", "one": "node-2", "two": "node-2", "out": "node-2"}


class WorkClock:
    """Time that passes only as the user's functions work: so long for each row."""

    def __init__(self, row_ns: int) -> None:
        self.now_ns, self._row_ns = 0, row_ns

    def __call__(self) -> int:
        return self.now_ns

    def work(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.now_ns += self._row_ns * len(columns["n"])
        return {"n": columns["n"]}


def two_steps(clock: WorkClock) -> sw.Dataflow:
    """A source, and two gates with work behind each."""
    times = pa.array(np.arange(3_000) * (1_000 // RATE), pa.timestamp("ms"))
    rows = sw.table(pa.table({"ts": times, "n": range(3_000)}))
    flow = sw.Dataflow("two steps")
    stream = flow.source("numbers", rows, event_time="ts", speed=1.0)
    for name in ("one", "two"):
        gate = stream.merge(name=name, slack="0s")
        stream = gate.map_batches(clock.work, schema={"n": "int64"}, name=f"work {name}")
    stream.sink("out", sw.collect_sink())
    return flow


def predicted(row_ns: int) -> tuple[sw.Simulation, sw.Dataflow, Prediction]:
    """Return what is predicted where both steps have a node each."""
    clock = WorkClock(row_ns)
    flow = two_steps(clock)
    sample = sample_flow(flow, clock_ns=clock)
    host = sw.Simulation(nodes=3)
    apart = HERE | {"two": "node-3", "out": "node-3"}
    return host, flow, host.predict(flow, RATE, sample=sample, placement=apart)


def test_a_flow_that_falls_behind_is_placed_as_the_prediction_has_it() -> None:
    host, flow, made = predicted(6 * MS)  # two times 0.6 of a core in one slot, or in two
    assert worthwhile_moves(made, HERE) == {"two": "node-3", "out": "node-3"}
    job = host.submit(flow, placement=HERE)
    assert job.replace(made, at="5s") is None
    report = job.wait()
    assert [str(move) for move in report.replaced[0].moves] == [
        "two node-2 → node-3",
        "out node-2 → node-3",
    ]
    assert job.result("out")["n"].to_pylist() == list(range(3_000))


def test_what_gains_less_than_the_gap_costs_stays_and_the_answer_says_why() -> None:
    host, flow, made = predicted(1 * MS)
    job = host.submit(flow, placement=HERE)
    found = job.replace(made, at="5s")
    assert found is not None
    assert "it is not worth it: the worst latency ahead is" in (found.problem or "")
    assert "would stand still for 250 ms" in (found.problem or "")
    assert job.wait().replaced == []
    same = worthwhile_moves(made, dict(made.plan.slots))
    assert getattr(same, "problem", None) == "all that can move is there already"


def test_a_prediction_of_another_version_of_the_flow_is_refused() -> None:
    _, _, made = predicted(MS)
    flow, numbers = ticking("other", seconds=1)
    numbers.sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=2).submit(flow)
    with pytest.raises(SettingError, match="is of another version of flow 'two steps': they diff"):
        job.replace(replace(made))
    job.close()


def moves_from_here(made: Prediction, **more: Any) -> bool:
    return isinstance(worthwhile_moves(made, HERE, **more), dict)


def test_a_move_is_weighed_with_the_links_that_its_rows_would_cross() -> None:
    """The steps take 1.2 of a core together; but apart, rows go over a link for a tenth of them."""
    host, flow, _ = predicted(6 * MS)
    apart = HERE | {"two": "node-3", "out": "node-3"}
    clock = WorkClock(6 * MS)
    sample = sample_flow(two_steps(clock), clock_ns=clock)
    thin = sw.testing.LinkModel(
        delay_ns=0,
        between={("node-2", "node-3"): sw.testing.LinkModel(delay_ns=0, bytes_per_s=10 * 24)},
    )
    ask = partial(host.predict, flow, RATE, sample=sample, placement=apart)
    assert moves_from_here(ask())
    assert not moves_from_here(ask(link=thin))
    job = host.submit(flow, placement=HERE)
    found = job.replace(ask(link=thin))
    assert found is not None
    assert "it is not worth it" in (found.problem or "")
    job.close()


def test_a_move_is_weighed_on_the_cores_that_there_are_less_what_others_take() -> None:
    """Another slot is no more of a machine that has one core; with a second one it is."""
    _, _, made = predicted(6 * MS)
    slots = frozenset({"node-1", "node-2", "node-3"})

    def on(cores: float, *, taken: float = 0.0) -> list[SharedCores]:
        return [SharedCores(name="here", cores=cores, slots=slots, taken=taken, others=2)]

    assert moves_from_here(made, machines=on(2))
    assert not moves_from_here(made, machines=on(1))
    assert not moves_from_here(made, machines=on(2, taken=1.0))
    assert not moves_from_here(on_machines(made, on(1)))  # as it was predicted with


class Held:
    """What runs a job, as far as a job that stays where it is asks."""

    places: Mapping[str, SlotPlace] = {}

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        raise AssertionError(f"moved to {placement}")


def test_a_job_is_weighed_beside_what_others_take_by_now() -> None:
    _, _, made = predicted(6 * MS)
    running = cast("Running", Held())
    job = Job("job-1", running, flow="two steps", placement=HERE, collects=["out"])
    slots = frozenset({"node-1", "node-2", "node-3"})
    job.beside = lambda: [SharedCores(name="here", cores=1, slots=slots)]
    assert "it is not worth it" in (job.replace(made).problem or "")
    job.beside = None
    with pytest.raises(AssertionError, match=r"moved to \{'two': 'node-3', 'out': 'node-3'\}"):
        job.replace(made)


def test_a_move_is_weighed_with_what_rows_wait_in_gates() -> None:
    """Promises come every ten seconds: so long a row waits, wherever the steps are."""
    clock = WorkClock(MS)
    count = 3_000
    at_ms = np.arange(count) * (1_000 // RATE)
    told = pa.array(at_ms // 10_000 * 10_000, pa.timestamp("ms"))
    rows = pa.table({"ts": pa.array(at_ms, pa.timestamp("ms")), "told": told, "n": range(count)})
    flow = sw.Dataflow("bursts")
    promise = sw.col("told")
    stream = flow.source("numbers", sw.table(rows), event_time="ts", promise=promise, speed=1.0)
    for name, slack in (("one", None), ("two", "0s")):
        gate = stream.merge(name=name, slack=slack)
        stream = gate.map_batches(clock.work, schema={"n": "int64"}, name=f"work {name}")
    stream.sink("out", sw.collect_sink())
    sample = sample_flow(flow, rows=count, clock_ns=clock)
    apart = HERE | {"two": "node-3", "out": "node-3"}
    made = sw.Simulation(nodes=3).predict(flow, RATE, sample=sample, placement=apart)
    assert made.worst_s == pytest.approx(10.0, abs=0.2)
    found = worthwhile_moves(made, HERE)
    assert isinstance(found, Replaced)
    seconds = r"(10\.0|9\.\d+)"  # which was 0.0 where gates did not count
    said = (
        rf"it is not worth it: the worst latency ahead is {seconds} s as the flow runs, {seconds} s"
    )
    assert re.match(said, found.problem or "")
