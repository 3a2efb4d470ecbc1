"""Partitions of an input are read in up to as many stages as slots; results stay the same."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.ingest import memory
from slackwater.runtime.errors import IngestError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.sources.input_part import InputPart
from slackwater.runtime.sources.spec import Partition

ROWS = 300


class Parts:
    """Rows of 9 keys in partitions, each in order."""

    is_history = True
    replay = "exact"

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.fails = False

    def describe(self) -> str:
        return "rows in partitions"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])

    def partitions(self) -> list[Partition]:
        return [Partition(name) for name in self.names]

    def open(self, name: str, at: bytes | None) -> Any:
        if self.fails:
            raise ValueError(f"no {name} here")
        rng = np.random.default_rng(len(name) + ord(name[-1]))
        columns = {
            "ts": np.sort(rng.integers(0, 1_000, ROWS)),
            "k": rng.integers(0, 9, ROWS),
            "v": rng.integers(0, 100, ROWS),
        }
        return memory.table(pa.table(columns), batch_rows=50).open("", at)


def flow_of(count: int, *, replicas: int | None = None, **options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("parts")
    rows = flow.source(
        "rows", Parts([f"p{n}" for n in range(count)]), event_time="ts", time_unit="ms", **options
    )
    kept = rows.filter(sw.col("v") > 10)
    counts = kept.aggregate(
        by="k", window=sw.tumbling("100ms"), n=sw.count(), mean=sw.mean("v"), replicas=replicas
    )
    counts.sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("replicas", [None, 2])
def test_results_are_the_same_however_many_stages_read_the_partitions(
    count: int, replicas: int | None
) -> None:
    found = []
    for nodes in (1, 2, 4):
        job = sw.Simulation(nodes=nodes, seed=nodes).submit(flow_of(count, replicas=replicas))
        report = job.wait()
        assert imbalances(report) == []
        assert report.ledger.entered == ROWS * count
        stages = [stage for stage in report.stages if stage.kind == "source"]
        assert len(stages) == min(nodes, count)
        assert all(stage.rows_in for stage in stages)
        found.append(job.result("out"))
    assert all(table.equals(found[0]) for table in found)


def test_the_stages_of_a_source_have_a_slot_each_and_the_name_of_the_step_places_all() -> None:
    plan = sw.Simulation(nodes=3).plan(flow_of(5))
    assert [plan.slots[f"rows.{n}"] for n in (1, 2, 3)] == ["node-1", "node-2", "node-3"]
    plan = sw.Simulation(nodes=3).plan(flow_of(5), placement={"rows": "node-2"})
    assert {plan.slots[f"rows.{n}"] for n in (1, 2, 3)} == {"node-2"}
    plan = sw.Simulation(nodes=3).plan(flow_of(5), placement={"*": "node-2"})
    assert "rows" in plan.slots, "one slot, one stage"


def test_known_partitions_take_turns_and_one_that_appears_goes_to_one_stage() -> None:
    whole = Parts(["a", "b", "c"])
    parts = [InputPart(whole, index=n, of=2, known=("a", "b", "c")) for n in range(2)]
    assert [[p.name for p in part.partitions()] for part in parts] == [["a", "c"], ["b"]]
    again = pickle.loads(pickle.dumps(parts[0]))  # noqa: S301 - made here
    assert [p.name for p in again.partitions()] == ["a", "c"]
    whole.names += [f"new {n}" for n in range(20)]
    seen = [{p.name for p in part.partitions()} for part in parts]
    assert seen[0] | seen[1] == set(whole.names)
    assert not seen[0] & seen[1]
    assert min(map(len, seen)) > 3, "by the hash of the name"


def test_what_a_partition_raises_names_the_users_input_and_the_partition() -> None:
    parts = Parts(["a", "b"])
    parts.fails = True
    flow = sw.Dataflow("fails")
    rows = flow.source("rows", parts, event_time="ts", time_unit="ms")
    rows.sink("out", sw.collect_sink())
    said = r"source 'rows\.\d', partition '(a|b)' .*: Parts\.open raised ValueError: no (a|b) here"
    with pytest.raises(IngestError, match=said):
        sw.Simulation(nodes=2).submit(flow).wait()


@pytest.mark.parametrize("replicas", [None, 2])
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_each_stage_of_a_source_diverts_rows_to_the_stream_of_the_step(
    tmp_path: Path, nodes: int, replicas: int | None
) -> None:
    (tmp_path / "a.csv").write_text("t,v\n1,1\n,9\n2,2\n")
    (tmp_path / "b.csv").write_text("t,v\n3,3\n4,4,4\n5,5\n")
    flow = sw.Dataflow("diverted")
    files = sw.csv(tmp_path, on_bad="divert", partitions="files")
    rows = flow.source("rows", files, event_time="t", time_unit="s", on_bad="divert")
    rows.dedupe("v", within="1s", replicas=replicas).sink("out", sw.collect_sink())
    rows.diverted().sink("bad", sw.collect_sink())
    job = sw.Simulation(nodes=nodes).submit(flow)
    ledger = job.wait().ledger
    assert (ledger.entered, job.result("out").num_rows) == (6, 4)
    bad = job.result("bad").to_pylist()
    assert {row["step"] for row in bad} == {"rows"}
    texts = sorted(row["row"] for row in bad)
    assert len(texts) == 2, texts
    assert any("4,4,4" in text for text in texts)


@pytest.mark.parametrize("nodes", [1, 3])
def test_row_groups_of_one_file_keep_its_order_of_rows_of_one_time(
    tmp_path: Path, nodes: int
) -> None:
    path = tmp_path / "rows.parquet"
    rows = {"t": [n // 10 for n in range(80)], "id": range(80), "k": [0] * 80}
    pq.write_table(pa.table(rows), path, row_group_size=5)
    flow = sw.Dataflow("ties")
    groups = sw.parquet(path, partitions="row groups")
    merged = flow.merge(flow.source("rows", groups, event_time="t", time_unit="s"))
    merged.sink("all", sw.collect_sink())
    merged.dedupe("k", within="500ms").sink("first", sw.collect_sink())
    job = sw.Simulation(nodes=nodes).submit(flow)
    job.wait()
    assert job.result("all")["id"].to_pylist() == list(range(80))
    assert job.result("first")["id"].to_pylist() == list(range(0, 80, 10))
