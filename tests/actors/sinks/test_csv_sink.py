"""CSV files: their text, nulls, quotes and headers, and that `sw.csv` reads them back."""

from __future__ import annotations

import base64
import csv
import io
import string
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.actors.sinks.csv_text import CsvText
from slackwater.actors.sinks.file_settings import PLAIN_CSV, CsvFormat
from slackwater.runtime.errors import SettingError, SinkError
from slackwater.runtime.model.json_text import as_json, plain, rows_as_json, values_as_json
from slackwater.runtime.model.schema import is_text
from tests.contract.test_types import NESTED, PLAIN, TYPES
from tests.contract.test_types import rows as rows_of_types
from tests.support.flows import simulated
from tests.support.readers import rows_of
from tests.support.sinks import Driven, opened, rows, seen, shown, write_all

BYTES = ("bytes", "large", "fixed")
AS_TEXT = (*BYTES, *NESTED, "named")
TEXTS = st.text(st.sampled_from(["a", "é", ",", ";", '"', "\n", "\r", " ", "N", "0", "\ufeff"]))


def text_of(table: pa.Table, form: CsvFormat = PLAIN_CSV, *, batch: int = 2) -> str:
    text = CsvText(table.schema, form)
    lines = b"".join(map(text.lines, table.to_batches(max_chunksize=batch)))
    return (text.header + lines).decode()


def written(place: Path, table: pa.Table, **options: Any) -> Path:
    sink = Driven(sw.csv_sink(place, **options), table.schema)
    for batch in table.to_batches(max_chunksize=2):
        sink.write(batch)
    sink.close()
    return place


def test_each_type_has_its_text() -> None:
    time_ns = 1_706_745_600_123_456_789
    table = pa.table(
        {
            "utc": pa.array([time_ns], pa.timestamp("ns", tz="UTC")),
            "bare": pa.array([time_ns], pa.timestamp("ns")),
            "there": pa.array([time_ns], pa.timestamp("ns", tz="Europe/Berlin")),
            "clock": pa.array([1], pa.time64("ns")),
            "day": pa.array([19_754], pa.date32()),
            "waits": pa.array([5], pa.duration("ms")),
            "whole": pa.array([3.0]),
            "tenth": pa.array([0.1], pa.float32()),
            "far": pa.array([float("-inf")]),
            "large": pa.array([2**64 - 1], pa.uint64()),
            "price": pa.array(["1.50"]).cast(pa.decimal128(10, 2)),
            "is_late": pa.array([True]),
            "bytes": pa.array([b"\xff\x00"]),
            "list": pa.array([[1.0, float("inf")]]),
            "text": pa.array(["żółw 🐢"]).dictionary_encode(),
        }
    )
    header, line, end = text_of(table).split("\n")
    assert header.split(",") == table.column_names
    assert (line, end) == (
        "2024-02-01T00:00:00.123456789Z,2024-02-01T00:00:00.123456789,"
        "2024-02-01T01:00:00.123456789+0100,00:00:00.000000001,2024-02-01,5ms,3.0,0.1,-inf,"
        '18446744073709551615,1.50,true,/wA=,"[1.0, null]",żółw 🐢',
        "",
    )


def test_a_decimal_has_all_its_digits_in_every_text() -> None:
    prices = pa.array([Decimal("0E-10"), Decimal("-1E-10"), None], pa.decimal128(20, 10))
    table = pa.table({"price": prices, "list": pa.array([[one] for one in prices.to_pylist()])})
    zero, least = "0.0000000000", "-0.0000000001"
    lines = [f'{zero},"[""{zero}""]"', f'{least},"[""{least}""]"', ",[null]"]
    assert text_of(table).split("\n")[1:-1] == lines
    assert rows_as_json(table.to_batches()[0])[:2] == [
        f'{{"price": "{digits}", "list": ["{digits}"]}}' for digits in (zero, least)
    ]
    assert values_as_json({"price": prices[1].as_py()}) == f'{{"price": "{least}"}}'


def test_a_null_is_nothing_empty_text_has_quotes_and_the_null_text_is_quoted_in_values() -> None:
    table = pa.table({"t": ["", None, "NA", "x"], "n": [1, None, 3, 4]})
    assert text_of(table) == 't,n\n"",1\n,\nNA,3\nx,4\n'
    assert text_of(table, CsvFormat(nulls="NA")) == 't,n\n"",1\nNA,NA\n"NA",3\nx,4\n'
    assert text_of(table, CsvFormat(nulls="3")) == 't,n\n"",1\n3,3\nNA,"3"\nx,4\n'


def test_a_row_of_one_null_is_no_empty_line_that_readers_omit(tmp_path: Path) -> None:
    table = pa.table({"n": [1, None, 3]})
    assert text_of(table, CsvFormat(header=False)) == '1\n""\n3\n'
    assert rows_of(sw.csv(written(tmp_path / "n.csv", table))) == table.to_pylist()


@given(st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=6), st.sampled_from(",; |\t^]-\\a0."))
def test_pythons_reader_finds_every_text_with_any_separator(
    values: list[tuple[str, str | None]], sep: str
) -> None:
    names, numbers = ["a b", f"x{sep}y", 'q"'], [1.5, None]
    columns = [pa.array([one[at] for one in values], pa.string()) for at in (0, 1)]
    columns.append(pa.array([numbers[at % 2] for at in range(len(values))], pa.float64()))
    found = csv.reader(
        io.StringIO(text_of(pa.table(columns, names), CsvFormat(sep=sep)), newline=""),
        delimiter=sep,
    )
    expected = [[a, b or "", "" if at % 2 else "1.5"] for at, (a, b) in enumerate(values)]
    assert list(found) == [names, *expected]


def test_every_separator_that_is_taken_separates() -> None:
    taken = 0
    table = pa.table({"a": [string.printable], "n": [-1.5], "t": pa.array([0], pa.timestamp("ns"))})
    for sep in map(chr, range(128)):
        try:
            form = sw.csv_sink("out", sep=sep).csv
        except SettingError:
            continue
        taken += 1
        found = list(csv.reader(io.StringIO(text_of(table, form), newline=""), delimiter=sep))
        assert found[1] == [string.printable, "-1.5", "1970-01-01T00:00:00.000000000"], sep
    assert taken == 128 - len('"\n\r\0')


@given(rows=st.lists(st.tuples(TEXTS, st.none() | st.integers(-9, 9)), max_size=9))
def test_sw_csv_reads_what_was_written(
    rows: list[tuple[str, int | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = pa.table(
        {
            "a": pa.array([one for one, _ in rows], pa.string()),
            "n": pa.array([two for _, two in rows], pa.int64()),
        }
    )
    path = written(tmp_path_factory.mktemp("csv") / "x.csv", table)
    types = {"a": "string", "n": "int64"}
    assert rows_of(sw.csv(path, types=types)) == table.to_pylist()


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_type_is_read_back_with_its_type_said(tmp_path: Path, nulls: float) -> None:
    table = rows_of_types(3, nulls=nulls).select(list(TYPES))
    out = written(tmp_path / "out", table, rows=25)
    types = {name: kind for name, (kind, _) in PLAIN.items()}
    types |= dict.fromkeys(AS_TEXT, pa.string()) | {"lasting": pa.duration("ns")}
    found = pa.Table.from_pylist(rows_of(sw.csv(out, types=types)), pa.schema(types))
    for name, kind in types.items():
        column = table[name].combine_chunks()
        if name in NESTED:
            objects = plain(column).to_pylist()
            column = pa.array([None if one is None else as_json(one) for one in objects])
        elif name in BYTES:
            encoded = [one and base64.b64encode(one).decode() for one in column.to_pylist()]
            column = pa.array(encoded, pa.string())
        if is_text(kind):
            column = column.cast(kind).fill_null("")  # a null text is empty there
        assert found[name].to_pylist() == column.cast(kind).to_pylist(), name


def test_each_part_has_its_header_once_also_after_a_failed_run_is_resumed(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    write_all(sw.csv_sink(whole, rows=5))
    sink = opened(sw.csv_sink(cut, rows=5))
    sink.write(rows(0, 12))
    sink.abort("the worker of slot 'node-2' died")
    assert len(list(cut.glob(".*.incomplete"))) == 1
    write_all(sw.csv_sink(cut, rows=5, resume=True))
    assert seen(cut) == list(range(17))
    assert shown(cut) == shown(whole)
    for part in shown(cut).values():
        assert part.count(b"n\n") == 1


def flow_to(output: Any) -> sw.Dataflow:
    flow = sw.Dataflow("lines")
    numbers = flow.source("numbers", sw.table({"t": list(range(9))}), event_time="t")
    numbers.sink("out", output)
    return flow


def test_a_run_with_another_separator_header_or_null_does_not_continue_the_rows(
    tmp_path: Path,
) -> None:
    simulated(flow_to(sw.csv_sink(tmp_path, resume=True)))
    before = shown(tmp_path)
    for option in ({"sep": ";"}, {"header": False}, {"nulls": "NULL"}):
        with pytest.raises(SinkError, match="and this one has the default rows=, "):
            simulated(flow_to(sw.csv_sink(tmp_path, resume=True, **option)))  # type: ignore[arg-type]
    simulated(flow_to(sw.csv_sink(tmp_path, resume=True)))
    assert shown(tmp_path) == before == {"part-00000001.csv": b"t\n0\n1\n2\n3\n4\n5\n6\n7\n8\n"}


def test_infinite_values_in_lists_are_null_and_counted_but_outside_they_stay(
    tmp_path: Path,
) -> None:
    far = float("inf")
    table = pa.table({"x": [far, float("nan")], "list": [[far, 1.0], [far]]})
    sink = Driven(sw.csv_sink(tmp_path / "x.csv"), table.schema)
    sink.write(table.to_batches()[0])
    sink.close()
    assert (tmp_path / "x.csv").read_text() == 'x,list\ninf,"[null, 1.0]"\nnan,[null]\n'
    assert sink.progress is not None
    assert [note[:17] for note in sink.progress.notes] == ["2 infinite values"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sep": ";;"}, r"sep=';;' must be one ASCII character.*write sep=';'"),
        ({"sep": ""}, "sep='' must be"),
        ({"sep": '"'}, "other than a quote or a line end"),
        ({"sep": "§"}, "one ASCII character"),
        ({"nulls": "a,b"}, "nulls='a,b' must be text without separator"),
        ({"sep": ";", "nulls": "a;b"}, "nulls='a;b' must be text without separator"),
    ],
)
def test_a_form_that_no_reader_could_follow_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=rf"csv_sink\('out'\): .*{said}"):
        sw.csv_sink("out", **options)


@pytest.mark.parametrize("of", [sw.csv_sink, sw.jsonl_sink])
def test_a_name_that_promises_compression_is_refused(of: Any) -> None:
    kind = of.__name__.removesuffix("_sink")
    with pytest.raises(SettingError, match=f"does not compress; name it .{kind}, or use parquet"):
        of(f"out.{kind}.gz")


def test_a_flow_says_the_form_that_differs(tmp_path: Path) -> None:
    said = sw.csv_sink("out", sep=";", header=False, nulls="NULL", rows=1_000).describe()
    assert said == "csv out\nsep=';', no header, null is 'NULL', a part for 1,000 rows"
    assert sw.csv_sink("out.csv").describe() == "csv out.csv"
