"""A job is placed anew as a prediction has it, if the worst latency gains more than it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from runtime.errors import SettingError
from slackwater.prediction import Prediction
from slackwater.sampling import sample_flow
from slackwater.worthwhile import worthwhile_moves
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
