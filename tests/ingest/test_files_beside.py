"""Files that a folder or a pattern does not read are counted, and case does not matter."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.ingest import files
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows
from tests.support.readers import next_rows


def count_rows(given: sw.connectors.Input) -> int:
    rows, reader = 0, given.open()
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        assert not isinstance(polled, BadRows)
        rows += len(polled)
    return rows


def fill(folder: Path) -> None:
    for name in ("b.csv", "A.CSV", "below/c.Csv"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("t\n1\n")
    (folder / "d.CSV.GZ").write_bytes(gzip.compress(b"t\n1\n"))
    for name in ("c.csv.xz", "e.parq", "below/f.txt", "g", "_SUCCESS", ".h.csv"):
        (folder / name).write_bytes(b"")


def test_a_folder_reads_endings_in_either_case(tmp_path: Path) -> None:
    fill(tmp_path)
    assert count_rows(files.csv(tmp_path)) == 4
    assert count_rows(files.csv(tmp_path / "d.CSV.GZ")) == 1


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_folder_of_other_kinds_has_their_endings_in_capitals(tmp_path: Path, kind: str) -> None:
    fill(tmp_path)
    (tmp_path / f"A.{kind.upper()}").write_bytes(b"")
    assert len(getattr(files, kind)(tmp_path).files()) == 1


def test_files_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    fill(tmp_path)
    flow = sw.Dataflow("files")
    flow.source("s", files.csv(tmp_path), event_time="t", time_unit="s").sink(
        "out", sw.collect_sink()
    )
    said = "5 files beside not read: .h.csv, f.txt, c.csv.xz and 2 more"
    assert f"(4 files); {said}" in flow.explain()
    with sw.Simulation() as nodes:
        report = nodes.submit(flow).wait()
    assert [one for one in report.notes if one.startswith("source 's'") and said in one]


def test_files_that_a_pattern_leaves_are_counted_beside_it(tmp_path: Path) -> None:
    fill(tmp_path)
    beside = files.csv(tmp_path / "*.csv").notes()
    assert len(beside) == 1
    assert "(1 file): 6 files beside not read: .h.csv, A.CSV" in beside[0]
    assert files.csv(tmp_path / "b.csv").notes() == []
    assert files.csv(tmp_path / "no*.csv").notes() == []
    with pytest.raises(IngestError, match="no file matches"):
        files.csv(tmp_path / "no*.csv").schema()


def test_a_folder_without_other_files_has_no_note(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("t\n1\n")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part").write_text("")
    assert files.csv(tmp_path).describe().endswith("(1 file)")
    assert files.csv(tmp_path).notes() == []


def test_data_whose_name_or_folder_is_hidden_is_counted(tmp_path: Path) -> None:
    for name in (
        "a.csv",
        "_b.csv",
        ".c.CSV",
        "_tmp/d.csv",
        ".hid/e.csv.gz",
        "_SUCCESS",
        ".a.csv.crc",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("t\n1\n")
    (note,) = files.csv(tmp_path).notes()
    assert "4 files beside not read" in note


@pytest.mark.parametrize(
    ("pattern", "beside"),
    [("**/*.csv", 4), ("*/*.csv", 3), ("s/*.gz", 1), ("*", 1), ("s*/[x]*", 0), ("**", 1)],
)
def test_files_beside_are_counted_in_each_folder_of_a_pattern(
    tmp_path: Path, pattern: str, beside: int
) -> None:
    for name in ("a.csv", "s/B.CSV", "s/c.csv.gz", "r/d.csv", ".h/e.csv", ".f.csv", "_SUCCESS"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("t\n1\n")
    given = files.csv(tmp_path / pattern)
    assert len(given.notes()) == bool(beside)
    assert f": {beside} file" in f"{given.notes()}: 0 file"


def test_names_of_files_cannot_write_on_a_terminal(tmp_path: Path) -> None:
    for name in ("a.csv", "b\nc.dat", "\x1b[31mred.dat"):
        (tmp_path / name).write_text("t\n1\n")
    (note,) = files.csv(tmp_path).notes()
    assert note.endswith("2 files beside not read: ␛[31mred.dat, b␊c.dat")
