"""Types of columns: said, met between files, or refused by the column's name."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.ingest import files, memory, records
from slackwater.runtime.errors import IngestError, SchemaError, SettingError
from slackwater.runtime.model.json_text import rows_as_json
from slackwater.runtime.model.meeting_types import meeting_type
from tests.support.readers import rows_of, types_of


def csv_of(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "said",
    [
        "timestamp[ms, tz=UTC]",
        "timestamp[us]",
        "timestamp",
        "double",
        "float",
        "int32",
        "string",
        "bool",
        "date32[day]",
        "halffloat",
        "uint64",
        "large_string",
    ],
)
def test_types_are_said_as_explain_prints_them(tmp_path: Path, said: str) -> None:
    path = csv_of(tmp_path / "a.csv", "t,x\n1,\n")
    assert types_of(files.csv(path, types={"x": said}))["x"] == (
        "timestamp[ns]" if said == "timestamp" else said
    )
    for wrong in ("timestamp[h]", "real", "decimal128(99, 2)", 5):
        with pytest.raises(SettingError, match="not an Arrow type"):
            files.csv(path, types={"x": wrong})  # type: ignore[dict-item]


def test_columns_stay_in_their_order_where_types_are_said(tmp_path: Path) -> None:
    csv_of(tmp_path / "a.csv", "t,x,y\n1,2,3\n")
    csv_of(tmp_path / "a.jsonl", '{"t": 1, "x": 2, "y": 3}\n')
    for given in (files.csv, files.jsonl):
        assert given(tmp_path, types={"x": "int32"}).schema().names == ["t", "x", "y"]


def test_a_setting_that_names_no_column_is_refused(tmp_path: Path) -> None:
    csv_of(tmp_path / "a.csv", "t,speed\n1,2\n")
    csv_of(tmp_path / "a.jsonl", '{"t": 1, "speed": 2}\n')
    pq.write_table(pa.table({"t": [1], "speed": [2]}), tmp_path / "a.parquet")
    for kind in (files.csv, files.jsonl, files.parquet):
        for options in ({"types": {"sped": "string"}}, {"columns": ["sped"]}):
            if kind is files.jsonl and "types" in options:
                continue  # a field of JSON may be in no row
            with pytest.raises(SchemaError, match="no column 'sped'; the nearest is 'speed'"):
                kind(tmp_path, **options).schema()  # type: ignore[operator]
    assert types_of(files.jsonl(tmp_path, columns=["t", "late"], types={"late": "double"})) == {
        "t": "int64",
        "late": "double",
    }


def test_a_name_that_occurs_twice_is_said_so(tmp_path: Path) -> None:
    csv_of(tmp_path / "a.csv", "t,v,v\n1,2,3\n")
    twice = pa.Table.from_arrays([pa.array([1])] * 3, names=["t", "v", "v"])
    pq.write_table(twice, tmp_path / "a.parquet")
    for of in (files.csv, files.parquet):
        for columns in (None, ["v"]):
            with pytest.raises(SchemaError, match="column name 'v' occurs 2 times"):
                of(tmp_path, columns=columns).schema()  # type: ignore[operator]
        assert rows_of(of(tmp_path, columns=["t"])) == [{"t": 1}]  # type: ignore[operator]


WRAPS = 3402823669209384635
"""Times 10**20, it is a number of 36 digits modulo 2**128."""


@pytest.mark.parametrize("digits", [38, 76])
def test_a_number_is_the_decimal_that_is_said_or_refused(tmp_path: Path, digits: int) -> None:
    kind = pa.decimal128(38, 20) if digits == 38 else pa.decimal256(76, 58)
    for number, fits in [("-123456789012345678.25", True), (str(WRAPS), False), ("1e19", False)]:
        csv_of(tmp_path / "a.csv", f"x\n1\n{number}\n")
        csv_of(tmp_path / "n.jsonl", f'{{"x": 1}}\n{{"x": {number}}}\n')
        csv_of(tmp_path / "t.jsonl", f'{{"x": "1"}}\n{{"x": "{number}"}}\n')
        pq.write_table(pa.table({"x": ["1", number]}), tmp_path / "a.parquet")
        for of, name, place in [
            (files.csv, "a.csv", f"line 3: column 'x': '{number}' is no"),
            (files.jsonl, "n.jsonl", f"line 2: column 'x': '{number}' is no"),
            (files.jsonl, "t.jsonl", f"line 2: column 'x': '{number}' is no"),
            (files.parquet, "a.parquet", "row 1 from 0"),
        ]:
            said = of(tmp_path / name, types={"x": kind})  # type: ignore[operator]
            if fits:
                assert [row["x"] for row in rows_of(said)] == [Decimal(1), Decimal(number)]
                continue
            with pytest.raises(IngestError, match=place):
                rows_of(said)


# Parquet


def test_parquet_files_that_differ_on_the_outside_are_one_schema(tmp_path: Path) -> None:
    at = [1_700_000_000_000]
    tables = [
        {
            "n": pa.array([1], pa.int32()),
            "s": pa.array(["a"]),
            "t": pa.array(at, pa.timestamp("ms")),
        },
        {
            "n": pa.array([2**40]),
            "s": pa.array(["b"], pa.large_string()),
            "t": pa.array(at, pa.timestamp("ms")).cast(pa.timestamp("ns")),
        },
        {
            "s": pa.array(["c"]).dictionary_encode(),
            "n": pa.array([3], pa.uint8()),
            "t": pa.nulls(1),
        },
    ]
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), tmp_path / f"part-{number + 9}.parquet")
    given = files.parquet(tmp_path)
    assert types_of(given) == {"n": "int64", "s": "string", "t": "timestamp[ns]"}
    assert [row["n"] for row in rows_of(given)] == [1, 2**40, 3]
    assert [row["s"] for row in rows_of(given)] == ["a", "b", "c"]


def test_parquet_takes_another_type_that_is_said(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"x": pa.array([1.5]).cast(pa.decimal128(5, 2))}), tmp_path / "a.parquet"
    )
    pq.write_table(pa.table({"x": [2]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b.parquet: column 'x' has type int64.*types="):
        files.parquet(tmp_path).schema()
    assert rows_of(files.parquet(tmp_path, types={"x": "float64"})) == [{"x": 1.5}, {"x": 2.0}]
    with pytest.raises(IngestError, match=r"a.parquet .*column 'x' .*row 0 .* is no int64"):
        rows_of(files.parquet(tmp_path, types={"x": "int64"}))


def test_a_parquet_value_that_a_type_would_round_is_refused_by_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [0.5, 0.1, 0.125], "l": [[0.5], None, [0.125]]}), path)
    for name, kind in (("x", pa.decimal128(5, 2)), ("l", pa.list_(pa.decimal128(5, 2)))):
        with pytest.raises(IngestError, match=rf"'{name}' .*row 2 from 0: .*0\.125.* is no "):
            rows_of(files.parquet(path, types={name: kind}, batch_rows=2))


@pytest.mark.parametrize(
    ("one", "other", "met"),
    [
        (pa.int8(), pa.uint8(), pa.int16()),
        (pa.int64(), pa.uint32(), pa.int64()),
        (pa.int64(), pa.uint64(), None),
        (pa.int64(), pa.float64(), None),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.null(), pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.decimal128(5, 2), pa.decimal128(9, 0), pa.decimal128(11, 2)),
        (pa.decimal128(38, 0), pa.decimal128(9, 4), pa.decimal256(42, 4)),
        (pa.decimal256(5, 2), pa.decimal128(9, 0), pa.decimal256(11, 2)),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.time32("s"), pa.time32("ms"), pa.time32("ms")),
        (pa.duration("s"), pa.duration("ns"), pa.duration("ns")),
        (pa.string(), pa.int64(), None),
    ],
    ids=str,
)
def test_two_types_meet_where_no_value_changes(
    one: pa.DataType, other: pa.DataType, met: pa.DataType | None
) -> None:
    assert meeting_type(one, other) == meeting_type(other, one) == met


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_numbers_in_file_names_count_as_numbers(tmp_path: Path, kind: str) -> None:
    for number in (10, 2, 1):
        (tmp_path / f"day={number}").mkdir()
        for part in (10, 9):
            path = tmp_path / f"day={number}" / f"part-{part}.{kind}"
            value = 100 * number + part
            if kind == "parquet":
                pq.write_table(pa.table({"t": [value]}), path)
            else:
                csv_of(path, f"t\n{value}\n" if kind == "csv" else f'{{"t": {value}}}\n')
    ordered = [109, 110, 209, 210, 1009, 1010]
    for pattern in (tmp_path, tmp_path / "*" / f"*.{kind}"):
        given = getattr(files, kind)(pattern)
        assert [row["t"] for row in rows_of(given)] == ordered


# JSON lines

MAPS = pa.map_(pa.string(), pa.int32())
NINE = datetime.time(9, 0, 5)
DAY = datetime.date(2024, 1, 2)
SHIFT = pa.struct([("at", pa.time32("ms")), ("days", pa.list_(pa.date32()))])
WRITTEN: list[tuple[Any, pa.DataType]] = [
    (NINE, pa.time32("s")),
    (NINE.replace(microsecond=7), pa.time64("us")),
    (datetime.timedelta(seconds=5), pa.duration("s")),
    (DAY, pa.date64()),
    (datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), pa.timestamp("ms", "UTC")),
    (Decimal("1.50"), pa.decimal128(10, 2)),
    (b"\xff\x00", pa.binary()),
    (b"\xff\x00", pa.binary(2)),
    ([1.5, None], pa.list_(pa.float32(), 2)),
    ([DAY, None], pa.large_list(pa.date32())),
    (
        {"at": NINE, "days": [DAY]},
        pa.struct([("at", pa.time32("ms")), ("days", pa.list_(pa.date32()))]),
    ),
    ("a", pa.dictionary(pa.int32(), pa.string())),
]


@pytest.mark.parametrize(("value", "kind"), WRITTEN, ids=str)
def test_jsonl_reads_back_what_its_sink_writes(
    tmp_path: Path, value: Any, kind: pa.DataType
) -> None:
    rows = pa.table({"x": pa.array([value, None], kind)})
    lines = rows_as_json(rows.to_batches()[0])
    path = csv_of(tmp_path / "a.jsonl", "\n".join([*lines, ""]))
    given = files.jsonl(path, types={"x": kind})
    assert given.schema().field("x").type == kind
    assert rows_of(given) == rows.to_pylist()


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ('"25:00"', pa.time32("s")),
        ("5", pa.duration("s")),
        ('"a"', pa.binary()),
        ("[1]", pa.list_(pa.int64(), 2)),
        ('["2024-13-01"]', pa.list_(pa.date32())),
    ],
    ids=str,
)
def test_a_json_value_that_is_none_of_its_type_is_refused_by_line(
    tmp_path: Path, bad: str, kind: pa.DataType
) -> None:
    path = csv_of(tmp_path / "a.jsonl", f'{{"x": null}}\n\n{{"x": {bad}}}\n{{"x": null}}\n')
    with pytest.raises(IngestError, match=r"line 3: column 'x': .* is no "):
        rows_of(files.jsonl(path, types={"x": kind}))


def test_a_type_that_json_lacks_is_refused_where_it_is_said(tmp_path: Path) -> None:
    for kind in (MAPS, pa.struct([("m", MAPS)])):
        with pytest.raises(SettingError, match=r"'x' has type .*not read from JSON; an object is"):
            files.jsonl(tmp_path, types={"x": kind})


# Memory


def test_a_frame_with_two_columns_of_one_name_is_refused() -> None:
    twice = pandas.DataFrame([[1, 2, 3]], columns=["t", "v", "v"])
    with pytest.raises(SchemaError, match="column name 'v' occurs 2 times"):
        memory.table(twice)


def test_a_table_is_exact_or_refused_by_its_column() -> None:
    assert types_of(memory.table({"n": [2**63, 1]})) == {"n": "uint64"}
    for wrong in ([2**64], [2**63, -1], [2**53 + 1, 0.5], ["\ud800"], [1, "a"]):
        with pytest.raises(SchemaError, match=r"table: column 'n': .*every column needs"):
            memory.table({"t": [1] * len(wrong), "n": wrong})


def test_columns_of_python_objects_are_refused_by_name() -> None:
    class PolarsFrame:
        """A frame that hands over the addresses of its objects."""

        schema: ClassVar = {"t": "Int64", "o": "Object"}

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise AssertionError(requested_schema)

    with pytest.raises(SchemaError, match=r"column 'o' has Python's objects.*drop\('o'\)"):
        memory.table(PolarsFrame())


def test_a_uuid_of_parquet_is_text_or_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"u": pa.array([bytes(15) + b"\1", None], pa.uuid())}), path)
    text = "00000000-0000-0000-0000-000000000001"
    for types, kind, value in (
        ({"u": "string"}, "string", text),
        ({"u": "binary"}, "binary", bytes(15) + b"\1"),
    ):
        given = files.parquet(path, types=types)
        assert types_of(given) == {"u": kind}
        assert [row["u"] for row in rows_of(given)] == [value, None]


def test_one_value_for_a_column_is_refused_by_its_name() -> None:
    for wrong in (1, "ab", None):
        with pytest.raises(SchemaError, match=r"table: column 'v': .*as many values"):
            memory.table({"t": [1, 2], "v": wrong})


def test_a_said_field_that_no_row_has_is_nulls_in_json(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.jsonl", '{"t": 1}\n{"t": 2}\n')
    types = {"later": "float64", "t": "int64"}
    for on_bad in ("error", "skip"):
        given = files.jsonl(path, types=types, on_bad=on_bad)  # type: ignore[arg-type]
        assert types_of(given) == {"t": "int64", "later": "double"}
        assert rows_of(given) == [{"t": 1, "later": None}, {"t": 2, "later": None}]
    with pytest.raises(SchemaError, match="there is no column 'later'"):
        files.csv(csv_of(tmp_path / "a.csv", "t\n1\n"), types=types).schema()


def test_a_said_field_may_come_after_the_first_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 16)
    path = csv_of(tmp_path / "a.jsonl", '{"t": 1}\n{"t": 2}\n{"t": 3, "later": 0.5}\n')
    given = files.jsonl(path, types={"later": "float64"})
    assert rows_of(given)[-1] == {"t": 3, "later": 0.5}
    with pytest.raises(IngestError, match=r"'later' is new; .*types=\{'field': 'int64'\}"):
        rows_of(files.jsonl(path))
