"""Files whose records are all good take the plain path, whatever `on_bad=` and `schema=` say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import csv_bad, csv_input, files, jsonl_input, records
from slackwater.ingest.inputs import FileInput
from slackwater.ingest.numerals import codes
from slackwater.ingest.records import Bad, Piece, joined
from slackwater.runtime.sources.spec import END_OF_INPUT
from tests.support.readers import next_rows

GOOD = {
    "csv": 't,s,at\n1,"a, b",2024-01-01 10:00:00\n2,c,2024-01-02 10:00:00.5\n',
    "jsonl": '{"t": 1, "s": "a, b", "at": null}\n{"t": 2, "s": "c", "at": [1]}\n',
}


def read_all(given: FileInput) -> None:
    given.schema()
    reader = given.open()
    while reader.poll() is not END_OF_INPUT:
        pass


def refused(*_: Any, **__: Any) -> Any:
    raise AssertionError("a record was looked at by itself")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
def test_good_records_are_not_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, on_bad: str
) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_text(GOOD[kind])
    for room, name in (
        (csv_input, "salvaged"),
        (csv_input, "lengths_kept"),
        (csv_bad, "records"),
        (records, "records"),
        (jsonl_input, "by_halves"),
        (jsonl_input, "reasons_of"),
        (jsonl_input, "objects_kept"),
    ):
        monkeypatch.setattr(room, name, refused)
    read_all(getattr(files, kind)(path, on_bad=on_bad))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_union_looks_at_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.{kind}").write_text(GOOD[kind])
    given = getattr(files, kind)(tmp_path, schema="union")
    looked: Counter[str] = Counter()
    plain: Callable[..., Any] = type(given)._shown

    def shown(self: FileInput, path: str) -> Any:
        looked[Path(path).name] += 1
        return plain(self, path)

    monkeypatch.setattr(type(given), "_shown", shown)
    read_all(given)
    read_all(given.planned())
    assert dict(looked) == {f"{number}.{kind}": 1 for number in range(4)}
    (tmp_path / f"3.{kind}").write_text(GOOD[kind].replace("at", "on"))
    assert "on" in given.schema().names
    assert set(looked.values()) == {2}


def test_a_wide_file_is_read_in_pieces_of_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 4_096)
    width, rows = 500, 50
    lines = [",".join(f"c{at}" for at in range(width))]
    lines += [",".join(str(at * row) for at in range(width)) for row in range(rows)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines, ""]))
    reads: list[int] = []
    plain = arrow_csv.read_csv

    def counted(*args: Any, **options: Any) -> pa.Table:
        table = plain(*args, **options)
        reads.append(len(table))
        return table

    monkeypatch.setattr(arrow_csv, "read_csv", counted)
    reader = files.csv(path).open()
    blocks = []
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        blocks.append(polled)
    assert sum(len(block) for block in blocks) == rows
    assert len(blocks) == 1
    assert len(reads) < 8  # the header, a guess, and all rows


PIECES = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["whole", "left out", "bad"])))


@given(PIECES, st.integers(1, 60))
def test_joined_pieces_are_the_same_lines(drawn: list[tuple[int, str]], least: int) -> None:
    parts, line = [], 1
    for count, kind in drawn:
        data = b"".join(b"%d\n" % number for number in range(line, line + count))
        lines = tuple(range(line, line + count)) if kind != "whole" else None
        bad = (Bad(line + count, "why", b"x"),) if kind == "bad" else ()
        parts.append(Piece(data, line, lines, bad))
        line += count + len(bad)
    made = list(joined(iter(parts), least))
    assert b"".join(each.data for each in made) == b"".join(each.data for each in parts)
    assert [each.bad for each in made if each.bad] == [each.bad for each in parts if each.bad]
    for each in made:
        assert each.data.startswith(b"%d\n" % each.line)


CODES = [("0", False), ("00", True), ("-0", False), ("-01", True), ("+1", True), ("+", False)]
CODES += [
    ("0x1", True),
    ("-0X1", True),
    ("0.5", False),
    ("-0.5", False),
    (".5", False),
    ("", False),
]


@given(st.lists(st.sampled_from(CODES)))
def test_codes_begin_with_a_plus_a_zero_or_an_x(drawn: list[tuple[str, bool]]) -> None:
    text = pa.array(["before", *(one for one, _ in drawn)], pa.string())
    assert codes(text.slice(1)).tolist() == [is_code for _, is_code in drawn]
