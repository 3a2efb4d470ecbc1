"""Files that differ in columns, by `schema=`, and columns of hive folders."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.ingest import files
from slackwater.runtime.errors import IngestError, SchemaError, SettingError
from tests.support.readers import rows_of, types_of

KINDS = ["parquet", "jsonl", "csv"]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [list(rows[0]), *(row.values() for row in rows)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


def two(folder: Path, kind: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    write(folder / f"a.{kind}", [one])
    write(folder / f"b.{kind}", [other])


@pytest.mark.parametrize("kind", KINDS)
def test_a_union_has_the_columns_of_all_files(kind: str, tmp_path: Path) -> None:
    two(tmp_path, kind, {"t": 1, "x": "u"}, {"y": 0.5, "t": 2})
    assert rows_of(getattr(files, kind)(tmp_path, schema="union")) == [
        {"t": 1, "x": "u", "y": None},
        {"t": 2, "x": None, "y": 0.5},
    ]
    chosen = getattr(files, kind)(tmp_path, schema="union", columns=["y"])
    assert rows_of(chosen) == [{"y": None}, {"y": 0.5}]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_file_may_have_the_say(kind: str, tmp_path: Path) -> None:
    two(tmp_path, kind, {"t": 1, "x": "u"}, {"y": 0.5, "t": 2})
    given = getattr(files, kind)(tmp_path, schema="first")
    assert rows_of(given) == [{"t": 1, "x": "u"}, {"t": 2, "x": None}]
    none = getattr(files, kind)(tmp_path, schema="first", columns=["x"])
    assert rows_of(none) == [{"x": "u"}, {"x": None}]


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_differ_are_refused_unless_that_is_said(kind: str, tmp_path: Path) -> None:
    two(tmp_path, kind, {"t": 1}, {"t": 2, "y": 0.5})
    with pytest.raises((SchemaError, IngestError), match=r"'y' is (not in the first file|new)"):
        rows_of(getattr(files, kind)(tmp_path))
    with pytest.raises(SettingError, match="schema='all' must be 'error'"):
        getattr(files, kind)(tmp_path, schema="all")


@pytest.mark.parametrize("kind", KINDS)
def test_types_that_do_not_meet_are_refused_unless_one_is_said(kind: str, tmp_path: Path) -> None:
    two(tmp_path, kind, {"t": 1, "x": 1}, {"t": 2, "x": "word"})
    with pytest.raises(SchemaError, match=r"b\..*column 'x' has type string, and int64 in the"):
        getattr(files, kind)(tmp_path, schema="union").schema()
    if kind != "jsonl":  # whose numbers are no text
        said = getattr(files, kind)(tmp_path, schema="union", types={"x": "string"})
        assert [row["x"] for row in rows_of(said)] == ["1", "word"]


def test_types_of_a_union_are_widened(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.int8())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([400], pa.int32())}), tmp_path / "b.parquet")
    given = files.parquet(tmp_path, schema="union")
    assert types_of(given) == {"x": "int32"}
    assert [row["x"] for row in rows_of(given)] == [1, 400]


@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_hive_are_columns(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "region=e%20u" / "day=2024-01-02" / "n=1"
    write(folder / f"a.{kind}", [{"t": 1}, {"t": 2}])
    null = tmp_path / "region=us" / "day=__HIVE_DEFAULT_PARTITION__" / "n=20"
    write(null / f"b.{kind}", [{"t": 3}])
    given = getattr(files, kind)(tmp_path)
    day = datetime.date(2024, 1, 2)
    assert types_of(given) == {"t": "int64", "region": "string", "day": "date32[day]", "n": "int64"}
    assert rows_of(given) == [
        {"t": 1, "region": "e u", "day": day, "n": 1},
        {"t": 2, "region": "e u", "day": day, "n": 1},
        {"t": 3, "region": "us", "day": None, "n": 20},
    ]
    chosen = getattr(files, kind)(tmp_path, columns=["n"], types={"n": "string"})
    assert [row["n"] for row in rows_of(chosen)] == ["1", "1", "20"]
    assert rows_of(getattr(files, kind)(tmp_path, hive=False)) == [{"t": 1}, {"t": 2}, {"t": 3}]
    below = getattr(files, kind)(tmp_path / "region=us" / "*" / "*" / "*")
    assert list(rows_of(below)[0]) == ["t", "day", "n"]
    alone = getattr(files, kind)(null / f"b.{kind}")
    assert rows_of(alone) == [{"t": 3}]
    with pytest.raises(SchemaError, match="'e u' in the folder's name is not of type int64"):
        rows_of(getattr(files, kind)(tmp_path, types={"region": "int64"}))


def test_folders_that_not_all_files_have_are_no_columns(tmp_path: Path) -> None:
    write(tmp_path / "n=1" / "a.csv", [{"t": 1}])
    write(tmp_path / "b.csv", [{"t": 2}])
    assert rows_of(files.csv(tmp_path)) == [{"t": 2}, {"t": 1}]
    with pytest.raises(IngestError, match=r"b\.csv is in no folder .*, and .* in folders n=…;"):
        files.csv(tmp_path, hive=True).schema()


def test_a_name_twice_in_a_path_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "k=1" / "k=2" / "a.csv", [{"t": 1}])
    with pytest.raises(IngestError, match=r"two of its folders are named 'k'=…; .*hive=False"):
        files.csv(tmp_path).schema()
    assert rows_of(files.csv(tmp_path, hive=False)) == [{"t": 1}]


def test_lists_that_differ_inside_meet_by_a_said_type(tmp_path: Path) -> None:
    for name, of in (("a", pa.int16()), ("b", pa.int64())):
        table = pa.table({"l": pa.array([[1]], pa.list_(of))})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(SchemaError, match=r"no type holds both .*types=\{'l': pa") as problem:
        files.parquet(tmp_path, schema="union").schema()
    assert "schema=" not in str(problem.value)
    said = files.parquet(tmp_path, schema="union", types={"l": pa.list_(pa.int64())})
    assert rows_of(said) == [{"l": [1]}, {"l": [1]}]


def test_a_column_of_the_file_has_precedence_over_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "n=1" / "a.csv", [{"n": 7}])
    assert rows_of(files.csv(tmp_path)) == [{"n": 7}]
    with pytest.raises(SchemaError, match="column 'n' is in the file and in its folder's name"):
        files.csv(tmp_path, hive=True).schema()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20"], "int64"),
        (["01", "2"], "string"),
        (["2024-02-30"], "string"),
        (["1", ""], "string"),
        (["99999999999999999999"], "string"),
    ],
)
def test_types_of_folders_are_guessed_from_all_files(
    tmp_path: Path, values: list[str], kind: str
) -> None:
    for value in values:
        write(tmp_path / f"k={value}" / "a.csv", [{"t": 1}])
    given = files.csv(tmp_path)
    assert types_of(given)["k"] == kind
    assert sorted(str(row["k"]) for row in rows_of(given)) == sorted(values)


def test_lines_of_rows_are_those_of_the_file_in_hive_folders(tmp_path: Path) -> None:
    write(tmp_path / "k=1" / "a.csv", [{"t": 1}, {"t": 2}])
    reader = files.csv(tmp_path).open()
    reader.poll()
    assert reader.line_of(1) == 3
