"""Text files: values as they are written, or refused by file, line and column."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import files, record_walk, records
from slackwater.ingest.dialect import Dialect, Form
from slackwater.ingest.records import BadText, pieces
from slackwater.runtime.errors import IngestError
from tests.support.readers import rows_of, types_of

CSV_FORM = Dialect().form


def csv_of(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut where a test can reach it."""
    monkeypatch.setattr(records, "PIECE_BYTES", 64)
    monkeypatch.setattr(record_walk, "LONGEST_BYTES", 512)


# Quotes


@pytest.mark.parametrize("before", [0, 1, 40])
@pytest.mark.parametrize(
    "bad",
    [
        '7,"abc\n',
        '7,"abc\n8,de\n9,fg',
        '"7,abc\n8,"de"\n',
        '7,"say ""hi\n8,x\n',
        '7,"a\nb" c\n8,x\n',
    ],
)
def test_a_quote_that_is_not_closed_is_refused_by_its_line(
    tmp_path: Path, before: int, bad: str
) -> None:
    text = "t,x\n" + '1,"a ""b"", c"\n' * before + bad
    path = csv_of(tmp_path / "a.csv", text)
    with pytest.raises(IngestError, match=rf"a\.csv .*line {before + 2}: a quote is opened here"):
        rows_of(files.csv(path))


def test_quotes_that_are_closed_or_text_are_read(tmp_path: Path) -> None:
    text = 't,x\r\n1,5" pipe\r\n2,"a\r\nb"\n3,"say ""hi"""\n4,""\n5,"x"y"z\n6, "no"\n\n7,","\n'
    values = [row["x"] for row in rows_of(files.csv(csv_of(tmp_path / "a.csv", text)))]
    assert values == ['5" pipe', "a\r\nb", 'say "hi"', "", 'xy"z', ' "no"', ","]


@given(
    st.lists(
        st.lists(
            st.text(alphabet='a",\n', max_size=6).filter(lambda t: t.strip("\n") == t or '"' in t),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(40, 300),
)
def test_values_with_line_ends_are_read_wherever_a_piece_ends(
    rows: list[list[str]], size: int
) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(records, "PIECE_BYTES", size)
        path = csv_of(Path(folder) / "a.csv", written.getvalue())
        found = rows_of(files.csv(path, types={"a": "string", "b": "string"}))
    assert [list(row.values()) for row in found] == rows


@given(
    st.lists(st.sampled_from(["x,y", '"q",z', '"m\nn",k', '5" p,y', '"a""b",c\r', 'u,"', '"', ""])),
    st.integers(1, 40),
)
def test_where_a_piece_ends_decides_nothing(parts: list[str], size: int) -> None:
    found = []
    with TemporaryDirectory() as folder:
        path = csv_of(Path(folder) / "a.csv", "\n".join(["a,b", "1,2", *parts]))
        for piece_bytes in (size, 10**6):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(records, "PIECE_BYTES", piece_bytes)
                try:
                    found.append(rows_of(files.csv(path, types={"a": "string", "b": "string"})))
                except IngestError:
                    found.append([])
    assert found[0] == found[1]


@pytest.mark.parametrize("start", [0, 1, 17, 63])
def test_a_long_value_is_read_or_refused_by_its_length_alone(tmp_path: Path, start: int) -> None:
    for size, is_read in ((400, True), (600, False)):
        text = "t,x\n" + "1,\n" * start + '2,"' + "a\n" * (size // 2) + '"\n3,b\n'
        path = csv_of(tmp_path / "a.csv", text)
        if is_read:
            assert len(rows_of(files.csv(path))) == start + 2
            continue
        with pytest.raises(IngestError, match=rf"line {start + 2}: a quote is opened here, and a"):
            rows_of(files.csv(path))


def test_pieces_know_their_lines(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", "t,x\n" + '1,"a\nb"\n' * 30)
    lines = 1
    for piece in pieces(str(path), CSV_FORM):
        assert piece.line == lines
        lines += piece.data.count(b"\n")
    assert lines == 62
    with pytest.raises(BadText):
        list(pieces(str(csv_of(path, "x" * 600)), Form()))


# Numbers


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["0", "-0", "12", "-7"], "int64"),
        (["00501", "12"], "string"),
        (["12", "+48123"], "string"),
        ([" 00501", "12"], "string"),
        ([" 7", "12 "], "int64"),
        (["-007"], "string"),
        (["0x1F", "3"], "string"),
        (["0", "0.5", "-0.5", "1e5", ""], "double"),
        (["0.5", "00.5"], "string"),
        (["12345678901234567890", "1"], "uint64"),
        (["12345678901234567890", "-1"], "string"),
        (["123456789012345678901234567890"], "string"),
        (["9223372036854775808"], "uint64"),
        (["9223372036854775808", "", "1"], "uint64"),
        (["18446744073709551616"], "string"),
        (["-9223372036854775809"], "string"),
        (["-1", "9223372036854775808"], "string"),
        (["9223372036854775808", "0.5"], "double"),
        (["9007199254740993", "0.5"], "string"),
        (["9007199254740993.0"], "string"),
        (["1e400", "1"], "string"),
        (["-1e400"], "string"),
        (["1e-400", "0.5"], "string"),
        (["0.0", "0e5", "-0", "1e-300", "inf"], "double"),
        (["true", "1"], "string"),
        (["9007199254740992", "0.5", "1e300"], "double"),
        (["2024-01-01T10:00:00", "2024-01-01 10:00:00"], "timestamp[ns]"),
        (["true", "false"], "bool"),
    ],
    ids=str,
)
def test_a_guess_changes_no_value(tmp_path: Path, values: list[str], kind: str) -> None:
    path = csv_of(tmp_path / "a.csv", "t,x\n" + "".join(f"1,{value}\n" for value in values))
    given = files.csv(path)
    assert types_of(given)["x"] == kind
    found = [row["x"] for row in rows_of(given)]
    if kind == "string":
        assert found == values
    elif kind in ("int64", "uint64"):
        assert found == [int(value) if value else None for value in values]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("5", "00501"),
        ("5", "+5"),
        (" 5", " 00501"),
        ("5", "0.5"),
        ("5", "word"),
        ("5", "12345678901234567890"),
        ("0.5", "9007199254740993"),
        ("0.5", "0x1F"),
        ("2024-01-01", "word"),
        ("true", "3"),
    ],
)
@pytest.mark.parametrize("other", ["plain", "over\ntwo lines"])
def test_a_later_value_of_another_type_is_refused_by_line_and_column(
    tmp_path: Path, first: str, later: str, other: str
) -> None:
    text = "t,x,y\n" + f'1,{first},"{other}"\n\n' * 40 + f"2,{later},\n"
    path = csv_of(tmp_path / "a.csv", text)
    lines = text.count("\n")
    with pytest.raises(IngestError, match=rf"a\.csv .*line {lines}: column 'x'.*types=\{{'x': "):
        rows_of(files.csv(path))
    assert rows_of(files.csv(path, types={"x": "string"}))[-1]["x"] == later
    assert rows_of(files.csv(path, columns=["t"]))[-1] == {"t": 2}


def test_types_that_are_said_are_taken(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", "n,x,z\n00501, 9007199254740993 ,NA\n")
    given = files.csv(path, types={"n": "int64", "x": "float64", "z": "float64"})
    assert rows_of(given) == [{"n": 501, "x": 9007199254740992.0, "z": None}]


def test_a_column_of_nulls_is_read_by_nobody(tmp_path: Path) -> None:
    text = "t,x\n" + "1,\n" * 40 + "2,word\n"
    given = files.csv(csv_of(tmp_path / "a.csv", text))
    assert types_of(given) == {"t": "int64", "x": "null"}
    assert rows_of(given)[-1] == {"t": 2, "x": None}
    csv_of(tmp_path / "b.csv", "t,x\n1,0.5\n")
    csv_of(tmp_path / "a.csv", "t,x\n1,\n")
    assert types_of(files.csv(tmp_path / "*.csv")) == {"t": "int64", "x": "double"}


def test_a_record_of_another_length_is_refused_by_its_line(tmp_path: Path) -> None:
    text = 't,x\n1,"a\nb"\n' + "1,2\n\n" * 20 + "3\n"
    with pytest.raises(IngestError, match=r"line 44: 1 value, and the header names 2"):
        rows_of(files.csv(csv_of(tmp_path / "a.csv", text)))


# JSON


def json_of(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int64"),
        ([2**64 - 1, 1], "uint64"),
        ([0.5, 2**53], "double"),
        ([0.5, 2**53 + 1], "decimal256(76, 0)"),
        ([2**63], "uint64"),
        ([2**64], "decimal256(76, 0)"),
        ([-(2**63) - 1], "decimal256(76, 0)"),
        ([2**63, 0.5], "double"),
        ([2**64 + 1], "decimal256(76, 0)"),
        ([-1, 2**63 + 1], "decimal256(76, 0)"),
        (["00501"], "string"),
        ([[1]], "list<item: int64>"),
        ([1, "a"], "null"),
        ([None], "null"),
    ],
    ids=str,
)
def test_whole_numbers_of_json_are_exact_or_of_a_type_that_is_refused(
    tmp_path: Path, values: list[Any], kind: str
) -> None:
    given = files.jsonl(json_of(tmp_path / "a.jsonl", [{"t": 1, "x": value} for value in values]))
    assert types_of(given)["x"] == kind
    found = [row["x"] for row in rows_of(given)]
    if kind in ("int64", "uint64", "double", "string"):
        assert found == values
    else:
        assert len(found) == len(values)


@pytest.mark.parametrize(
    ("first", "later", "says"),
    [
        (5, 0.5, "column 'x' is int64 so far"),
        (5, "word", "column 'x' is int64 so far"),
        (5, 2**64, "column 'x' is int64 so far"),
        (0.5, 2**53 + 1, "column 'x': 9007199254740993 would be another"),
        ("2024-01-01T00:00:00", "word", "column 'x': 'word' is no timestamp"),
        (True, 1, "column 'x' is bool"),
    ],
)
def test_a_later_json_value_is_refused_by_line_and_column(
    tmp_path: Path, first: Any, later: Any, says: str
) -> None:
    rows = [{"t": 1, "x": first}] * 10 + [{"t": 2, "x": later}] + [{"t": 3, "x": first}]
    path = json_of(tmp_path / "a.jsonl", rows)
    path.write_text(path.read_text().replace('"t": 2', '\n"t": 2').replace('\n"t"', '"t"'))
    with pytest.raises(IngestError, match=rf"a\.jsonl .*line 11: {says}.*types="):
        rows_of(files.jsonl(path))
    assert len(rows_of(files.jsonl(path, columns=["t"]))) == 12


def test_json_columns_that_do_not_travel_may_change(tmp_path: Path) -> None:
    rows: list[Any] = [{"t": 1, "v": [1]}] * 10 + [{"t": 2, "v": {"a": 1}}, {"t": 3, "v": ["b"]}]
    path = json_of(tmp_path / "a.jsonl", rows)
    assert [row["t"] for row in rows_of(files.jsonl(path))] == [1] * 10 + [2, 3]
    json_of(path, [*rows, {"t": 4, "w": 1}])
    with pytest.raises(IngestError, match=r"line 13: field 'w' is new; .*columns="):
        rows_of(files.jsonl(path))


def test_an_object_over_two_lines_is_refused_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for before in (0, 1, 10):
        path.write_text('{"t": 1}\n' * before + '{"t":\n 2}\n')
        with pytest.raises(IngestError, match=rf"line {before + 1}: "):
            rows_of(files.jsonl(path))
    path.write_text('{"t": 1}\n{"t": 2}\n\n  \n{"t": 3}')
    assert [row["t"] for row in rows_of(files.jsonl(path))] == [1, 2, 3]


# Text


@pytest.mark.parametrize("before", [0, 30])
def test_text_that_is_no_utf8_is_refused_by_line_and_column(tmp_path: Path, before: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"t,x\n" + b"1,a\n" * before + b"2,caf\xe9\n")
    with pytest.raises(IngestError, match=rf"line {before + 2}: column 'x' is not UTF-8.*iconv"):
        rows_of(files.csv(path))
    assert len(rows_of(files.csv(path, columns=["t"]))) == before + 1
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"t": 1, "x": "a"}\n' * before + b'{"t": 2, "x": "caf\xe9"}\n')
    with pytest.raises(IngestError, match=rf"line {before + 1}: column 'x' is not UTF-8.*iconv"):
        rows_of(files.jsonl(path))
    assert len(rows_of(files.jsonl(path, columns=["t"]))) == before + 1


def test_names_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", b"t,caf\xe9\n1,2\n")
    with pytest.raises(IngestError, match="line 1: the names of the columns are not UTF-8"):
        files.csv(path).schema()
    path = csv_of(tmp_path / "a.jsonl", b'{"t": 1, "caf\xe9": 2}\n')
    with pytest.raises(IngestError, match=r"line 1: .*not UTF-8"):
        files.jsonl(path).schema()


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", '\ufeff"t",x\n1,2\n')
    assert rows_of(files.csv(path)) == [{"t": 1, "x": 2}]
    path = csv_of(tmp_path / "a.jsonl", '\ufeff{"t": 1}\n')
    assert rows_of(files.jsonl(path)) == [{"t": 1}]


@pytest.mark.parametrize("number", ["9007199254740993.0", "1e-400"])
def test_json_numbers_that_a_float_would_change_are_not_read(tmp_path: Path, number: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"x": 0.5}}\n{{"x": {number}}}\n')
    assert types_of(files.jsonl(path))["x"] == "decimal256(76, 0)"
    path.write_text('{"x": 0.5}\n' * 20 + f'{{"x": {number}}}\n')
    with pytest.raises(IngestError, match=rf"line 21: column 'x': {number} would be another"):
        rows_of(files.jsonl(path))


def test_two_objects_on_a_line_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n\n{"x": 1}{"x": 2}\n')
    with pytest.raises(IngestError, match="line 3: something follows its object"):
        rows_of(files.jsonl(path))


NAIVE, ZONED = "2024-01-01T10:00:00", "2024-01-01T10:00:00+02:00"


@pytest.mark.parametrize("said", [None, "timestamp[ms]", "timestamp[ms, tz=UTC]", "date32"])
@pytest.mark.parametrize(
    "values",
    [
        [NAIVE],
        [ZONED],
        [NAIVE, ZONED],
        ["2024-01-01T10:00:00Z", ZONED],
        ["1970-01-01T01:00:00.000000000+0100"],
        ["2024-01-01 10:00:00.5", NAIVE],
        ["2024-01-01"],
        ["2024-01-01", NAIVE],
        ["2500-01-01T00:00:00"],
        [NAIVE, "word"],
        ["word", NAIVE],
    ],
    ids=str,
)
def test_times_in_json_are_those_of_csv(
    tmp_path: Path, values: list[str], said: str | None
) -> None:
    lines = csv_of(tmp_path / "a.csv", "x\n" + "".join(f'"{value}"\n' for value in values))
    objects = json_of(tmp_path / "a.jsonl", [{"x": value} for value in values])
    types = None if said is None else {"x": said}
    found: list[Any] = []
    for read in (files.csv(lines, types=types), files.jsonl(objects, types=types)):
        try:
            found.append((types_of(read), rows_of(read)))
        except IngestError as problem:
            found.append(str(problem).split("line ")[1].split(":")[0])
    of_csv, of_json = found
    assert of_json == (of_csv if isinstance(of_csv, tuple) else str(int(of_csv) - 1))
