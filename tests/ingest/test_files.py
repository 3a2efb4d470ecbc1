"""Files and memory as inputs: every row once, in order of file names, or an error that names it."""

from __future__ import annotations

import gc
import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.ingest import files, memory
from slackwater.ingest.inputs import FileInput
from slackwater.runtime.errors import IngestError, SchemaError, SettingError
from slackwater.runtime.sources.spec import END_OF_INPUT, Input, SourceReader
from tests.support.readers import JitterInput, next_rows

KINDS = ["parquet", "jsonl", "csv"]


def rows_of(given: Input) -> list[dict[str, Any]]:
    """Read to the end, checking that blocks have the schema that was announced."""
    schema, rows = given.schema(), []
    reader = given.open()
    while (block := next_rows(reader)) is not END_OF_INPUT:
        if block is None:
            continue
        assert isinstance(block, pa.RecordBatch)
        assert block.schema.equals(schema, check_metadata=False)
        rows += block.to_pylist()
    reader.close()
    reader.close()
    return rows


def write(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=3)
    elif path.suffix == ".jsonl":
        lines = (
            "{" + ", ".join(f'"{k}": {quoted(v)}' for k, v in row.items()) + "}\n"
            for row in table.to_pylist()
        )
        path.write_text("".join(lines), encoding="utf-8")
    else:
        lines = (",".join(map(str, row.values())) + "\n" for row in table.to_pylist())
        path.write_text(",".join(table.column_names) + "\n" + "".join(lines), encoding="utf-8")


def quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def input_of(kind: str, path: Path | str, **options: Any) -> FileInput:
    made: FileInput = getattr(files, kind)(path, **options)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_read_in_order_of_their_names(kind: str, tmp_path: Path) -> None:
    write(tmp_path / f"b.{kind}", {"t": [3, 4], "line": ["x", "é"]})
    write(tmp_path / f"a.{kind}", {"t": [1, 2], "line": ["u", "v"]})
    given = input_of(kind, tmp_path / f"*.{kind}")
    assert rows_of(given) == [
        {"t": 1, "line": "u"},
        {"t": 2, "line": "v"},
        {"t": 3, "line": "x"},
        {"t": 4, "line": "é"},
    ]
    assert given.describe() == f"{kind} {tmp_path}/*.{kind} (2 files)"
    assert input_of(kind, tmp_path / f"a.{kind}").describe().endswith("(1 file)")


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_means_all_files_of_the_kind_below_it(kind: str, tmp_path: Path) -> None:
    for name in ("day=2/a", "day=1/b", "_temporary/c", "day=1/_d", ".hidden/e"):
        write(tmp_path / f"{name}.{kind}", {"t": [1], "from": [name]})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "day=1" / "notes.txt").write_text("no rows")
    assert [row["from"] for row in rows_of(input_of(kind, tmp_path))] == ["day=1/b", "day=2/a"]


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_columns_come_in_the_order_asked(kind: str, tmp_path: Path) -> None:
    write(tmp_path / f"a.{kind}", {"a": [1], "b": [2], "c": [3]})
    write(tmp_path / f"b.{kind}", {"c": [6], "a": [4], "x": [0], "b": [5]})
    chosen = input_of(kind, tmp_path, columns=["c", "a"])
    assert chosen.schema().names == ["c", "a"]
    assert [list(row.items()) for row in rows_of(chosen)] == [
        [("c", 3), ("a", 1)],
        [("c", 6), ("a", 4)],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_no_larger_than_asked(kind: str, tmp_path: Path) -> None:
    write(tmp_path / f"a.{kind}", {"t": list(range(10))})
    reader = input_of(kind, tmp_path, batch_rows=4).open()
    sizes = []
    while (block := next_rows(reader)) is not END_OF_INPUT:
        assert isinstance(block, pa.RecordBatch)
        sizes.append(len(block))
    assert max(sizes) <= 4
    assert sum(sizes) == 10
    for rows in (0, 10**30):
        with pytest.raises(SettingError, match=f"batch_rows={rows} must be from 1 to"):
            input_of(kind, tmp_path, batch_rows=rows)


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_pickles_and_still_knows_where_it_started(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in" / f"a.{kind}", {"t": [1]})
    monkeypatch.chdir(tmp_path)
    given = input_of(kind, "in")
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(given))  # noqa: S301 - our own
    assert again == given
    assert rows_of(again) == [{"t": 1}]
    assert again.describe() == f"{kind} in (1 file)"


@pytest.mark.parametrize("kind", KINDS)
def test_no_match_names_what_is_there_instead(kind: str, tmp_path: Path) -> None:
    write(tmp_path / f"loops.{kind}", {"t": [1]})
    with pytest.raises(
        IngestError, match=rf"has nothing like 'lops.{kind}'; the nearest is 'loops.{kind}'"
    ):
        input_of(kind, tmp_path / f"lops.{kind}").schema()
    with pytest.raises(IngestError, match="nothing like 'nowhere'"):
        input_of(kind, tmp_path / "nowhere" / "deep" / "*").open()
    (tmp_path / "empty").mkdir()
    with pytest.raises(IngestError, match=f"no file that ends in .{kind}"):
        input_of(kind, tmp_path / "empty").schema()
    assert input_of(kind, tmp_path / "empty").describe().endswith("(0 files)")


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_of_another_system_is_refused(kind: str, tmp_path: Path) -> None:
    for path in ("s3://bucket/x", Path("gs://bucket/x"), "hdfs://h:8020/x", "dbfs:/x"):
        with pytest.raises(IngestError, match="through Spark"):
            input_of(kind, path)
    write(tmp_path / f"a b.{kind}", {"t": [1]})
    assert rows_of(input_of(kind, (tmp_path / f"a b.{kind}").as_uri())) == [{"t": 1}]


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    for kind in KINDS:
        write(tmp_path / f"a.{kind}", {"speed": [1]})
        with pytest.raises(SchemaError, match=r"no column 'sped'; the nearest is 'speed'"):
            input_of(kind, tmp_path, columns=["sped"]).schema()
        with pytest.raises(SettingError, match="must be a list of texts"):
            input_of(kind, tmp_path, columns="speed")
        with pytest.raises(SettingError, match="reads nothing"):
            input_of(kind, tmp_path, columns=[])


def test_a_corrupt_file_is_named_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"t": [1]})
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really PAR1")
    given = files.parquet(tmp_path)
    with pytest.raises(IngestError, match=r"b.parquet \(file 2 of 2 of .*cannot be read"):
        given.schema()
    with pytest.raises(IngestError, match=r"b.parquet"):
        given.open()


def test_a_reader_that_failed_stays_failed(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", {"t": [1]})
    (tmp_path / "b.csv").write_text("t\nword\n")
    reader = files.csv(tmp_path).open()
    assert len(next_rows(reader)) == 1  # type: ignore[arg-type]
    for _ in range(2):  # a failure is not the end of the input
        with pytest.raises(IngestError, match=r"b.csv"):
            reader.poll()


def test_a_parquet_file_cut_short_in_its_data_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"t": list(range(5_000))}), path, compression="zstd", use_dictionary=False
    )
    whole = bytearray(path.read_bytes())
    whole[40:400] = bytes(360)
    path.write_bytes(whole)
    reader = files.parquet(path).open()
    with pytest.raises(IngestError, match=r"a.parquet \(file 1 of 1"):
        read_all(reader)


def test_a_broken_line_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n1,2\n3\n")
    (tmp_path / "a.jsonl").write_text('{"t": 1}\n{"t": \n')
    for kind in ("csv", "jsonl"):
        with pytest.raises(IngestError, match=rf"a.{kind} \(file 1 of 1"):
            rows_of(input_of(kind, tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"t": [1]})
    (tmp_path / "a.parquet").chmod(0)
    with pytest.raises(IngestError, match=r"a.parquet"):
        files.parquet(tmp_path).schema()


def test_a_file_that_goes_away_is_named(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.parquet", {"t": [1]})
    reader = files.parquet(tmp_path).open()
    (tmp_path / "b.parquet").unlink()
    reader.poll()
    with pytest.raises(IngestError, match=r"b.parquet"):
        reader.poll()


def test_files_that_differ_are_refused_by_file_and_column(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"t": [1], "x": [1]})
    for columns, says in (
        ({"t": [1]}, "b.parquet: column 'x' of the first file is missing"),
        ({"t": [1], "x": [0.5]}, "b.parquet: column 'x' has type double, and int64"),
        ({"t": [1], "x": [1], "y": [1]}, "b.parquet: column 'y' is not in the first file"),
    ):
        write(tmp_path / "b.parquet", columns)
        with pytest.raises(SchemaError, match=says):
            files.parquet(tmp_path).schema()
        with pytest.raises(SchemaError, match=says):
            read_all(files.parquet(tmp_path).open())
    assert len(rows_of(files.parquet(tmp_path, columns=["t"]))) == 2


def read_all(reader: SourceReader) -> None:
    while reader.poll() is not END_OF_INPUT:
        pass


def test_text_files_that_differ_are_refused_by_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", {"t": [1], "x": [1]})
    write(tmp_path / "a.jsonl", {"t": [1], "x": [1]})
    write(tmp_path / "b.csv", {"t": [1]})
    write(tmp_path / "b.jsonl", {"t": [1], "y": [1]})
    with pytest.raises(SchemaError, match=r"b.csv: column 'x' of the first file is missing"):
        read_all(files.csv(tmp_path).open())
    with pytest.raises(SchemaError, match=r"b.csv: column 'x' of the first file is missing"):
        read_all(files.csv(tmp_path, columns=["x"]).open())
    with pytest.raises(IngestError, match=r"b.jsonl"):
        read_all(files.jsonl(tmp_path).open())
    write(tmp_path / "b.csv", {"t": [1], "x": ["word"]})
    with pytest.raises(IngestError, match=r"b.csv .*word"):
        read_all(files.csv(tmp_path).open())


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"t": pa.array([], pa.int64())})
    assert rows_of(files.parquet(tmp_path)) == []
    for kind in ("csv", "jsonl"):
        (tmp_path / f"a.{kind}").touch()
        with pytest.raises(SchemaError, match="no file has rows that show types; say them"):
            input_of(kind, tmp_path).schema()
        assert rows_of(input_of(kind, tmp_path, types={"t": "int64"})) == []
        write(tmp_path / f"b.{kind}", {"t": [1]})
        assert rows_of(input_of(kind, tmp_path)) == [{"t": 1}]


def test_types_can_be_told_where_the_file_does_not_show_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n1,\n2,\n")
    (tmp_path / "a.jsonl").write_text('{"t": 1, "x": null}\n')
    for kind in ("csv", "jsonl"):
        assert input_of(kind, tmp_path).schema().field("x").type == pa.null()
        told = input_of(kind, tmp_path, types={"x": "float64", "t": pa.int32()})
        assert {field.name: str(field.type) for field in told.schema()} == {
            "t": "int32",
            "x": "double",
        }
        assert rows_of(told)[0] == {"t": 1, "x": None}
        with pytest.raises(SettingError, match="'x' has type 'real'"):
            input_of(kind, tmp_path, types={"x": "real"})


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    for kind, text in (("csv", b"t\n1\n"), ("jsonl", b'{"t": 1}\n')):
        (tmp_path / f"a.{kind}.gz").write_bytes(gzip.compress(text))
        assert rows_of(input_of(kind, tmp_path)) == [{"t": 1}]


def test_a_reader_that_is_closed_early_leaves_no_file_open(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"t": list(range(100))})
    gc.collect()  # what earlier tests left to the collector is none of ours
    before = set(os.listdir("/proc/self/fd"))
    reader = files.parquet(tmp_path, batch_rows=3).open()
    reader.poll()
    reader.close()
    reader.close()
    assert set(os.listdir("/proc/self/fd")) <= before


# Memory


def test_a_table_is_an_input() -> None:
    given = memory.table({"t": [1, 2, 3], "x": ["a", "b", "c"]}, batch_rows=2)
    assert given.describe() == "table of 3 rows"
    assert [row["t"] for row in rows_of(given)] == [1, 2, 3]
    assert rows_of(given) == rows_of(pickle.loads(pickle.dumps(given)))  # noqa: S301 - our own
    assert max(map(len, given.parts)) == 2


def test_a_table_that_is_none_is_refused() -> None:
    for wrong in ({"t": [1], "x": []}, {"t": [1, "a"]}):
        with pytest.raises(SchemaError, match="every column needs"):
            memory.table(wrong)
    for rows in (0, 10**30):
        with pytest.raises(SettingError, match=f"batch_rows={rows} must be from 1 to"):
            memory.table({"t": [1]}, batch_rows=rows)


def test_blocks_come_as_they_are_cut() -> None:
    parts = [pa.record_batch({"t": [1]}), pa.record_batch({"t": pa.array([], pa.int64())})]
    reader = memory.blocks(parts).open()
    assert [len(next_rows(reader)), len(next_rows(reader))] == [1, 0]  # type: ignore[arg-type]
    assert reader.poll() is END_OF_INPUT
    assert rows_of(memory.blocks([], schema=parts[0].schema)) == []
    with pytest.raises(SchemaError, match="schema="):
        memory.blocks([])
    with pytest.raises(SchemaError, match="block 1 has"):
        memory.blocks([parts[0], pa.record_batch({"x": [1]})])


def test_jitter_changes_the_cut_and_nothing_else() -> None:
    inner = memory.table({"t": list(range(500))}, batch_rows=40)
    one, again, other = JitterInput(inner, 1), JitterInput(inner, 1), JitterInput(inner, 2)
    assert rows_of(one) == rows_of(other) == rows_of(inner)
    assert answers(one) == answers(again) != answers(other)
    assert None in answers(one)
    assert one.describe() == "table of 500 rows, jittered by seed 1"


def answers(given: Input) -> list[int | None]:
    reader, sizes = given.open(), []
    while (block := next_rows(reader)) is not END_OF_INPUT:
        sizes.append(len(block) if isinstance(block, pa.RecordBatch) else None)
    return sizes


def test_a_header_that_begins_as_parquet_does_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("PAR1,PAR2,t\n1,2,3\n")
    polled = next_rows(files.csv(path).open())
    assert isinstance(polled, pa.RecordBatch)
    assert polled.to_pylist() == [{"PAR1": 1, "PAR2": 2, "t": 3}]
    pq.write_table(pa.table({"t": [1]}), path)
    with pytest.raises(IngestError, match="the file is a parquet file"):
        files.csv(path).schema()
