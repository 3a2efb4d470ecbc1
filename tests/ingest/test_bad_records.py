"""`on_bad`: bad records are left out and reported, and all others are read."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import files, record_walk, records, salvage
from slackwater.ingest.inputs import FileInput
from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.expressions.result_types import type_read
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows
from tests.support.readers import next_rows

TYPES = {"t": "int64", "x": "float64"}


def sorted_out(given: FileInput) -> tuple[list[dict[str, Any]], list[tuple[int, str, str]]]:
    """Return good rows, and (line, reason, text) of bad ones."""
    good, bad, reader = [], [], given.open()
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        if isinstance(polled, BadRows):
            rows = polled.rows.to_pylist()
            bad += [(row["line"], row["reason"], row["text"]) for row in rows]
        else:
            good += polled.to_pylist()
    return good, bad


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


CSV_BAD = [
    ("3", "1 value, and the header names 2"),
    ("3,4,5", "3 values, and the header names 2"),
    ("abc,1", "column 't': 'abc' is no int64"),
    ("1,1.2.3", "column 'x': '1.2.3' is no double"),
    ("99999999999999999999,1", "column 't': '99999999999999999999' is no int64"),
    ('7,"8', "a quote is opened here"),
]


@pytest.mark.parametrize(("line", "why"), CSV_BAD, ids=str)
@pytest.mark.parametrize("piece_bytes", [16, 1 << 20])
def test_a_bad_record_of_csv_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", piece_bytes)
    path = written(tmp_path / "a.csv", f"t,x\n1,0.5\n\n{line}\n2,1.5\n3,2.5\n")
    good, bad = sorted_out(files.csv(path, types=TYPES, on_bad="skip"))
    assert [row["t"] for row in good] == [1, 2, 3]
    assert [(at, text) for at, _, text in bad] == [(4, line)]
    assert bad[0][1].startswith(why)
    with pytest.raises(IngestError, match=r"a\.csv"):
        sorted_out(files.csv(path, types=TYPES))


JSON_BAD = [
    ("{", "no JSON: "),
    ("nonsense", "no JSON: "),
    ("[1]", "no JSON object: [1]"),
    ('{"t": "a"}', "column 't': 'a' is no int64"),
    ('{"t": 1.5}', "column 't': 1.5 is no int64"),
    ('{"t": true}', "column 't': True is no int64"),
    ('{"t": 99999999999999999999}', "column 't': 99999999999999999999 is no int64"),
    ('{"t": NaN}', "column 't': nan is no int64"),
    ('{"t": Inf}', "Failed to convert JSON to int64"),
    ('{"t": 1} {"t": 2}', "something follows its object"),
    ('{"t": 4, "at": "word"}', "column 'at': 'word' is no timestamp[ns]"),
]


@pytest.mark.parametrize(("line", "why"), JSON_BAD, ids=str)
@pytest.mark.parametrize("piece_bytes", [16, 1 << 20])
def test_a_bad_line_of_json_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", piece_bytes)
    first = '{"t": 1, "at": "2024-01-01T00:00:00"}'
    path = written(tmp_path / "a.jsonl", f'{first}\n\n{line}\n{{"t": 2}}\n{{"t": 3}}\n')
    types = {"t": "int64", "at": "timestamp[ns]"}
    good, bad = sorted_out(files.jsonl(path, types=types, on_bad="divert"))
    assert [row["t"] for row in good] == [1, 2, 3]
    assert [(at, text) for at, _, text in bad] == [(3, line)]
    assert bad[0][1].startswith(why)
    with pytest.raises(IngestError, match=r"a\.jsonl"):
        sorted_out(files.jsonl(path, types=types))


@pytest.mark.parametrize("neighbour", ["2", "abc"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_decimal_of_too_many_digits_costs_its_record_alone(
    tmp_path: Path, kind: str, neighbour: str
) -> None:
    values = ["1.5", "99999999", "1e30", "1.234", neighbour, "3"]
    if kind == "csv":
        path = written(tmp_path / "a.csv", "x\n" + "\n".join(values))
    else:
        quoted = [f'"{one}"' if one == "abc" else one for one in values]
        path = written(tmp_path / "a.jsonl", "".join(f'{{"x": {one}}}\n' for one in quoted))
    given = getattr(files, kind)(path, types={"x": "decimal128(8, 2)"}, on_bad="divert")
    good, bad = sorted_out(given)
    is_bad = {"99999999", "1e30", "1.234", "abc"}
    assert [row["x"] for row in good] == [Decimal(one) for one in values if one not in is_bad]
    assert [why for _, why, _ in bad] == [
        f"column 'x': {one!r} is no decimal128(8, 2)" for one in values if one in is_bad
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_bytes_that_are_no_text_cost_their_record_where_they_are_read(
    tmp_path: Path, kind: str
) -> None:
    text = {
        "csv": b"t,x\n1,a\n2,caf\xe9\n3,c\n",
        "jsonl": b'{"t":1,"x":"a"}\n{"t":2,"x":"caf\xe9"}\n{"t":3,"x":"c"}\n',
    }[kind]
    path = written(tmp_path / f"a.{kind}", text)
    read = getattr(files, kind)
    good, bad = sorted_out(read(path, on_bad="skip"))
    assert [row["t"] for row in good] == [1, 3]
    assert bad[0][1] == "column 'x' is not UTF-8 text"
    assert "caf�" in bad[0][2]
    assert len(sorted_out(read(path, on_bad="skip", columns=["t"]))[0]) == 3
    assert len(sorted_out(read(path, on_bad="skip", encoding="latin1"))[0]) == 3


def test_nan_in_json_is_a_number_whatever_is_beside_it(tmp_path: Path) -> None:
    for beside in ("", '{"x": "word"}\n'):
        path = written(tmp_path / "a.jsonl", '{"x": 0.5}\n{"x": NaN}\n' + beside)
        good, bad = sorted_out(files.jsonl(path, types={"x": "float64"}, on_bad="skip"))
        assert (str(good), len(bad)) == ("[{'x': 0.5}, {'x': nan}]", len(beside) and 1)


@pytest.mark.parametrize("blank", ["\n", " \n", "\r\n", "\t\n"])
def test_two_objects_on_a_line_are_bad_beside_blank_lines(tmp_path: Path, blank: str) -> None:
    path = written(tmp_path / "a.jsonl", '{"t": 1} {"t": 2}\n' + blank + '{"t": 3}\n')
    with pytest.raises(IngestError, match="line 1: something follows its object"):
        sorted_out(files.jsonl(path))


def test_records_of_bytes_are_bad_without_a_word_on_stderr(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "a.csv", b"t,x\n1,2\n\xff\xfe\n\x80,3,4\n")
    with pytest.raises(IngestError, match=r"line 3: 1 value, and the header names 2"):
        files.csv(path).schema()
    good, bad = sorted_out(files.csv(path, on_bad="skip"))
    assert (good, [line for line, _, _ in bad]) == ([{"t": 1, "x": 2}], [3, 4])
    assert capfd.readouterr().err == ""


def test_bad_records_of_the_first_megabyte_do_not_hide_types(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "t,x\n1\n1,2,3\n" + "7,0.5\n" * 3)
    assert sorted_out(files.csv(path, on_bad="skip"))[0] == [{"t": 7, "x": 0.5}] * 3
    path = written(tmp_path / "a.jsonl", '{"t": \n{"t": 7}\n')
    assert sorted_out(files.jsonl(path, on_bad="skip"))[0] == [{"t": 7}]


CUT = ['{"t": 1, "v": 1}', '{"t": 2, "v":', '{"t": 3, "v": 3.5}']
OTHER = ['{"t": 1, "v": "x"}', '{"t": 2, "v": 2}', '{"t": 3, "v": 3.5}']


@pytest.mark.parametrize(("lines", "bad_line"), [(CUT, 2), (OTHER, 1)], ids=["cut", "other"])
def test_a_guess_of_json_looks_at_good_records_only(
    tmp_path: Path, lines: list[str], bad_line: int
) -> None:
    path = written(tmp_path / "a.jsonl", "\n".join([*lines, ""]))
    for on_bad in ("skip", "divert"):
        good, bad = sorted_out(files.jsonl(path, on_bad=on_bad))  # type: ignore[arg-type]
        left = [text for line, text in enumerate(lines, 1) if line != bad_line]
        assert good == [json.loads(text) for text in left]
        assert [line for line, _, _ in bad] == [bad_line]


def test_a_cut_off_line_of_json_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", "\n".join([*CUT, ""]))
    with pytest.raises(IngestError, match=r"a\.jsonl .*line 2: no JSON: .* at character"):
        files.jsonl(path).schema()


@pytest.mark.parametrize("value", ["2", '{"a": "x"}', "[1]"])
def test_json_values_of_several_types_are_refused_by_line_where_read(
    tmp_path: Path, value: str
) -> None:
    first = '{"a": 1}' if "a" in value else '"x"'
    lines = [f'{{"t": 1, "v": {first}}}', "", f'{{"t": 2, "v": {value}}}', ""]
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    given = files.jsonl(path)
    assert [row["t"] for row in sorted_out(given)[0]] == [1, 2]
    with pytest.raises(SchemaError, match=r"'v' has values .*a\.jsonl, line 3: .*types=\{'v': "):
        type_read(given.schema().field("v"), step="s")


@pytest.mark.parametrize("text", ["t,y\n1,2\n", 't,"x\n1,2\n'])
def test_a_wrong_header_is_an_error_always(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "a.csv", text)
    with pytest.raises((IngestError, SchemaError)):
        sorted_out(files.csv(path, columns=["t", "x"], on_bad="skip"))


@pytest.mark.parametrize("header", [True, False])
def test_a_file_of_bad_records_ends_and_reports_each(tmp_path: Path, header: bool) -> None:
    lines = ['1,"abc'] * 5
    path = written(tmp_path / "a.csv", "\n".join((["t,x"] if header else []) + lines) + "\n")
    types = {"t": "int64", "x": "string"} if header else {"f0": "int64"}
    good, bad = sorted_out(files.csv(path, header=header, types=types, on_bad="skip"))
    assert (len(good), len(bad)) == (0, 5)


@pytest.mark.parametrize(
    ("kind", "line", "good"), [("csv", "oops", "1,1"), ("jsonl", '{"t": "x"}', '{"t": 1, "x": 1}')]
)
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
def test_one_poll_judges_a_part_of_a_piece_of_bad_records(
    tmp_path: Path, kind: str, line: str, good: str, on_bad: OnBad
) -> None:
    lines = [good, *[line] * 30_000, good]
    text = "\n".join(["t,x", *lines] if kind == "csv" else lines) + "\n"
    path = written(tmp_path / f"a.{kind}", text)
    read = getattr(files, kind)(path, types={"t": "int64", "x": "int64"}, on_bad=on_bad)
    reader, bad, rows = read.open(), list[int](), 0
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        if isinstance(polled, BadRows):
            bad.append(len(polled.rows))
        else:
            rows += len(polled)
    assert (sum(bad), rows) == (30_000, 2)
    assert max(bad) <= 8_192


@pytest.mark.parametrize("most", [1, 2, 5, 100])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_diverted_records_stay_in_their_places_whatever_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    monkeypatch.setattr(salvage, "_MOST_RECORDS", most)
    csv = ["1,a", "2", '3,"b', "4,c", "x,d", "", '5,"e', "6", "7,f"]
    jsonl = ['{"t": 1}', "x", '{"t": "y"}', '{"t": 4}', "z", "", "[]", "5", '{"t": 7}']
    text = "\n".join(["t,x", *csv] if kind == "csv" else jsonl) + "\n"
    path = written(tmp_path / f"a.{kind}", text)
    types = {"t": "int64", "x": "string"} if kind == "csv" else {"t": "int64"}
    reader = getattr(files, kind)(path, types=types, on_bad="divert").open()
    first, order = 2 if kind == "csv" else 1, list[Any]()
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        if isinstance(polled, BadRows):
            order += [("bad", line - first) for line in polled.rows["line"].to_pylist()]
        else:
            order += [("good", t) for t in polled["t"].to_pylist()]
    bad = [("bad", at) for at in (1, 2, 4, 6, 7)]
    assert order == [("good", 1), *bad[:2], ("good", 4), *bad[2:], ("good", 7)]


MANY = 30_000


@pytest.mark.parametrize(
    ("kind", "line", "types"),
    [
        ("csv", "word{n},1", {"t": "int64"}),
        ("csv", "word{n},1", {"t": "timestamp[ns]"}),
        ("csv", "{n},1", {"t": "decimal128(3, 2)"}),
        ("csv", "{n}", {"t": "int64"}),
        ("csv", '{n},"x', {"t": "int64"}),
        ("jsonl", '{{"t": {n},', {"t": "int64"}),
        ("jsonl", '{{"t": "word{n}"}}', {"t": "int64"}),
        ("jsonl", '{{"t": "word{n}"}}', {"t": "timestamp[ns]"}),
        ("jsonl", '{{"t": {n}}}', {"t": "decimal128(3, 2)"}),
    ],
    ids=str,
)
def test_many_thousand_bad_records_end_in_linear_time(
    tmp_path: Path, kind: str, line: str, types: dict[str, str]
) -> None:
    many = MANY // 3 if "decimal" in types["t"] else MANY  # each of which is cast alone
    lines = [line.format(n=n + 10**6) for n in range(many)]
    text = "\n".join(["t,x", *lines] if kind == "csv" else lines) + "\n"
    path = written(tmp_path / f"a.{kind}", text)
    begin = time.process_time()
    good, bad = sorted_out(getattr(files, kind)(path, types=types, on_bad="skip"))
    assert (len(good), len(bad)) == (0, many)
    assert [text for _, _, text in bad[::2_999]] == lines[::2_999]
    assert time.process_time() - begin < 20  # seconds of CPU; quadratic work takes many minutes


@given(
    st.lists(
        st.sampled_from(
            ["1,a", "2,b", "3", "4,d,e", "x,f", '5,"g', '6,"h"', '7,"i\nj"', '8,"k""l"', "", "9,é"]
        ),
        max_size=30,
    ),
    st.integers(1, 200),
)
def test_where_a_piece_ends_decides_nothing_about_bad_records(parts: list[str], size: int) -> None:
    found = []
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "a.csv", "\n".join(["t,x", *parts]))
        for piece_bytes, most in ((size, 10**4), (10**6, 10**4), (10**6, size % 7 + 1)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(records, "PIECE_BYTES", piece_bytes)
                patch.setattr(salvage, "_MOST_RECORDS", most)
                given = files.csv(path, types={"t": "int64", "x": "string"}, on_bad="skip")
                found.append(sorted_out(given))
    assert found[0] == found[1] == found[2]
    lines = [line for line, _, _ in found[0][1]]
    assert lines == sorted(set(lines))


@given(st.lists(st.sampled_from(['1,"a', "2,b", '3,c"', '4,""', '5,"""d"', '"', '6,"e"'])))
def test_lines_as_records_are_good_or_bad_each_alone(parts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "a.csv", "\n".join(["t,x", *parts]))
        given = files.csv(
            path,
            types={"t": "int64", "x": "string"},
            on_bad="skip",
            newlines_in_values=False,
        )
        good, bad = sorted_out(given)
    assert len(good) + len(bad) == len(parts)


@given(st.lists(st.sampled_from([{"t": 1}, {"t": "x"}, {"t": None}, [], {"t": 2.5}, {"t": 2**70}])))
def test_good_and_bad_lines_of_json_are_all_lines(values: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        text = "\n".join(json.dumps(value) for value in values)
        path = written(Path(folder) / "a.jsonl", text)
        good, bad = sorted_out(files.jsonl(path, types={"t": "int64"}, on_bad="skip"))
    fits = [value for value in values if value in ({"t": 1}, {"t": None})]
    assert good == fits
    assert len(good) + len(bad) == len(values)


def test_a_long_record_is_bad_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 64)
    monkeypatch.setattr(record_walk, "LONGEST_BYTES", 512)
    monkeypatch.setattr(record_walk, "KEPT_BYTES", 10)
    for long in ("2," + "a" * 2_000, '2,"' + "a" * 2_000 + '"', '2,"' + "a" * 2_000):
        path = written(tmp_path / "a.csv", f"t,x\n1,b\n{long}\n3,c\n")
        good, bad = sorted_out(files.csv(path, on_bad="skip"))
        assert [row["t"] for row in good] == [1, 3]
        assert [(line, text) for line, _, text in bad] == [(3, long[:10])]
        assert "longer than" in bad[0][1]


def test_lines_of_rows_after_bad_ones_are_theirs(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 't,x\n1,a\nbad\n2,"b\nc"\n\nbad\n3,d\n')
    reader = files.csv(path, on_bad="skip").open()
    while reader.poll() is not END_OF_INPUT:
        pass
    assert [reader.line_of(row) for row in range(4)] == [2, 4, 8, None]


JSON_LINES = {
    b'{"t": 1, "x": 1.5, "s": "a"}': True,
    b'{"t": 1, "x": "a", "s": "a"}': False,
    b'{"t": 1, "x": 1.5, "s": "\xff"}': False,
    b'{"t": 1, "x": 1.5, "s": "\\ud83d"}': False,
    b'{"t": 1, "x": 1.5, "s": 5}': False,
    b"[1]": False,
    b'{"t": 1': False,
}
CSV_LINES = {
    b"1,1.5,a": True,
    b"1,b,a": False,
    b"c,1.5,a": False,
    b"1,1.5,\xff": False,
    b"1,1.5": False,
}


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@given(data=st.data())
def test_the_error_of_a_file_names_its_first_bad_line(kind: str, data: st.DataObject) -> None:
    """One of another kind stands after it: they are found in different ways."""
    lines = JSON_LINES if kind == "jsonl" else CSV_LINES
    drawn = data.draw(st.lists(st.sampled_from(list(lines)), min_size=1, max_size=6))
    first = next((n for n, line in enumerate(drawn) if not lines[line]), None)
    head = [] if kind == "jsonl" else [b"t,x,s"]
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "bad", b"\n".join([*head, *drawn]) + b"\n")
        read = getattr(files, kind)(str(path), types=TYPES | {"s": "string"})
        if first is None:
            assert len(sorted_out(read)[0]) == len(drawn)
            return
        with pytest.raises(IngestError, match=rf"line {first + len(head) + 1}\b"):
            sorted_out(read)
