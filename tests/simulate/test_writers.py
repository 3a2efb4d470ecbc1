"""Sinks of files without an order: each replica writes its own parts, and one manifest has all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import slackwater as sw
from slackwater.actors.sinks.shared_files import SharedFileSink
from slackwater.runtime.errors import FlowError, SinkError, SlackwaterError
from slackwater.runtime.simulate import SlotRaises
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.output import OutputContext, OutputWriter
from tests.support.writers import REPLICAS, expected, flow_of, manifest_of, rows_of

MS = 1_000_000


def run(flow: sw.Dataflow, **options: Any) -> tuple[Any, sw.JobReport]:
    with sw.Simulation(nodes=2, cores=3) as host:
        job = host.submit(flow, **options)
        return job.plan, job.wait()


@pytest.mark.parametrize("options", [{}, {"rows": 40}, {"every": "5ms"}], ids=str)
def test_each_replica_writes_parts_and_one_manifest_has_them(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    folder = tmp_path / "out"
    plan, report = run(flow_of(sw.parquet_sink(folder, **options)))
    assert report.state == "done"
    writers = [stage for stage in plan.stages if stage.subject.step == "out"]
    assert [stage.name for stage in writers] == [f"out.{n + 1}" for n in range(REPLICAS)]
    for stage in writers:
        [channel] = stage.inputs
        assert plan.slots[channel.source] == plan.slots[stage.name], "no row leaves its slot"
    found = pq.read_table(folder)
    assert rows_of(found) == expected()
    manifest = manifest_of(folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted([".slackwater.json", *(part.name for part in manifest.parts)])
    assert len(manifest.parts) >= REPLICAS
    assert (manifest.run.state, manifest.is_whole) == ("done", True)
    assert manifest.rows == len(found) == sum(sink.rows for sink in report.sinks)
    assert sum(sink.published or 0 for sink in report.sinks) == len(found)
    assert sum(sink.parts for sink in report.sinks) == len(manifest.parts)
    assert report.ledger.is_balanced


def test_csv_files_are_written_alike(tmp_path: Path) -> None:
    run(flow_of(sw.csv_sink(tmp_path / "out")))
    tables = [csv.read_csv(path) for path in sorted((tmp_path / "out").glob("*.csv"))]
    assert len(tables) == REPLICAS
    assert sum(map(len, tables)) == sum(expected().values())


def test_without_results_one_empty_part_is_left(tmp_path: Path) -> None:
    _, report = run(flow_of(sw.parquet_sink(tmp_path / "out"), rows=0))
    assert report.state == "done"
    assert len(pq.read_table(tmp_path / "out")) == 0
    assert [part.rows for part in manifest_of(tmp_path / "out").parts] == [0]


@pytest.mark.parametrize(
    "name",
    ["out.parquet", "out"],
    ids=["one file", "a folder that is replaced as a whole"],
)
def test_an_output_that_appears_as_a_whole_has_one_writer(tmp_path: Path, name: str) -> None:
    output = sw.parquet_sink(tmp_path / name, overwrite=name == "out")
    plan, report = run(flow_of(output))
    assert [stage.name for stage in plan.stages if stage.kind == "sink"] == ["out"]
    assert rows_of(pq.read_table(tmp_path / name)) == expected()
    assert report.state == "done"


def test_an_order_or_another_output_has_one_writer(tmp_path: Path) -> None:
    for flow in (
        flow_of(sw.parquet_sink(tmp_path / "out"), ordered=True),
        flow_of(sw.collect_sink()),
        flow_of(sw.callback_sink(print)),
        flow_of(sw.parquet_sink(tmp_path / "out"), replicas=1),
    ):
        plan = sw.Simulation(nodes=2, cores=3).plan(flow)
        assert [stage.name for stage in plan.stages if stage.kind == "sink"] == ["out"]


def test_overwriting_replaces_the_old_parts_once(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(flow_of(sw.parquet_sink(folder, rows=25)))
    before = manifest_of(folder)
    _, report = run(flow_of(sw.parquet_sink(folder, rows=50, overwrite=True)))
    assert report.state == "done"
    assert rows_of(pq.read_table(folder)) == expected()
    after = manifest_of(folder)
    assert len(after.parts) < len(before.parts)
    assert len([*folder.iterdir()]) == len(after.parts) + 1
    with pytest.raises(SinkError, match="overwrite=True"):
        run(flow_of(sw.parquet_sink(folder)))


def test_resume_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="omit ordered=False"):
        run(flow_of(sw.parquet_sink(tmp_path / "out", resume=True)))


@pytest.mark.parametrize(("at_ms", "parts"), [(1, 0), (300, 10)])
def test_a_failure_keeps_whole_parts_and_the_next_run_replaces_them(
    tmp_path: Path, at_ms: int, parts: int
) -> None:
    folder = tmp_path / "out"
    flow = flow_of(sw.parquet_sink(folder, rows=25), speed=1.0)
    slot = sw.Simulation(nodes=2, cores=3).plan(flow).slots["out.2"]
    with sw.Simulation(nodes=2, cores=3) as host:
        job = host.submit(flow, faults=[SlotRaises(at_ns=at_ms * MS, slot=slot)])
        with pytest.raises(SlackwaterError, match="its function raised an error"):
            job.wait()
        report = job.report()
    manifest = manifest_of(folder) if parts else None
    names = {part.name for part in manifest.parts} if manifest else set[str]()
    assert len(names) == parts
    assert {path.name for path in folder.iterdir()} - {".slackwater.json"} == names
    if manifest is not None:
        assert manifest.run.state == "failed"
        assert not rows_of(pq.read_table(folder)) - expected()
        assert sum(sink.published or 0 for sink in report.sinks) == manifest.rows
    run(flow_of(sw.parquet_sink(folder, rows=50, overwrite=True)))
    assert rows_of(pq.read_table(folder)) == expected()


def test_writers_that_see_other_folders_are_refused(tmp_path: Path) -> None:
    output = sw.parquet_sink(tmp_path / "out")
    made = SinkRun(job="j", flow="f")
    schema = pa.schema([("n", pa.int64())])

    def opened(number: int, path: Path) -> SharedFileSink:
        context = OutputContext(
            sink="out",
            folder="",
            run=made,
            has_ended=lambda _: False,
            last_event_time_ns=lambda: None,
            show=print,
        )
        return SharedFileSink(output, str(path), schema, context, OutputWriter(number, 2))

    apart = [opened(0, tmp_path / "a"), opened(1, tmp_path / "b")]
    for sink in apart:
        with pytest.raises(SinkError, match="1 of its 2 writers see the folder"):
            sink.last_ordinal()
        sink.abort("the job did not start")
    with pytest.raises(SinkError, match="belongs to"):
        opened(1, tmp_path / "c"), opened(1, tmp_path / "c")
    together = [opened(0, tmp_path / "d"), opened(1, tmp_path / "d")]
    assert [sink.last_ordinal() for sink in together] == [-1, -1]
    for sink in together:
        sink.abort("the job did not start")
    assert [*(tmp_path / "d").iterdir()] == []


@pytest.mark.parametrize("share", ["keys", "all"])
def test_in_a_flow_with_a_deadline_replicas_write_apart_too(tmp_path: Path, share: Any) -> None:
    rows = {"ts": [*range(300)], "k": [at % 16 for at in range(300)]}
    flow = sw.Dataflow("deadline", deadline="100ms")
    read: dict[str, Any] = {"event_time": "ts", "time_unit": "ms", "speed": 1.0}
    left, right = (flow.source(name, sw.table(pa.table(rows)), **read) for name in "ab")
    pairs = left.join(right, on="k", within="20ms", name="pairs", replicas=2, share=share)
    pairs.sink("out", sw.parquet_sink(tmp_path / "out"), ordered=False)
    plan, report = run(flow)
    assert report.tuning is not None
    assert report.ledger.is_balanced
    assert {plan.slots[f"out.{n}"] for n in (1, 2)} == {plan.slots[f"pairs.{n}"] for n in (1, 2)}
    found = pq.read_table(tmp_path / "out")
    near = [1 for at in range(300) for to in (at - 16, at, at + 16) if 0 <= to < 300]
    assert len(found) == sum(sink.rows for sink in report.sinks) == len(near)


def test_explain_names_the_writers(tmp_path: Path) -> None:
    text = str(flow_of(sw.parquet_sink(tmp_path / "out")).explain())
    assert "as rows come from replicas (ordered=False); each replica writes its own parts" in text


def test_explain_says_why_a_step_between_leaves_one_writer(tmp_path: Path) -> None:
    flow = sw.Dataflow("between")
    rows = flow.source("rows", sw.table({"ts": [1, 2], "k": [1, 2]}), event_time="ts")
    counts = rows.aggregate(by="k", window=sw.tumbling("1s"), n=sw.count(), replicas=2, name="c")
    few = counts.select("k", name="few")
    few.sink("out", sw.parquet_sink(tmp_path / "out"), ordered=False)
    apart = "each replica writes its own parts"
    assert apart in flow.explain()
    assert len(writers_of(flow)) == 2
    counts.sink("all", sw.collect_sink())
    assert "one writer, as few is a stage apart: c feeds others, too" in flow.explain()
    assert apart not in flow.explain()
    assert len(writers_of(flow)) == 1


def writers_of(flow: sw.Dataflow) -> list[str]:
    plan = sw.Simulation(nodes=2).plan(flow)
    return [stage.name for stage in plan.stages if stage.subject.step == "out"]
