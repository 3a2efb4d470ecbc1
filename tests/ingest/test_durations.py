"""Durations in files are those that were written, whatever their unit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, SchemaError
from tests.support.readers import rows_of

UNITS = ["s", "ms", "us", "ns"]


def through(form: str, folder: Path, table: pa.Table, types: dict[str, str]) -> pa.Table:
    flow = sw.Dataflow("written")
    source = flow.source("s", sw.table(table), event_time="t", time_unit="s")
    source.sink("out", getattr(sw, f"{form}_sink")(folder / "out"))
    with sw.Simulation() as nodes:
        nodes.submit(flow).wait()
    return read(getattr(sw, form)(folder / "out", types=types))


def read(source: sw.connectors.Input) -> pa.Table:
    flow = sw.Dataflow("read")
    rows = flow.source("s", source, event_time="t", time_unit="s")
    rows.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job.result("out")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_durations_are_read_back_as_they_were_written(form: str, unit: str, tmp_path: Path) -> None:
    values = [5, -7, 0, None, 3_000_000]
    if form == "csv":  # JSON has whole nanoseconds
        values += [2**63 - 1, -(2**63)]
    lengths = pa.array(values, pa.int64()).view(pa.duration(unit))
    table = pa.table({"t": range(len(values)), "d": lengths})
    found = through(form, tmp_path, table, {"d": f"duration[{unit}]"})
    assert found["d"].combine_chunks().equals(lengths)


def test_a_duration_that_json_has_not_is_refused_with_words(tmp_path: Path) -> None:
    far = pa.array([2**40], pa.int64()).view(pa.duration("s"))
    with pytest.raises(SchemaError, match=r"longer than 292 years.*write csv or parquet"):
        through("jsonl", tmp_path, pa.table({"t": [1], "d": far}), {"d": "duration[s]"})


@pytest.mark.parametrize("to", UNITS)
@pytest.mark.parametrize("unit", UNITS)
def test_a_written_duration_is_the_same_in_each_unit(unit: str, to: str, tmp_path: Path) -> None:
    day = pa.array([86_400, -1], pa.int64()).view(pa.duration("s"))
    table = pa.table({"t": [1, 2], "d": day.cast(pa.duration(unit))})
    found = through("csv", tmp_path, table, {"d": f"duration[{to}]"})
    assert found["d"].combine_chunks().equals(day.cast(pa.duration(to)))


def test_a_plain_number_is_of_the_unit_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("d\n5\n +7 \n250ms\nNA\n")
    rows = rows_of(sw.csv(path, types={"d": "duration[ms]"}))
    whole = [one["d"] and one["d"].total_seconds() * 1_000 for one in rows]
    assert whole == [5, 7, 250, None]


@pytest.mark.parametrize("text", ["5.5", "5 h", "1500ms", "s", "9223372036854775807s0"])
def test_a_text_that_is_no_such_duration_is_refused_by_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"t,d\n1,5\n2,{text}\n3,6\n")
    source = sw.csv(path, types={"d": "duration[s]"})
    with pytest.raises(IngestError, match=r"line 3.*is no duration\[s\]"):
        rows_of(source)
    skipped = sw.csv(path, types={"d": "duration[s]"}, on_bad="skip")
    assert read(skipped)["t"].to_pylist() == [1, 3]
