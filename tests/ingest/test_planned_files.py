"""Files that appear after a flow was planned are none of its rows, wherever it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.spec import Input
from tests.ingest.test_files import input_of, rows_of, write
from tests.support.restoring import renewed
from tests.support.sources import drain, machine, take, times

KINDS = ("parquet", "jsonl", "csv")


def planned_source(path: Path | str, kind: str, **options: Any) -> Input:
    flow = sw.Dataflow("files")
    rows = flow.source("rows", input_of(kind, path, **options), event_time="t")
    rows.sink("out", sw.collect_sink())
    step = prepare(flow, ["a"]).stages[0].step
    assert isinstance(step, SourceStep)
    return step.source.input


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["", "*", "**"])
def test_a_restored_source_goes_on_though_a_smaller_name_appeared(
    kind: str, pattern: str, tmp_path: Path
) -> None:
    write(tmp_path / f"b2.{kind}", {"t": [10, 20]})
    write(tmp_path / f"b10.{kind}", {"t": [30, 40]})
    given = planned_source(tmp_path / pattern, kind)

    def made() -> SourceNode:
        source: SourceNode = machine(given)
        return source

    source = made()
    first = take(source, 1_000, max_rows=1)
    assert first is not None
    write(tmp_path / f"a.{kind}", {"t": [1, 2, 3]})
    write(tmp_path / f"b3.{kind}", {"t": [25]})
    moved = renewed(source, made)
    assert times([first, *drain(moved)]) == [10, 20, 30, 40]
    assert [row["t"] for row in rows_of(planned_source(tmp_path / pattern, kind))][:3] == [1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_says_its_own_files_and_their_state(kind: str, tmp_path: Path) -> None:
    write(tmp_path / f"b.{kind}", {"t": [10, 20]})
    given: Any = planned_source(tmp_path, kind)
    before = given.fingerprint()
    assert before == input_of(kind, tmp_path).fingerprint()
    write(tmp_path / f"a.{kind}", {"t": [1]})
    assert "(1 file)" in given.describe()
    assert given.fingerprint() == before
    assert input_of(kind, tmp_path).fingerprint() != before, "a new run reads more"


def test_a_planned_file_that_is_gone_is_named(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", {"t": [10]})
    given = planned_source(tmp_path, "csv")
    (tmp_path / "b.csv").unlink()
    write(tmp_path / "a.csv", {"t": [1]})
    with pytest.raises(IngestError, match=r"b\.csv .*cannot be read"):
        rows_of(given)


def test_a_custom_input_may_fix_itself_in_a_plan() -> None:
    class Growing:
        def __init__(self, count: int | None = None) -> None:
            self.count = count

        def describe(self) -> str:
            return "growing"

        def schema(self) -> pa.Schema:
            return pa.schema([("t", pa.int64())])

        def planned(self) -> Growing:
            return Growing(3)

        def open(self) -> Any:
            return sw.table({"t": [*range(self.count or 9)]}).open()

    flow = sw.Dataflow("custom")
    flow.source("rows", Growing(), event_time="t").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out").num_rows == 3
