"""INT96 timestamps of parquet keep their time, or are refused by row."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, SlackwaterError
from slackwater.runtime.model.diverted import OnBad

FAR = [datetime.datetime(9999, 12, 31), datetime.datetime(2600, 1, 1), None]  # noqa: DTZ001
FIRST = datetime.datetime(1, 1, 1)  # noqa: DTZ001
NEAR = 1577836800123456789


def written(folder: Path, column: pa.Array, name: str = "a") -> Path:
    path = folder / f"{name}.parquet"
    table = pa.table({"t": range(len(column)), "x": column})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    return path


def read(source: sw.connectors.Input, *, time: str = "t", on_bad: OnBad = "error") -> pa.Table:
    flow = sw.Dataflow("int96")
    unit: Any = {"time_unit": "s"} if time == "t" else {}
    flow.source("s", source, event_time=time, on_bad=on_bad, **unit).sink("o", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job.result("o")


def test_far_times_are_read_as_they_are_written(tmp_path: Path) -> None:
    times = [*FAR, FIRST]
    path = written(tmp_path, pa.array(times, pa.timestamp("us")))
    assert read(sw.parquet(path))["x"].to_pylist() == times
    in_ms = read(sw.parquet(path, types={"x": "timestamp[ms]"}))["x"]
    assert in_ms.to_pylist() == times
    assert in_ms.type == pa.timestamp("ms")


def test_a_dictionary_beside_them_does_not_shift_rows(tmp_path: Path) -> None:
    words = pa.array([f"word {n % 5}" for n in range(20)]).dictionary_encode()
    times = pa.array([NEAR // 1000 + n for n in range(20)], pa.timestamp("us"))
    path = tmp_path / "a.parquet"
    table = pa.table({"t": range(20), "word": words, "x": times})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=10)
    for rows in (1, 3, 8, 100):
        found = read(sw.parquet(path, batch_rows=rows))
        assert found["x"].to_pylist() == times.to_pylist()
        assert found["word"].to_pylist() == words.to_pylist()


def test_far_times_within_lists_and_structs_are_right(tmp_path: Path) -> None:
    values = [[{"at": one}] for one in FAR]
    kind = pa.list_(pa.struct([("at", pa.timestamp("us"))]))
    path = written(tmp_path, pa.array(values, kind))
    assert read(sw.parquet(path))["x"].to_pylist() == values


def test_nanoseconds_are_kept_or_refused_by_row(tmp_path: Path) -> None:
    path = written(tmp_path, pa.array([0, NEAR, None], pa.timestamp("ns")))
    with pytest.raises(
        IngestError, match=r"row 1 from 0.*\.123456789.*nanoseconds.*say 'timestamp\[ns\]'"
    ):
        read(sw.parquet(path))
    exact = read(sw.parquet(path, types={"x": "timestamp[ns]"}))["x"]
    assert exact.cast(pa.int64()).to_pylist() == [0, NEAR, None]


def test_a_far_time_said_to_be_in_nanoseconds_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, pa.array(FAR, pa.timestamp("us")))
    with pytest.raises(IngestError, match=r"row 0 from 0: .*9999-12-31"):
        read(sw.parquet(path, types={"x": "timestamp[ns]"}))


@pytest.mark.parametrize("schema", ["error", "union"])
def test_far_times_of_folders_and_other_units_meet(tmp_path: Path, schema: Any) -> None:
    for day, unit in (("1", "us"), ("2", "ms")):
        (tmp_path / f"day={day}").mkdir()
        written(tmp_path / f"day={day}", pa.array(FAR, pa.timestamp(unit)))
    plain = tmp_path / "day=2" / "a.parquet"
    pq.write_table(pq.read_table(plain, coerce_int96_timestamp_unit="ms"), plain)
    table = read(sw.parquet(tmp_path, schema=schema, hive=True), on_bad="skip", time="x")
    assert not len(table)
    source = sw.parquet(tmp_path, schema=schema, columns=["x", "day", "t"])
    flow = sw.Dataflow("folders")
    rows = flow.source(
        "s", source, event_time="t", time_unit="s", out_of_order="sort", disorder="3s"
    )
    rows.sink("o", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        found = job.result("o")
    assert sorted(map(str, found["x"].to_pylist())) == sorted(map(str, FAR * 2))


def test_an_event_time_is_judged_by_its_right_value(tmp_path: Path) -> None:
    near = datetime.datetime(2020, 1, 1)  # noqa: DTZ001
    path = written(tmp_path, pa.array([near, *FAR[:2]], pa.timestamp("us")))
    with pytest.raises(SlackwaterError, match="9999"):
        read(sw.parquet(path), time="x")
    path = written(tmp_path, pa.array([near, *FAR], pa.timestamp("us")))
    assert read(sw.parquet(path), time="x", on_bad="skip")["x"].to_pylist() == [near]
