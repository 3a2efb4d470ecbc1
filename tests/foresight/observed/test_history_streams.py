"""What a history says of streams: lags that gates wait for, pairs in a burst, feeds not read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.simulate import CostModel
from tests.foresight.observed.test_history import tuning, worst_s
from tests.support.flows import late_pair
from tests.support.keyed import keyed_pair
from tests.support.known_work import MS


@pytest.mark.parametrize("lag_ms", [400, 1_500])
def test_what_gates_wait_for_is_known_from_how_far_sources_were_behind(
    tmp_path: Path, lag_ms: int
) -> None:
    flow = late_pair("late", seconds=20, lag_ms=lag_ms, deadline="10s")
    with sw.Simulation(2) as nodes:
        waits = sw.Tuning(policy="ready-only", history=tmp_path)
        report = nodes.submit(flow, tuning=waits).wait()
        made = nodes.predict(flow, history=tmp_path)
    assert made.gates is not None
    assert made.worst_s == pytest.approx(worst_s(report), rel=0.05)
    (gate,) = made.gates.made.gates
    assert gate.waits_for == "slow"


def pairs(at: np.ndarray, keys: np.ndarray) -> sw.Dataflow:
    """Two streams, their pairs within a second, and how many there were of each key."""
    flow = sw.Dataflow("pairs", deadline="30s")
    sides = keyed_pair(flow, at, keys)
    joined = sides[0].join(sides[1], on="key", within="1s", name="joined")
    counts = joined.aggregate(window=sw.tumbling("2s"), by="key", n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    return flow


def test_a_join_in_a_burst_has_as_many_more_pairs_as_a_sample_of_all_rows_says(
    tmp_path: Path,
) -> None:
    """20 rows a second a side, and 80 for 5 s: sixteen times the pairs."""
    rng = np.random.default_rng(0)
    stretches = ((0, 10, 200), (10, 15, 400), (15, 25, 200))
    at = np.concatenate([np.sort(rng.uniform(a, b, n)) for a, b, n in stretches])
    flow = pairs(at, rng.integers(0, 10, (2, len(at))))
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages={"joined": 8 * MS, "counts": 2 * MS})
    host = sw.Simulation(3, cost=cost)
    plan = host.submit(flow, tuning=tuning(tmp_path)).plan
    host.submit(flow, tuning=tuning(tmp_path)).wait()
    made = host.predict(flow, history=tmp_path, placement=plan.slots)
    trace = np.histogram(at, bins=250, range=(0, 25))[0]
    costs = {"a": 1e-6, "b": 1e-6, "joined": 0.008001, "counts": 0.002001, "out": 1e-6}
    exact = host.predict(
        flow,
        {"a": trace, "b": trace},
        sample=len(at),
        costs=costs,
        horizon="25s",
        placement=plan.slots,
    )
    assert exact.worst_s > 5
    assert made.worst_s == pytest.approx(exact.worst_s, rel=0.04)


def test_a_live_source_is_not_read_and_a_history_will_do(tmp_path: Path) -> None:
    """What a sample took of it would be missing from the run; samples of the last job are kept."""

    def live(name: str, feed: sw.connectors.Input) -> sw.Dataflow:
        flow = sw.Dataflow(name, deadline="5s")
        rows = flow.source("feed", feed, event_time="ts", speed=1)
        rows.merge(name="gate").sink("out", sw.collect_sink())
        return flow

    n = np.arange(1_000)
    past = pa.table({"ts": pa.array(n * 10 * MS, pa.timestamp("ns")), "n": n})
    host = sw.Simulation(1)
    host.submit(live("feed", sw.table(past)), tuning=tuning(tmp_path)).wait()
    flow = live("feed", Unread(past.schema))
    assert host.predict(flow, history=tmp_path).rates["feed"] == pytest.approx(100, rel=0.02)
    with pytest.raises(SettingError, match="which is live"):
        host.predict(flow, 100)


@dataclass
class Unread:
    """A feed that nobody may open."""

    columns: pa.Schema

    def describe(self) -> str:
        return "a feed"

    def schema(self) -> pa.Schema:
        return self.columns

    def open(self) -> sw.connectors.SourceReader:
        raise AssertionError("it is live")
