"""Positions: each input opened at the position of any block gives the rest, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater import ingest
from slackwater.ingest import files, memory, record_walk, records
from slackwater.runtime.errors import IngestError
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, Block
from tests.support.chance import Seeded
from tests.support.sources import machine, take

SMALL = 64
"""Bytes of a piece of text here, so that a small file has many."""


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", SMALL)
    monkeypatch.setattr(record_walk, "LONGEST_BYTES", 300)


# What is read


def rows_of(count: int, chance: random.Random, first: int = 0) -> list[dict[str, Any]]:
    words = ["a", "b,c", 'say "x"', "two\nlines", "ä€", "", "w" * 30]
    return [
        {"t": first + n, "x": round(chance.random(), 3), "w": chance.choice(words)}
        for n in range(count)
    ]


def csv_text(rows: list[dict[str, Any]], *, quotes: bool = True) -> str:
    def value(one: Any) -> str:
        text = str(one)
        if not quotes:
            return text.replace("\n", " ").replace(",", ";").replace('"', "'").replace("€", "e")
        return '"' + text.replace('"', '""') + '"' if isinstance(one, str) else text

    return "".join(",".join(map(value, row.values())) + "\n" for row in rows)


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def dirty(text: str, chance: random.Random) -> str:
    """Put records that cannot be read between lines; one is longer than any may be."""
    bad = ["no number,,\n", '1,"never closed\n', "x" * 400 + "\n", "{}}\n", "1,2,3,4,5\n"]
    lines = text.splitlines(keepends=True)
    return "".join(one + (chance.choice(bad) if chance.random() < 0.3 else "") for one in lines)


def _csv(at: Path, chance: random.Random) -> Any:
    at.joinpath("a.csv").write_text("# a note\nt,x,w\n" + csv_text(rows_of(60, chance)))
    return files.csv(at / "a.csv", comment="#", batch_rows=3)


def _csv_without_quotes(at: Path, chance: random.Random) -> Any:
    at.joinpath("a.csv").write_text("t,x,w\n" + csv_text(rows_of(60, chance), quotes=False))
    return files.csv(at / "a.csv")


def _csv_late_header(at: Path, chance: random.Random) -> Any:
    at.joinpath("a.csv").write_text("# \n" * 99 + "t,x,w\n" + csv_text(rows_of(30, chance)))
    return files.csv(at / "a.csv", comment="#")


def _csv_in_utf16(at: Path, chance: random.Random) -> Any:
    at.joinpath("a.csv").write_text("t,x,w\n" + csv_text(rows_of(60, chance)), encoding="utf-16")
    return files.csv(at / "a.csv", encoding="utf-16", batch_rows=2)


def _csv_packed(at: Path, chance: random.Random) -> Any:
    text = "t,x,w\n" + csv_text(rows_of(60, chance))
    at.joinpath("a.csv.gz").write_bytes(gzip.compress(text.encode()))
    return files.csv(at / "a.csv.gz", batch_rows=5)


def _csv_with_a_mark(at: Path, chance: random.Random) -> Any:
    text = "\ufefft,x,w\r\n" + csv_text(rows_of(60, chance)).replace("\n", "\r\n")
    at.joinpath("a.csv").write_bytes(text.encode())
    return files.csv(at / "a.csv", batch_rows=5)


def _csv_skips(at: Path, chance: random.Random) -> Any:
    text = csv_text(rows_of(60, chance), quotes=False)
    at.joinpath("a.csv").write_text("t,x,w\n0,0.5,good\n" + dirty(text, chance))
    return files.csv(at / "a.csv", on_bad="skip", types={"t": "int64", "x": "float64"})


def _csv_diverts(at: Path, chance: random.Random) -> Any:
    return replace(_csv_skips(at, chance), on_bad="divert")


def _wide_csv(at: Path, chance: random.Random) -> Any:
    names = [f"c{n}" for n in range(40)]
    lines = [",".join(str(chance.randrange(99)) for _ in names) for _ in range(90)]
    at.joinpath("a.csv").write_text("\n".join([",".join(names), *lines]))
    return files.csv(at / "a.csv")


def _jsonl(at: Path, chance: random.Random) -> Any:
    at.joinpath("a.jsonl").write_text("\n\n" + lines_of(rows_of(60, chance)))
    return files.jsonl(at / "a.jsonl", batch_rows=3)


def _jsonl_packed(at: Path, chance: random.Random) -> Any:
    packed = gzip.compress(lines_of(rows_of(60, chance)).encode())
    at.joinpath("a.jsonl.gz").write_bytes(packed)
    return files.jsonl(at / "a.jsonl.gz")


def _jsonl_diverts(at: Path, chance: random.Random) -> Any:
    text = dirty(lines_of(rows_of(60, chance)), chance)
    at.joinpath("a.jsonl").write_text(text)
    return files.jsonl(at / "a.jsonl", on_bad="divert", types={"t": "int64", "x": "float64"})


def _parquet(at: Path, chance: random.Random) -> Any:
    pq.write_table(pa.Table.from_pylist(rows_of(60, chance)), at / "a.parquet", row_group_size=7)
    return files.parquet(at / "a.parquet", batch_rows=4)


def _parquet_in_int96(at: Path, chance: random.Random) -> Any:
    rows = rows_of(60, chance)
    times = pa.array([row["t"] for row in rows], pa.timestamp("ns"))
    table = pa.table({"t": times, "w": pa.array([row["w"] for row in rows]).dictionary_encode()})
    pq.write_table(table, at / "a.parquet", row_group_size=13, use_deprecated_int96_timestamps=True)
    return files.parquet(at / "a.parquet", batch_rows=10, types={"t": "timestamp[ns]"})


def _table(_: Path, chance: random.Random) -> Any:
    return memory.table(pa.Table.from_pylist(rows_of(60, chance)), batch_rows=7)


def _blocks(_: Path, chance: random.Random) -> Any:
    table = pa.Table.from_pylist(rows_of(60, chance))
    batch = table.combine_chunks().to_batches()[0]
    return memory.blocks([batch.slice(0, 5), batch.slice(5, 0), batch.slice(5)])


def _files(at: Path, chance: random.Random, write: Callable[[Path, Any], None], suffix: str) -> Any:
    for n in range(14):
        count = 0 if n % 9 == 4 else chance.randrange(1, 9)
        write(at / f"{n}{suffix}", rows_of(count, chance, first=10 * n))
    return {".csv": files.csv, ".jsonl": files.jsonl, ".parquet": files.parquet}[suffix](at)


def _many_csv(at: Path, chance: random.Random) -> Any:
    return _files(
        at, chance, lambda path, rows: path.write_text("t,x,w\n" + csv_text(rows)), ".csv"
    )


def _many_jsonl(at: Path, chance: random.Random) -> Any:
    return _files(at, chance, lambda path, rows: path.write_text(lines_of(rows)), ".jsonl")


def _many_parquet(at: Path, chance: random.Random) -> Any:
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("w", pa.string())])

    def write(path: Path, rows: Any) -> None:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=3)

    return _files(at, chance, write, ".parquet")


INPUTS = [
    _csv,
    _csv_without_quotes,
    _csv_late_header,
    _csv_in_utf16,
    _csv_packed,
    _csv_with_a_mark,
    _csv_skips,
    _csv_diverts,
    _wide_csv,
    _jsonl,
    _jsonl_packed,
    _jsonl_diverts,
    _parquet,
    _parquet_in_int96,
    _table,
    _blocks,
    _many_csv,
    _many_jsonl,
    _many_parquet,
]


@pytest.fixture(params=INPUTS, ids=lambda one: one.__name__.strip("_"))
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path, Seeded(7))


def blocks_of(given: Any, at: bytes | None = None) -> list[Block]:
    reader = given.open("", at)
    blocks = list(iter(reader.poll, END_OF_INPUT))
    reader.close()
    return blocks


def content(blocks: list[Block]) -> list[tuple[bool, pa.Table]]:
    """Return runs of good rows and of bad ones, as Arrow has them."""
    runs: list[tuple[bool, list[pa.RecordBatch]]] = []
    for rows, _ in blocks:
        is_bad = isinstance(rows, BadRows)
        batch = rows.rows if isinstance(rows, BadRows) else rows
        if not runs or runs[-1][0] != is_bad:
            runs.append((is_bad, []))
        runs[-1][1].append(batch)
    return [(is_bad, pa.Table.from_batches(run).unify_dictionaries()) for is_bad, run in runs]


def same(left: list[tuple[bool, pa.Table]], right: list[tuple[bool, pa.Table]]) -> bool:
    return len(left) == len(right) and all(
        one[0] == other[0] and one[1].schema == other[1].schema and plain(one[1]) == plain(other[1])
        for one, other in zip(left, right, strict=True)
    )


def plain(table: pa.Table) -> list[Any]:
    return [column.to_pylist() for column in table.columns]


def test_opened_at_any_block_it_gives_the_rest(given: Any) -> None:
    whole = blocks_of(given)
    assert len(whole) > 2
    for number in some(whole):
        at = whole[number].at
        assert isinstance(at, bytes)
        assert same(content(blocks_of(given, at)), content(whole[number:])), number


def some(whole: list[Block]) -> list[int]:
    """Return the numbers of all blocks, or of thirty of many, the last among them."""
    numbers = range(len(whole))
    few = Seeded(5).sample(numbers, 30) if len(whole) > 60 else numbers
    return [*few, numbers[-1]]


def test_the_rest_has_the_positions_of_the_whole(given: Any) -> None:
    """A reader that was opened at a position can itself be cut anywhere."""
    whole = blocks_of(given)
    for number in some(whole)[::3]:
        rest = blocks_of(given, whole[number].at)
        assert rest[0].at == whole[number].at or isinstance(given, ingest.memory.BlocksInput)
        last = rest[-1]
        assert same(content(blocks_of(given, last.at)), content([last]))


def test_other_blocks_of_the_same_rows_have_the_same_rest(tmp_path: Path) -> None:
    chance = Seeded(3)
    for make in (_csv, _jsonl, _parquet):
        given = make(tmp_path, chance)
        other = replace(given, batch_rows=11)
        whole = blocks_of(given)
        for number in range(0, len(whole), 4):
            rest = content(blocks_of(other, whole[number].at))
            assert same(rest, content(whole[number:]))


# Random cuts of a source


CUTS = 500


def test_a_source_cut_at_random_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    chance, cuts = Seeded(11), 0
    makes = [_csv, _csv_skips, _jsonl, _parquet, _table, _blocks, _many_csv, _csv_packed]
    inputs = []
    for make in makes:
        folder = tmp_path / make.__name__
        folder.mkdir()
        inputs.append(make(folder, chance))
    expected = [run_of(given, chance, cuts=0)[0] for given in inputs]
    while cuts < CUTS:
        which = chance.randrange(len(inputs))
        rows, made = run_of(inputs[which], chance, cuts=chance.randrange(1, 60))
        assert rows == expected[which], makes[which]
        cuts += made
    print(f"{cuts} cuts")  # noqa: T201 - a test of faults says how many there were


def run_of(given: Any, chance: random.Random, *, cuts: int) -> tuple[list[tuple[Any, ...]], int]:
    """Return all rows of a source, restored a few times on the way; and how often it was."""
    spec = {"speed": 1.0} if chance.random() < 0.3 else {}
    source, rows, made = machine(given, **spec), [], 0
    now_ns = 0
    while not source.is_over:
        message = take(source, now_ns, max_rows=chance.randrange(1, 9))
        now_ns += chance.randrange(4)
        if message is not None and message.batch is not None:
            columns = message.batch.columns
            rows += list(zip(*(np.asarray(columns[name]) for name in columns), strict=True))
        if made < cuts and chance.random() < 0.6:
            again = machine(given, **spec)
            restore(again, save(source))
            source.close()
            source, made = again, made + 1
    return rows, made


# Refusals


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Any]:
    for name, first in (("a.csv", 0), ("b.csv", 100)):
        text = "".join(f"{first + n},{n}\n" for n in range(40))
        (tmp_path / name).write_text("t,x\n" + text)
    return tmp_path, files.csv(tmp_path)


def refusal(given: Any, at: bytes, name: str = "") -> str:
    with pytest.raises(IngestError) as caught:
        given.open(name, at)
    return str(caught.value)


def test_positions_of_others_are_refused_by_name(
    two_files: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, given = two_files
    at = blocks_of(given)[-1].at
    assert at is not None
    assert "it is of an input of kind 'csv'" in refusal(files.jsonl(folder / "*.csv"), at)
    table = memory.table({"t": [1, 2, 3]})
    assert "table of 3 rows: cannot be opened at this position" in refusal(table, at)
    said = refusal(files.csv(folder, types={"x": "float64"}), at)
    assert "it is of another csv input: its settings" in said
    said = refusal(memory.table({"t": [1, 2, 4]}), blocks_of(table)[0].at or b"")
    assert "it is of another table input" in said
    assert "is no position" in refusal(given, b"\xff?")
    assert "is no position" in refusal(given, b"7")
    newer = json.dumps([99, *json.loads(at)[1:]]).encode()
    assert "it is of version 99, and this release reads 2" in refusal(given, newer)
    assert "there is no partition 'x'" in refusal(given, at, "x")


def test_a_damaged_position_is_refused_whatever_was_changed(two_files: tuple[Path, Any]) -> None:
    _, given = two_files
    at = blocks_of(given)[-1].at
    assert at is not None
    given.open("", at).close()
    for place in range(len(at)):
        for bit in range(7):
            damaged = bytearray(at)
            damaged[place] ^= 1 << bit
            assert "cannot be opened at this position" in refusal(given, bytes(damaged))
    for other in (at + b" ", at[:-1], at.replace(b", ", b","), json.dumps([2, "csv"]).encode()):
        assert "cannot be opened at this position" in refusal(given, other)


def test_a_file_that_is_no_longer_as_it_was_is_refused_by_name(two_files: tuple[Path, Any]) -> None:
    folder, given = two_files
    at = blocks_of(given)[-1].at
    assert at is not None
    b = folder / "b.csv"
    before = b.read_text()
    b.write_text(before[:50])
    assert f"{b} has shrunk from {len(before)} to 50 bytes" in refusal(given, at)
    b.write_text(before + "9,9\n")
    assert f"{b} has changed since it was read" in refusal(given, at)
    b.write_text(before.replace("139", "138"))
    assert f"{b} has changed since it was read" in refusal(given, at)
    b.write_text(before)
    os.utime(b, ns=(0, 0))  # a copy on another node
    given.open("", at).close()
    (folder / "aa.csv").write_text("t,x\n1,1\n")
    said = refusal(given, at)
    assert f"it is in {b}, file 2, and it is {folder / 'aa.csv'} now" in said
    (folder / "aa.csv").unlink()
    b.unlink()
    assert "file 2, and there are 1 now" in refusal(given, at)


def test_files_that_a_plan_has_fixed_are_shifted_by_no_new_one(two_files: tuple[Path, Any]) -> None:
    folder, given = two_files
    planned = given.planned()
    at = blocks_of(planned)[-1].at
    (folder / "0.csv").write_text("t,x\n1,1\n")
    assert same(content(blocks_of(planned, at)), content(blocks_of(planned)[-1:]))


def test_an_input_that_is_read_once_is_refused_after_a_restart() -> None:
    class Once(type(memory.table({"t": [1]}))):  # type: ignore[misc]
        replay = "none"

        def open(self) -> Any:  # type: ignore[override]
            return super().open()

    given = Once(memory.table({"t": [1, 2]}).parts, pa.schema([("t", pa.int64())]))
    begun = machine(given)
    assert take(begun, 0).rows == 2
    again = machine(given)
    restore(again, save(begun))
    with pytest.raises(IngestError, match="is read once, and 2 rows had been read before"):
        take(again, 0)
