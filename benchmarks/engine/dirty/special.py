"""Cases that are drawn once each: cut files, long records, names, folders, differing columns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import slackwater as sw
from benchmarks.engine.dirty.cases import START, Case, Row

MIB = 1 << 20


def special_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases, whose files are written below the folder."""
    for make in (whole_files, no_objects, late_faults, names, differing, folders, endings):
        place = folder / make.__name__
        place.mkdir()
        yield from make(place)


def _put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _case(
    name: str,
    read: Callable[..., Any],
    path: Path,
    rows: list[Row] | None = None,
    *,
    refused: str = "",
    bad: int = 0,
    **options: Any,
) -> Case:
    return Case(name, lambda: read(path, **options), rows=rows, refused=refused, bad=bad)


def whole_files(folder: Path) -> Iterator[Case]:
    """Yield files that are empty, cut off, or of bad records alone."""
    types = {"t": "int64", "x": "string"}
    empty = _put(folder / "empty.csv", "")
    yield _case("empty", sw.csv, empty, refused="no file has rows that show types")
    yield _case("empty, types said", sw.csv, empty, [], types=types)
    header = _put(folder / "header.csv", "t,x")
    yield _case("only header", sw.csv, header, [])
    packed = gzip.compress("".join(f"{n},a\n" for n in range(9_999)).encode())
    cut = _put(folder / "cut.csv.gz", packed[: len(packed) // 2])
    for on_bad in ("error", "skip"):
        refused = "cannot be read: Truncated"
        yield _case("cut off", sw.csv, cut, refused=refused, header=["t", "x"], on_bad=on_bad)
    bad = _put(folder / "bad.csv", "t,x\n" + '7,"a\n' * 500)
    yield _case("bad records alone", sw.csv, bad, [], bad=500, types=types, on_bad="skip")
    quoted = _put(folder / "quoted.csv", 't,x\n1,"' + "a" * 17 * MIB + '"\n2,b\n')
    two = [{"t": 2, "x": "b"}]
    yield _case("a long value", sw.csv, quoted, two, bad=1, types=types, on_bad="skip")
    yield _case("a long value", sw.csv, quoted, refused="longer than 16 MiB", types=types)
    nul = _put(folder / "nul.csv", b"t,x\n1,a\x00b\n")
    yield _case("NUL", sw.csv, nul, [{"t": 1, "x": "a\x00b"}])
    bytes_ = _put(folder / "bytes.csv", b"t,x\n1,caf\xe9\n2,b\n")
    yield _case("bytes", sw.csv, bytes_, two, bad=1, on_bad="divert")
    yield _case("bytes", sw.csv, bytes_, refused="line 2: column 'x' is not UTF-8 text")


def no_objects(folder: Path) -> Iterator[Case]:
    """Yield lines of JSON that are no object, alone and before good ones."""
    deep = '{"t": ' + "[" * 20_000 + "]" * 20_000 + "}"
    good: list[Row] = [{"t": 1}, {"t": 2}]
    for number, line in enumerate(["null", " null", "7", '"x"', "[1]", "[null]", deep]):
        path = _put(folder / f"{number}.jsonl", f'{line}\n{{"t": 1}}\n{line}\n{{"t": 2}}\n')
        yield _case(f"no object {line[:9]}", sw.jsonl, path, good, bad=2, on_bad="skip")
        refused = "line 1: " if line[0] != "[" else "one JSON array"
        yield _case(f"no object {line[:9]}", sw.jsonl, path, refused=refused)
        alone = _put(folder / f"{number}-alone.jsonl", f"{line}\n")
        types = {"t": "int64"}
        yield _case(f"{line[:9]} alone", sw.jsonl, alone, [], bad=1, types=types, on_bad="skip")


def late_faults(folder: Path) -> Iterator[Case]:
    """Yield files with another type after the megabyte that shows types."""
    many = 200_000
    lines = [f"{START + n},{n}\n" for n in range(many)]
    late = _put(folder / "late.csv", "t,x\n" + "".join(lines) + f"{START},word\n")
    rows = [{"t": START + n, "x": n} for n in range(many)]
    says = rf"line {many + 2}: column 'x': 'word' is no int64"
    yield _case("a late word", sw.csv, late, refused=says)
    yield _case("a late word", sw.csv, late, rows, bad=1, on_bad="skip")
    text = "".join(f'{{"t": {START + n}, "x": {n}}}\n' for n in range(many))
    mixed = _put(folder / "late.jsonl", text + '{"t": 1, "x": "word"}\n')
    yield _case("a late word", sw.jsonl, mixed, refused=rf"line {many + 1}: column 'x' is int64")
    yield _case("a late word", sw.jsonl, mixed, rows, bad=1, on_bad="divert")
    field = _put(folder / "field.jsonl", text + '{"t": 1, "y": 2}\n')
    yield _case("a late field", sw.jsonl, field, refused="field 'y' is new")
    yield _case("a late field", sw.jsonl, field, rows, bad=1, on_bad="skip")


def names(folder: Path) -> Iterator[Case]:
    """Yield headers that are wrong."""
    twice = _put(folder / "twice.csv", "t,x,x\n1,2,3\n")
    yield _case("a name twice", sw.csv, twice, refused="column name 'x' occurs 2 times")
    yield _case("a name twice", sw.csv, twice, [{"t": 1}], columns=["t"])
    for on_bad in ("error", "skip"):
        says = "there is no column 'z'"
        yield _case("no column", sw.csv, twice, refused=says, columns=["z"], on_bad=on_bad)
        quote = _put(folder / "quote.csv", 't,"x\n1,2\n')
        yield _case("a header's quote", sw.csv, quote, refused="line 1: a quote", on_bad=on_bad)
    unnamed = _put(folder / "unnamed.csv", ",t\n5,1\n")
    yield _case("no name", sw.csv, unnamed, [{"": 5, "t": 1}])
    yield _case("no name", sw.csv, unnamed, [{"": 5.0}], columns=[""], types={"": "float64"})
    nested: list[Row] = [{"t": 1, "v": [1, 2]}, {"t": 2, "v": None}]
    path = _put(folder / "nested.jsonl", "".join(json.dumps(row) + "\n" for row in nested))
    yield _case("lists", sw.jsonl, path, nested, types={"v": pa.list_(pa.int64())})
    path = _put(folder / "lists.jsonl", '{"t":1,"v":[1]}\n{"t":2,"v":["a"]}\n{"t":3,"v":7}\n')
    rows = [{"t": 1, "v": [1]}]
    types = {"t": "int64", "v": pa.list_(pa.int64())}
    yield _case("lists", sw.jsonl, path, rows, bad=2, types=types, on_bad="skip")


def differing(folder: Path) -> Iterator[Case]:
    """Yield two files with other columns."""
    for kind, one, other in (
        ("csv", "t,x\n1,a\n", "t,y\n2,5\n"),
        ("jsonl", '{"t": 1, "x": "a"}\n', '{"t": 2, "y": 5}\n'),
    ):
        place = folder / kind
        _put(place / f"1.{kind}", one)
        _put(place / f"2.{kind}", other)
        read = getattr(sw, kind)
        union: list[Row] = [{"t": 1, "x": "a", "y": None}, {"t": 2, "x": None, "y": 5}]
        first: list[Row] = [{"t": 1, "x": "a"}, {"t": 2, "x": None}]
        yield _case("union", read, place, union, schema="union")
        yield _case("first", read, place, first, schema="first")
        yield _case("differing", read, place, refused=rf"2\.{kind}")


def folders(folder: Path) -> Iterator[Case]:
    """Yield files in hive folders."""
    for region, value in (("e%20u", 1), ("__HIVE_DEFAULT_PARTITION__", 2)):
        _put(folder / f"region={region}" / "a.csv", f"t\n{value}\n")
    rows: list[Row] = [{"t": 2, "region": None}, {"t": 1, "region": "e u"}]
    yield _case("hive", sw.csv, folder, rows)
    yield _case("no hive", sw.csv, folder, [{"t": 2}, {"t": 1}], hive=False)
    types = {"region": "int64"}
    yield _case("hive, wrong type", sw.csv, folder, refused="is not of type int64", types=types)


def endings(folder: Path) -> Iterator[Case]:
    """Yield a folder of files with endings in capitals, and of others."""
    _put(folder / "A.CSV", "t\n1\n")
    _put(folder / "b.csv", "t\n2\n")
    _put(folder / "c.Csv.GZ", gzip.compress(b"t\n3\n"))
    for name in ("d.csv.xz", "e.parq", "f"):
        _put(folder / name, b"\xfd7zXZ")
    yield _case("endings", sw.csv, folder, [{"t": 1}, {"t": 2}, {"t": 3}])
    yield _case("endings", sw.csv, folder / "*.csv", [{"t": 2}])
