"""Jobs that recover in virtual time, into real files: the same as without failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.actors.sinks.run_fingerprints import input_prints, sink_runs
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.recovery.checkpoint import saved_results
from slackwater.runtime.schedule import SlotResults
from slackwater.runtime.simulate import Checkpoints, CostModel, LinkModel, Simulation, SlotRaises
from slackwater.runtime.simulate import marks as simulated_marks

S, MS = 1_000_000_000, 1_000_000
ROWS = 120


def flow_of(folder: Path, *, slack: str | None) -> sw.Dataflow:
    flow = sw.Dataflow("pairs", slack=slack)
    rng = np.random.default_rng(7)
    streams = []
    for name in ("left", "right"):
        times = np.sort(rng.integers(0, 3_000, ROWS)) * MS
        late = times + rng.integers(0, 400, ROWS) * MS
        order = np.argsort(late, kind="stable")
        data = {"ts": times, "came": late, "k": np.arange(ROWS) % 5, name: np.arange(ROWS)}
        streams.append(
            flow.source(
                name,
                sw.table(pa.table(data).take(order)),
                event_time="ts",
                arrival="came",
                speed=1.0,
                out_of_order="sort",
                disorder="400ms",
            )
        )
    pairs = streams[0].join(streams[1], on="k", within="200ms", name="pairs")
    found = pairs.select("left", "right")
    found.sink("parquet", sw.parquet_sink(folder / "parquet", rows=40))
    found.sink("lines", sw.jsonl_sink(folder / "lines.jsonl"))
    found.sink("live", sw.csv_sink(folder / "live", every="500ms"))
    found.sink("kept", sw.collect_sink())
    return flow


class Files:
    """Sinks of a job that go on, in each attempt, at the positions of its checkpoint."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.sinks = plan, SlotSinks()
        self.attempts = 0
        self.positions: dict[int, dict[str, bytes]] = {}
        self.run: Simulation | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sinks, name)

    def begin(self) -> Mapping[str, int]:
        run = self.run
        assert run is not None
        self.sinks = SlotSinks(clock_ns=lambda: run.now_ns)
        self.sinks.open(
            self.plan.stages,
            folder="",
            runs=sink_runs(self.plan, "pairs-1", [input_prints(self.plan.stages)]),
            keeps_positions=True,
            at=self.positions.get(run._from or 0, {}) if self.attempts else None,
        )
        self.attempts += 1
        return self.sinks.begin()

    def saved(self, results: SlotResults, number: int) -> dict[str, Any]:
        own = {report.name for report in results.reports()}
        known = {sink: at for sink, at in self.sinks.positions().items() if sink in own}
        self.positions.setdefault(number, {}).update(known)
        return saved_results(results, number)


def ran(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    faults: list[SlotRaises],
    slack: str | None,
    seed: int,
) -> tuple[JobReport, Files]:
    flow = flow_of(folder, slack=slack)
    plan = prepare(flow, ["a", "b", "c"])
    files, holds = Files(plan), replace(plan, has_checkpoints=True).held_sinks
    files.run = Simulation(
        plan,
        egress=files,  # type: ignore[arg-type]
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
        faults=faults,
        checkpoints=Checkpoints(every_ns=250 * MS, holds=holds, is_repeatable=not holds),
    )
    monkeypatch.setattr(simulated_marks, "saved_results", files.saved)
    return files.run.run(), files


def pairs_in(folder: Path, files: Files) -> list[list[tuple[int, int]]]:
    """Return the pairs that each sink has."""
    tables = [
        pq.read_table(folder / "parquet"),
        pa.Table.from_pylist(
            [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]
        ),
        files.sinks.collected("kept").table(),
    ]
    live = [
        tuple(map(int, line.split(",")))
        for part in sorted((folder / "live").glob("*.csv"))
        for line in part.read_text().splitlines()[1:]
    ]
    found = [list(zip(*table.to_pydict().values(), strict=True)) for table in tables]
    return [*found, live]


def bytes_in(folder: Path) -> dict[str, bytes]:
    kept = [*sorted((folder / "parquet").glob("*.parquet")), folder / "lines.jsonl"]
    return {path.name: path.read_bytes() for path in kept}


@pytest.mark.parametrize("seed", range(6))
def test_a_flow_that_is_ready_only_leaves_the_same_bytes(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = ran(tmp_path / "whole", monkeypatch, faults=[], slack=None, seed=seed)
    faults = [
        SlotRaises(at_ns=700 * MS + seed * 90 * MS, slot="a"),
        SlotRaises(at_ns=2 * S + seed * 130 * MS, slot="bc"[seed % 2]),
    ]
    report, files = ran(tmp_path / "out", monkeypatch, faults=faults, slack=None, seed=seed)
    assert (report.state, imbalances(report), files.attempts) == ("done", [], 3)
    assert bytes_in(tmp_path / "out") == bytes_in(tmp_path / "whole")
    expected = pairs_in(tmp_path / "whole", whole)
    assert pairs_in(tmp_path / "out", files) == expected
    assert len(expected[0]) > 100


@pytest.mark.parametrize("seed", range(6))
def test_a_flow_with_slack_has_each_row_once_and_all_sinks_have_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [SlotRaises(at_ns=900 * MS + seed * 170 * MS, slot="abc"[seed % 3])]
    report, files = ran(tmp_path, monkeypatch, faults=faults, slack="50ms", seed=seed)
    assert (report.state, imbalances(report), files.attempts) == ("done", [], 2)
    for found in pairs_in(tmp_path, files):
        assert len(found) == len(set(found)) > 100
    rows = {sink.name: sink.rows for sink in report.sinks}
    assert [len(found) for found in pairs_in(tmp_path, files)] == [
        rows[name] for name in ("parquet", "lines", "kept", "live")
    ]
