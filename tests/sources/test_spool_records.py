"""Records of a spool: rows as bytes, cut at any place, changed at any place."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.arrow_streams import stream_of
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows
from slackwater.runtime.sources.spool_records import (
    DamagedSpool,
    Head,
    Kind,
    Place,
    Record,
    pack,
    unpack,
)

ROWS = pa.record_batch(
    {
        "n": pa.array([1, None, 3], pa.int32()),
        "text": pa.array(["ü", "", None]).dictionary_encode(),
        "lists": pa.array([[1], None, []]),
    }
).replace_schema_metadata({"kept": "yes"})
RECORDS = [
    pack(Kind.HEAD, b"", b"{}"),
    pack(Kind.ROWS, b"7", stream_of(ROWS)),
    pack(Kind.BAD_ROWS, b"", stream_of(ROWS)),
    pack(Kind.END),
]
WHOLE = b"".join(RECORDS)
HEAD, ROWS_AT = RECORDS[0], len(RECORDS[0])


def records_of(data: bytes) -> list[Record]:
    view, records, end = memoryview(data), list[Record](), 0
    while (record := unpack(view, end)) is not None:
        records.append(record)
        end = record.end
    return records


def test_rows_come_back_with_types_dictionaries_and_metadata() -> None:
    _, rows, bad, end = records_of(WHOLE)
    assert rows.at == b"7"
    polled = rows.polled()
    assert isinstance(polled, pa.RecordBatch)
    assert polled.equals(ROWS, check_metadata=True)
    again = bad.polled()
    assert isinstance(again, BadRows)
    assert again.rows.equals(ROWS)
    assert end.polled() is END_OF_INPUT


@given(st.integers(0, len(WHOLE) - 1))
def test_a_record_that_was_cut_anywhere_is_cut_off_and_those_before_stay(cut: int) -> None:
    whole = [n for n in range(len(RECORDS) + 1) if len(b"".join(RECORDS[:n])) <= cut]
    assert len(records_of(WHOLE[:cut])) == whole[-1]


@given(st.integers(0, 300))
def test_zeros_after_a_power_cut_are_cut_off(zeros: int) -> None:
    assert len(records_of(WHOLE + b"\0" * zeros)) == len(RECORDS)


@given(st.integers(ROWS_AT, ROWS_AT + len(RECORDS[1]) - 1), st.integers(1, 255))
def test_a_changed_byte_before_the_last_record_is_never_read_as_rows(at: int, by: int) -> None:
    changed = bytearray(WHOLE)
    changed[at] ^= by
    try:
        records = records_of(bytes(changed))
    except DamagedSpool:
        return
    assert len(records) == 1, "a length that leads beyond the end is as a cut"


def test_a_last_record_with_a_wrong_check_is_half_written() -> None:
    data = bytearray(HEAD + RECORDS[1])
    data[-1] ^= 1
    assert len(records_of(bytes(data))) == 1
    with pytest.raises(DamagedSpool, match="was changed: its check is wrong"):
        records_of(bytes(data) + RECORDS[3])


def test_bytes_of_another_program_are_refused() -> None:
    with pytest.raises(DamagedSpool, match=r"no record at byte 0"):
        unpack(memoryview(b"PAR1" * 20), 0)


def test_a_head_says_where_earlier_files_end() -> None:
    head = Head({3: 4_096, 4: 0}, b"at")
    record = unpack(memoryview(head.to_bytes()), 0)
    assert record is not None
    assert Head.of(record) == head
    with pytest.raises(DamagedSpool, match="does not begin with a head"):
        Head.of(records_of(WHOLE)[1])


def test_a_head_of_another_format_is_refused() -> None:
    record = unpack(memoryview(pack(Kind.HEAD, b"", b'{"format": 9, "ends": {}}')), 0)
    assert record is not None
    with pytest.raises(DamagedSpool, match="of format 9, and 1 can be read"):
        Head.of(record)


def test_a_place_is_a_position() -> None:
    assert Place.of(Place(12, 4_096).to_bytes()) == Place(12, 4_096)
    for other in (b"", b"7", b"a:b", b"1:2:3"):
        with pytest.raises(ValueError):  # noqa: PT011 - of several functions
            Place.of(other)
