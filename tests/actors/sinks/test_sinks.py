"""Sinks by themselves: what they write, what they refuse, what a failure leaves."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.actors.sinks import appended_file, parts
from slackwater.actors.sinks.outputs import (
    callback_sink,
    collect_sink,
    csv_sink,
    jsonl_sink,
    parquet_sink,
)
from slackwater.ingest.files import csv, jsonl, parquet
from slackwater.runtime.errors import (
    OperatorError,
    SettingError,
    SinkError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.sinks.output import Output
from tests.support.sinks import Driven

SCHEMA = pa.schema([("ts", pa.timestamp("ns", tz="UTC")), ("n", pa.int64()), ("x", pa.float64())])


def rows(first: int = 0, count: int = 3) -> pa.RecordBatch:
    n = np.arange(first, first + count)
    return pa.record_batch([pa.array(n, SCHEMA.field("ts").type), n, n / 2], schema=SCHEMA)


def opened(output: Output) -> Driven:
    return Driven(output, SCHEMA)


def shown(folder: Path) -> list[Path]:
    """What a reader of the folder sees."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("name", ["out", "one.parquet"])
def test_parquet_keeps_rows_order_and_types(tmp_path: Path, name: str) -> None:
    sink = opened(parquet_sink(tmp_path / name))
    sink.write(rows(0))
    sink.write(rows(3))
    sink.close()
    sink.close()
    table = pq.read_table(tmp_path / name)
    assert table.schema.equals(SCHEMA)
    assert table["n"].to_pylist() == list(range(6))


def test_parts_and_row_groups_end_by_rows_alone_so_that_two_runs_write_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "GROUP_ROWS", 4)
    for name, batch in (("threes", 3), ("sevens", 7), ("at once", 30)):
        sink = opened(parquet_sink(tmp_path / name, rows=10))
        for first in range(0, 30, batch):
            sink.write(rows(first, min(batch, 30 - first)))
            for part in shown(tmp_path / name):
                pq.read_table(part)  # whole at every moment
        sink.close()
    written = shown(tmp_path / "threes")
    assert [part.name for part in written] == [f"part-{n:08d}.parquet" for n in (1, 2, 3)]
    assert pq.read_table(tmp_path / "threes")["n"].to_pylist() == list(range(30))
    meta = pq.read_metadata(written[0])
    assert [meta.row_group(at).num_rows for at in range(meta.num_row_groups)] == [4, 4, 2]
    for part in written:
        assert part.read_bytes() == (tmp_path / "sevens" / part.name).read_bytes()
        assert part.read_bytes() == (tmp_path / "at once" / part.name).read_bytes()


def test_categories_are_the_same_bytes_however_their_batches_were_encoded(tmp_path: Path) -> None:
    words = pa.array([["a", None, "", "b"][n % 4] for n in range(30)]).dictionary_encode()
    schema = pa.schema([("x", words.type)])
    for name, batch in (("threes", 3), ("sevens", 7), ("at once", 30)):
        sink = Driven(parquet_sink(tmp_path / name, rows=10), schema)
        for first in range(0, 30, batch):
            own = words.slice(first, batch).cast(pa.string()).dictionary_encode()
            sink.write(pa.record_batch([own], schema=schema))
        sink.close()
    assert pq.read_table(tmp_path / "threes")["x"].to_pylist() == words.to_pylist()
    for part in shown(tmp_path / "threes"):
        for other in ("sevens", "at once"):
            assert part.read_bytes() == (tmp_path / other / part.name).read_bytes()


def test_no_results_are_a_file_too(tmp_path: Path) -> None:
    files = [jsonl_sink(tmp_path / "out.jsonl"), csv_sink(tmp_path / "out.csv")]
    for spec in (parquet_sink(tmp_path / "out"), *files):
        opened(spec).close()
    assert (tmp_path / "out.csv").read_text() == "ts,n,x\n"
    assert pq.read_table(tmp_path / "out").schema.equals(SCHEMA)
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_json_has_times_to_the_nanosecond_and_null_for_what_is_no_number(tmp_path: Path) -> None:
    time_ns = 1_706_745_600_123_456_789
    batch = pa.record_batch(
        {
            "utc": pa.array([time_ns], pa.timestamp("ns", tz="UTC")),
            "bare": pa.array([time_ns], pa.timestamp("ns")),
            "nan": [float("nan")],
            "infinite": pa.array([float("inf")], pa.float32()),
            "half": [0.5],
            "text": ["żółw 🐢\n"],
            "large": pa.array([2**64 - 1], pa.uint64()),
        }
    )
    sink = opened(jsonl_sink(tmp_path / "out.jsonl"))
    sink.write(batch)
    sink.close()
    (line,) = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "utc": "2024-02-01T00:00:00.123456789Z",
        "bare": "2024-02-01T00:00:00.123456789",
        "nan": None,
        "infinite": None,
        "half": 0.5,
        "text": "żółw 🐢\n",
        "large": 2**64 - 1,
    }
    assert [note[:40] for note in sink.progress.notes] == [
        "1 infinite value is null there, since JS"
    ]


@pytest.mark.parametrize("start", [0, 1])
def test_json_has_in_lists_structs_and_maps_what_it_has_outside(tmp_path: Path, start: int) -> None:
    inf, nan, floats = float("inf"), float("nan"), pa.float64()
    struct = pa.struct([("a", floats), ("b", pa.list_(floats))])
    batch = pa.record_batch(
        {
            "list": pa.array([[1.0, nan], None, [inf]], pa.list_(floats)),
            "pair": pa.array([[1.0, inf], None, [nan, 3.0]], pa.list_(floats, 2)),
            "times": pa.array([[1], None, [2]], pa.large_list(pa.timestamp("ns", tz="UTC"))),
            "waits": pa.array([[1], [], [2]], pa.list_(pa.duration("ns"))),
            "struct": pa.array([{"a": nan, "b": [inf]}, None, {"a": 1.0, "b": None}], struct),
            "map": pa.array([[("k", inf)], None, []], pa.map_(pa.string(), floats)),
        }
    ).slice(start)
    sink = opened(jsonl_sink(tmp_path / "out.jsonl"))
    sink.write(batch)
    sink.close()
    found = list(map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()))
    time = "1970-01-01T00:00:00.00000000"
    first = {"list": [1.0, None], "pair": [1.0, None], "times": [f"{time}1Z"], "waits": [1]}
    first |= {"struct": {"a": None, "b": [None]}, "map": [["k", None]]}
    second = {**dict.fromkeys(batch.schema.names), "waits": []}
    third = {"list": [None], "pair": [None, 3.0], "times": [f"{time}2Z"], "waits": [2]}
    third |= {"struct": {"a": 1.0, "b": None}, "map": []}
    assert found == [first, second, third][start:]
    (note,) = sink.progress.notes
    assert note.startswith(f"{1 if start else 4} infinite value")


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
@pytest.mark.parametrize("path", ["s3://bucket/x", "gs:/bucket/x", "hdfs://h/x", "file://host/x"])
def test_a_path_of_another_system_is_refused(of: Any, path: str) -> None:
    with pytest.raises(SettingError, match=path):
        of(path)
    if not path.startswith("file"):
        with pytest.raises(SettingError):
            of(Path(path))  # which has one slash


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink, parquet, jsonl, csv])
def test_a_path_that_no_file_can_have_is_refused_by_its_rule(of: Any) -> None:
    with pytest.raises(SlackwaterError, match=r"null character, which no path can have; leave it"):
        of("o\0x")
    with pytest.raises(
        SlackwaterError, match=r"user 'no-such-user', who is not known here; .*'\./~"
    ):
        of("~no-such-user/x")


def test_a_path_of_this_machine_may_say_so(tmp_path: Path) -> None:
    path = tmp_path / "a folder"
    for said in (path.as_uri(), f"file:{path}", f"file://localhost{path}", str(path)):
        assert parquet_sink(said).path == str(path)
    assert parquet_sink("~/out").path == str(Path("~/out").expanduser())
    assert parquet_sink("./s3:/out").path == "./s3:/out"


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_one_file_has_its_name_when_it_is_whole(tmp_path: Path, of: Any) -> None:
    path = tmp_path / "one.parquet"
    sink = opened(of(path))
    sink.write(rows(0, 70_000))
    assert all(found.name.startswith(".one.parquet.") for found in tmp_path.iterdir())
    with pytest.raises(SinkError, match=r"belongs to job .* runs on this very host"):
        opened(of(path))
    sink.close()
    assert shown(tmp_path) == [path]


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
@pytest.mark.parametrize("name", ["out", "one.parquet"])
def test_results_of_two_runs_do_not_mix(tmp_path: Path, of: Any, name: str) -> None:
    for _ in range(2):
        sink = opened(of(tmp_path / name, overwrite=True))
        sink.write(rows())
        sink.close()
    with pytest.raises(SinkError, match=f"sink 'out': .*{name} .*overwrite=True"):
        opened(of(tmp_path / name))
    found = shown(tmp_path / name) if name == "out" else [tmp_path / name]
    if of is parquet_sink:
        assert sum(len(pq.read_table(part)) for part in found) == 3
    else:
        header = 1 if of is csv_sink else 0
        assert sum(len(part.read_text().splitlines()) for part in found) == 3 + header


def test_a_batch_of_json_that_does_not_fit_is_cut_off_again_and_nothing_partial_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(jsonl_sink(tmp_path / "out", rows=2))
    sink.write(rows(0))
    write = os.pwrite

    def full(file: int, data: memoryview, offset: int) -> int:
        if len(data) > 10:
            return write(file, data[: len(data) // 2], offset)
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(
            SinkError,
            match=r"sink 'out' could not write .*/out: No space left on device "
            r".*MiB free there, too little\); 1 part with 2 rows is "
            r"published and safe, 1 row .* not visible; make room",
        ):
            sink.write(rows(3))
    sink.close()
    (part,) = shown(tmp_path / "out")
    assert [json.loads(line)["n"] for line in part.read_text().splitlines()] == [0, 1]
    manifest = json.loads((tmp_path / "out" / ".slackwater.json").read_text())
    assert manifest["run"]["state"] == "failed"
    assert "No space left" in manifest["run"]["error"]
    assert manifest["parts"] == [["part-00000001.jsonl", 2, part.stat().st_size, 0]]
    (left,) = (tmp_path / "out").glob(".*.incomplete")
    assert [json.loads(line)["n"] for line in left.read_text().splitlines()] == [2]


def test_a_callback_gets_every_batch_and_its_error_carries_a_sample() -> None:
    seen: list[int] = []
    sink = opened(callback_sink(lambda batch: seen.append(len(batch))))
    sink.write(rows(0, 3))
    sink.write(rows(3, 2))
    sink.close()
    assert seen == [3, 2]
    broken = opened(callback_sink(lambda batch: batch["m"]))
    with pytest.raises(
        OperatorError, match=r"sink 'out': its callback raised KeyError(.|\n)*'n': 0"
    ):
        broken.write(rows())


def test_a_callback_that_calls_exit_is_an_error_with_its_sink_and_its_line() -> None:
    def leave(*_: object) -> None:
        sys.exit(3)

    told = r"sink 'out': its callback{} raised SystemExit\(3\); (.|\n)*in leave\n *sys.exit"
    with pytest.raises(OperatorError, match=told.format("")):
        opened(callback_sink(leave)).write(rows())
    with pytest.raises(OperatorError, match=told.format("'s at_end")):
        opened(callback_sink(lambda _: None, at_end=leave)).close()


def test_a_callback_is_told_the_end_once_and_its_error_is_told_too() -> None:
    seen: list[str] = []
    sink = opened(callback_sink(lambda _: seen.append("rows"), at_end=lambda: seen.append("end")))
    sink.write(rows())
    sink.close()
    sink.close()
    assert seen == ["rows", "end"]
    broken = opened(callback_sink(lambda _: None, at_end=lambda: {}["table"]))
    with pytest.raises(OperatorError, match=r"sink 'out': its callback's at_end raised KeyError"):
        broken.close()
    broken.close()
    with pytest.raises(TypeMismatch, match="at_end as a function, not 7"):
        callback_sink(lambda _: None, at_end=7)  # type: ignore[arg-type]


def test_a_collect_sink_keeps_everything() -> None:
    driven = opened(collect_sink())
    assert driven.sink.table().schema.equals(SCHEMA)
    driven.write(rows(0))
    driven.write(rows(3))
    assert driven.sink.table()["n"].to_pylist() == list(range(6))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for spec in (
        parquet_sink(tmp_path / "file" / "out"),
        jsonl_sink(tmp_path / "file" / "out.jsonl"),
        jsonl_sink(tmp_path / "file", overwrite=True),
    ):
        with pytest.raises(SinkError, match="choose a path that can be written on the node"):
            opened(spec)


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
@pytest.mark.parametrize("name", ["deep/out", "deep/one.parquet"])
def test_what_is_written_is_for_its_owner_alone(tmp_path: Path, of: Any, name: str) -> None:
    sink = opened(of(tmp_path / name))
    sink.write(rows())
    sink.close()
    made = [one for one in tmp_path.rglob("*") if not one.name.endswith(".lock")]
    assert made
    assert {one.stat().st_mode & 0o77 for one in made} == {0}


def test_without_file_descriptors_left_the_way_out_is_not_another_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    sink = opened(jsonl_sink(tmp_path / "out"))
    monkeypatch.setattr(appended_file, "private", exhausted)
    with pytest.raises(SinkError, match=r"Too many open files.*ulimit -n") as caught:
        sink.write(rows())
    assert "another path" not in str(caught.value)
