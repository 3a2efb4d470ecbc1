"""Options of `sw.csv` and `sw.jsonl`: what they read, and what is refused when they are given."""

from __future__ import annotations

import bz2
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slackwater.ingest import files, records
from slackwater.runtime.errors import IngestError, SchemaError, SettingError
from tests.support.readers import rows_of, types_of

SMALL = 64
"""Bytes of a piece, so that a test reaches its end."""


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "U8"])
@pytest.mark.parametrize("piece_bytes", [7, SMALL, 1 << 20])
def test_a_file_is_read_in_the_encoding_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", piece_bytes)
    text = "naïf,x\n" + 'é,"a\nü"\n' * 20
    path = written(tmp_path / "a.csv", text.encode(encoding))
    expected = [{"naïf": "é", "x": "a\nü"}] * 20
    assert rows_of(files.csv(path, encoding=encoding)) == expected
    lines = written(tmp_path / "a.jsonl", '{"x": "é"}\n{"x": "ü"}\n'.encode(encoding))
    assert rows_of(files.jsonl(lines, encoding=encoding)) == [{"x": "é"}, {"x": "ü"}]


@pytest.mark.parametrize(
    ("encoding", "bad"), [("cp1252", b"\x81"), ("shift_jis", b"\xc3\xa9\x81"), ("ascii", b"\xe9")]
)
def test_bytes_that_an_encoding_lacks_are_refused_by_line_and_column(
    tmp_path: Path, encoding: str, bad: bytes
) -> None:
    path = written(tmp_path / "a.csv", b"t,x\n1,a\n2,b" + bad + b"\n")
    if encoding == "shift_jis":
        path = written(tmp_path / "a.csv", b"t,x\n1,a\n2,b\x81\n")
    with pytest.raises(IngestError, match=f"line 3: column 'x' is not {encoding.upper()} text"):
        rows_of(files.csv(path, encoding=encoding))
    assert len(rows_of(files.csv(path, encoding=encoding, columns=["t"]))) == 2


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"sep": ";"}, "a;b\n1;x,y\n", [{"a": 1, "b": "x,y"}]),
        ({"sep": "\t"}, "a\tb\n1\t\"x\ty\"\n", [{"a": 1, "b": "x\ty"}]),
        ({"sep": "|", "quote": "'"}, "a|b\n1|'x|\"'\n", [{"a": 1, "b": 'x|"'}]),
        ({"quote": None}, 'a,b\n1,"x\n2,y"\n', [{"a": 1, "b": '"x'}, {"a": 2, "b": 'y"'}]),
        ({"header": False}, "1,x\n2,y\n", [{"f0": 1, "f1": "x"}, {"f0": 2, "f1": "y"}]),
        ({"header": ["a", "b"]}, "1,x\n", [{"a": 1, "b": "x"}]),
        ({"comment": "#"}, "# it's\na,b\n#1,2\n1,x#\n", [{"a": 1, "b": "x#"}]),
        ({"comment": "//"}, 'a,b\n// "\n1,"x\n// y"\n', [{"a": 1, "b": "x\n// y"}]),
        ({"sep": ";", "decimal": ","}, "a;b\n1,5;x\n-2;y\n", [
            {"a": 1.5, "b": "x"}, {"a": -2.0, "b": "y"}
        ]),
        ({"nulls": ["-", "x"]}, "a,b\n-,x\n2,y\n", [{"a": None, "b": None}, {"a": 2, "b": "y"}]),
        ({"nulls": []}, "a,b\n1,\n", [{"a": 1, "b": ""}]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("piece_bytes", [3, SMALL, 1 << 20])
def test_options_read_what_they_say(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    text: str,
    expected: list[dict[str, Any]],
    piece_bytes: int,
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", piece_bytes)
    types = {"a": "float64"} if "decimal" in options else None
    path = written(tmp_path / "a.csv", text)
    if piece_bytes == 3 and "nulls" in options:
        types = {"a": "int64", "b": "string"}  # the first piece shows less
    assert rows_of(files.csv(path, types=types, **options)) == expected


def test_a_decimal_comma_is_guessed_and_a_point_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "a;b;c\n1,5;1.5;1,50\n")
    given = files.csv(path, sep=";", decimal=",", types={"c": pa.decimal128(9, 2)})
    assert types_of(given) == {"a": "double", "b": "string", "c": "decimal128(9, 2)"}
    assert rows_of(given) == [{"a": 1.5, "b": "1.5", "c": Decimal("1.50")}]
    with pytest.raises(IngestError, match=r"line 2: column 'b': '1\.5' is no double"):
        rows_of(files.csv(path, sep=";", decimal=",", types={"b": "float64"}))


def test_an_unclosed_quote_costs_its_line_where_lines_are_records(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'a,b\n1,"x\n2,y\n3,"z"\n')
    with pytest.raises(IngestError, match="line 2: a quote is opened here and not closed in its"):
        rows_of(files.csv(path, newlines_in_values=False))
    path = written(tmp_path / "a.csv", 'a,b\n1,"x"\n2,y\n')
    assert len(rows_of(files.csv(path, newlines_in_values=False))) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sep": ",,"}, "sep=',,' must be one ASCII character"),
        ({"sep": "é"}, "sep='é' must be one ASCII character"),
        ({"sep": "\n"}, "must be one ASCII character"),
        ({"quote": ""}, "quote='' must be one ASCII character"),
        ({"quote": ","}, "sep=',' and quote=',' are one character"),
        ({"decimal": ","}, "sep=',' and decimal=',' are one character.*sep=';'"),
        ({"decimal": "x"}, "decimal='x' is not a decimal sign"),
        ({"comment": ""}, "comment='' cannot start a line"),
        ({"comment": '"#'}, "begins like a value"),
        ({"header": []}, r"header=\[\] must name each column"),
        ({"header": ["a", "a"]}, "has the name 'a' twice"),
        (
            {"header": "a"},
            r"header='a' must be True or False or a list of texts; write",
        ),
        ({"nulls": "NA"}, r"nulls='NA' must be a list of texts or None; write nulls=\['NA'\]"),
        ({"encoding": "latin7x"}, "encoding='latin7x' is not a text encoding"),
        ({"encoding": "hex"}, "encoding='hex' is not a text encoding"),
        ({"newlines_in_values": 1}, "newlines_in_values=1 must be True"),
        ({"on_bad": "drop"}, "on_bad='drop' must be 'error'"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_where_it_is_written(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        files.csv("a.csv", **options)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".lz4"])
def test_a_file_is_unpacked_by_its_suffix_and_refused_where_it_is_cut_off(
    tmp_path: Path, suffix: str
) -> None:
    for kind, text in (("csv", b"t\n1\n"), ("jsonl", b'{"t": 1}\n')):
        path = tmp_path / kind / f"a.{kind}{suffix}"
        path.parent.mkdir()
        path.write_bytes(packed(text, suffix))
        assert rows_of(getattr(files, kind)(path.parent)) == [{"t": 1}]
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(IngestError, match="cannot be read"):
            rows_of(getattr(files, kind)(path.parent, on_bad="skip"))


def packed(text: bytes, suffix: str) -> bytes:
    if suffix in (".gz", ".bz2"):
        return gzip.compress(text) if suffix == ".gz" else bz2.compress(text)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {".zst": "zstd", ".lz4": "lz4"}[suffix]) as file:
        file.write(text)
    return bytes(sink.getvalue())


def test_a_header_that_is_said_must_have_the_chosen_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "1,x\n")
    with pytest.raises(SchemaError, match="there is no column 'c'; there are: a, b"):
        files.csv(path, header=["a", "b"], columns=["c"]).schema()


@pytest.mark.parametrize("others", [["1.5"], ["", "1.5"], ["word"]])
def test_nan_is_null_whatever_is_beside_it(tmp_path: Path, others: list[str]) -> None:
    path = written(tmp_path / "a.csv", "\n".join(["t,x", "1,nan", *(f"2,{v}" for v in others)]))
    if "word" in others:
        with pytest.raises(IngestError, match="'word' is no double"):
            rows_of(files.csv(path, types={"x": "float64"}))
    else:
        assert rows_of(files.csv(path, types={"x": "float64"}))[0]["x"] is None


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst", "lz4"])
def test_a_packed_file_of_no_bytes_was_cut_off(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(b"")
    with pytest.raises(IngestError, match=r"cannot be read: it has no bytes.*write it again"):
        files.csv(path, types={"t": "int64"}).open().poll()
