"""Frames: what goes in comes out, and nothing that the wire can bring does any harm."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.actors.wire.buffers import FEW_ROWS
from slackwater.actors.wire.extras import FIRST_FLAG
from slackwater.actors.wire.frames import HEADER, FrameCodec, FrameTooLongError, GrantFrame
from slackwater.runtime.errors import ColumnError, FrameError
from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, ReadTag, batch_of
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.row_marks import all_bits
from tests.support.tampering import tampered_frame
from tests.support.told import message_of

SCHEMA = pa.schema(
    [
        ("line", pa.string()),
        ("speed", pa.float64()),
        ("fix_time", pa.timestamp("ns", tz="UTC")),
        ("is_late", pa.bool_()),
        ("stop", pa.int16()),
        ("remark", pa.string()),
    ]
)
INT64S = st.integers(START_NS, END_NS)
TEXTS = st.one_of(st.none(), st.text(max_size=5))


def codec(schema: pa.Schema = SCHEMA, **settings: Any) -> FrameCodec:
    settings.setdefault("columns", schema.names)
    return FrameCodec(schema, **settings)


def batch_with(rows: int, *, lines: pa.Array | None = None, with_writers: bool = False) -> Batch:
    numbers = np.arange(rows)
    return Batch(
        event_time_ns=numbers * 10,
        stimulus_time_ns=numbers * 10 + 3,
        columns={
            "line": pa.array([f"bus {row}" for row in range(rows)], pa.string())
            if lines is None
            else lines,
            "speed": numbers / 2,
            "fix_time": numbers * 1_000,
            "is_late": numbers % 2 == 0,
            "stop": numbers.astype(np.int16),
            "remark": pa.array([None if row % 3 else "zażółć" for row in range(rows)], pa.string()),
        },
        writers=numbers + 7 if with_writers else None,
    )


def assert_same(got: Batch | None, sent: Batch | None) -> None:
    if got is None or sent is None:
        assert got is sent
        return
    pairs: list[tuple[Any, Any]] = [
        (got.event_time_ns, sent.event_time_ns),
        (got.stimulus_time_ns, sent.stimulus_time_ns),
        *((got.columns[name], sent.columns[name]) for name in sent.columns),
    ]
    assert got.fields.keys() == sent.fields.keys()
    pairs += [(got.fields[name], sent.fields[name]) for name in sent.fields]
    assert list(got.columns) == list(sent.columns)
    for here, there in pairs:
        if isinstance(there, np.ndarray):
            assert here.dtype == there.dtype
            np.testing.assert_array_equal(here, there)
        else:
            here.validate(full=True)
            assert here.equals(there)


def sound_frame(rows: int = 9) -> bytes:
    return codec().encode(message_of(batch_with(rows), 5, 6), sent_at_ns=7)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A batch of SCHEMA with writers, its text cut from somewhere inside a longer array."""
    rows, before = draw(st.integers(0, 20)), draw(st.integers(0, 17))

    def array(values: st.SearchStrategy[Any], dtype: Any) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=rows, max_size=rows)), dtype=dtype)

    def text() -> pa.Array:
        size = before + rows + 1
        drawn = draw(st.lists(TEXTS, min_size=size, max_size=size))
        return pa.array(drawn, pa.string()).slice(before, rows)

    return Batch(
        event_time_ns=array(INT64S, np.int64),
        stimulus_time_ns=array(INT64S, np.int64),
        columns={
            "line": text(),
            "speed": array(st.floats(), np.float64),
            "fix_time": array(INT64S, np.int64),
            "is_late": array(st.booleans(), np.bool_),
            "stop": array(st.integers(-(2**15), 2**15 - 1), np.int16),
            "remark": text(),
        },
        writers=array(INT64S, np.int64),
        marks=draw(st.none() | st.just(array(st.integers(0, all_bits()), np.uint8))),
    )


@given(batch=st.none() | batches(), promise_ns=INT64S, stimulus_ns=INT64S, sent_at_ns=INT64S)
def test_a_message_comes_back_as_it_was(
    batch: Batch | None, promise_ns: int, stimulus_ns: int, sent_at_ns: int
) -> None:
    both = codec(row_fields={"writers", "marks"})
    frame = both.encode(message_of(batch, promise_ns, stimulus_ns), sent_at_ns=sent_at_ns)
    message, got_sent_at_ns = both.decode(frame)
    assert_same(message.batch, batch)
    assert (message.progress.promise_ns, message.progress.stimulus_ns) == (promise_ns, stimulus_ns)
    assert got_sent_at_ns == sent_at_ns


def test_columns_come_back_as_aligned_views_of_the_frame() -> None:
    both = codec()
    frame = both.encode(message_of(batch_with(9), 5, 6), sent_at_ns=7)
    batch = both.decode(frame)[0].batch
    assert batch is not None
    first = np.frombuffer(frame, np.uint8).ctypes.data
    for values in (batch.event_time_ns, batch.columns["speed"], batch.columns["stop"]):
        assert isinstance(values, np.ndarray)
        assert first < values.ctypes.data < first + len(frame)
        assert values.flags.aligned
        assert not values.flags.writeable


def test_only_the_columns_of_the_plan_travel() -> None:
    few = codec(columns=["stop", "line"])
    batch = few.decode(few.encode(message_of(batch_with(3), 0, 0), sent_at_ns=0))[0].batch
    assert batch is not None
    assert list(batch.columns) == ["stop", "line"]


MANY = FEW_ROWS + 1  # a batch so large is sent without a copy of each column


@pytest.mark.parametrize("rows", [1, FEW_ROWS, MANY, 1_000])
def test_a_batch_of_any_size_comes_back_as_it_was(rows: int) -> None:
    both, sent = codec(row_fields={"writers"}), batch_with(rows, with_writers=True)
    assert_same(both.decode(both.encode(message_of(sent, 0, 0), sent_at_ns=0))[0].batch, sent)


@pytest.mark.parametrize("rows", [1, 10, MANY])
def test_a_column_that_is_not_contiguous_is_copied_right(rows: int) -> None:
    both = codec(pa.schema([("a", pa.int64())]))
    sent = Batch(
        event_time_ns=np.arange(2 * rows)[::2],
        stimulus_time_ns=np.arange(rows),
        columns={"a": np.arange(3 * rows)[::3]},
    )
    assert_same(both.decode(both.encode(message_of(sent, 0, 0), sent_at_ns=0))[0].batch, sent)


@pytest.mark.parametrize(
    ("column", "values", "claim"),
    [
        ("stop", np.arange(3), "int64"),
        ("stop", np.zeros((3, 1), np.int16), "shape"),
        ("stop", np.int16(3), "int16"),
        ("stop", pa.array([1, 2, 3], pa.int16()), "Arrow array"),
        ("speed", np.arange(2) / 2, "float64"),
        ("line", np.array(["a", "b", "c"], dtype=object), "object"),
        ("line", pa.array(["a", "b"]), "of 2 string"),
        ("line", pa.array([b"a", b"b", b"c"]), "binary"),
        ("line", None, "NoneType"),
    ],
)
def test_a_batch_of_another_schema_is_not_sent(column: str, values: Any, claim: str) -> None:
    batch = batch_with(3)
    batch.columns[column] = values
    with pytest.raises(FrameError, match=claim) as caught:
        codec().encode(message_of(batch, 0, 0), sent_at_ns=0)
    assert repr(column) in str(caught.value)


def test_writers_travel_exactly_where_the_channel_has_them() -> None:
    with pytest.raises(FrameError, match="writers"):
        codec(row_fields={"writers"}).encode(message_of(batch_with(3), 0, 0), sent_at_ns=0)


def test_a_column_that_is_not_there_is_refused_when_the_codec_is_made() -> None:
    with pytest.raises(ColumnError, match="'sped'"):
        codec(columns=["sped"])


def test_a_message_over_the_limit_is_not_sent() -> None:
    small = codec(max_bytes=1_000)
    with pytest.raises(FrameTooLongError, match="limit is 1000"):
        small.encode(message_of(batch_with(100), 0, 0), sent_at_ns=0)
    small.decode(small.encode(message_of(None, 1, 1), sent_at_ns=0))  # number 0: none was used up


def test_a_frame_over_the_limit_is_refused() -> None:
    with pytest.raises(FrameError, match="limit is 100"):
        codec(max_bytes=100).decode(sound_frame())


@pytest.mark.parametrize("batch", [batch_with(9), None], ids=["rows", "no rows"])
def test_the_read_that_a_message_is_of_travels_with_it(batch: Batch | None) -> None:
    rows = 0 if batch is None else len(batch)
    mark = ReadTag(7, rows + 2, min(rows, 3), -5)
    frame = codec().encode(message_of(batch, 5, 6, mark), sent_at_ns=8)
    message, _ = codec().decode(frame)
    assert message.tag == mark
    assert_same(message.batch, batch)
    for wrong in (mark._replace(late=rows + 1), mark._replace(rows=rows - 1), (0, rows, 0, 0)):
        lying = codec().encode(message_of(batch, 5, 6, ReadTag(*wrong)), sent_at_ns=8)
        with pytest.raises(FrameError, match="says that it belongs to the read"):
            codec().decode(lying)
    with pytest.raises(FrameError, match="no room"):
        codec().decode(changed(frame[: HEADER.size + 8], size=8))


def test_nulls_travel_as_masks_and_a_mask_of_no_column_is_refused() -> None:
    schema = pa.schema({"n": pa.int64(), "word": pa.string(), "flag": pa.bool_()})
    valid = np.array([True, False, True])
    columns: Columns = {
        "n": Nullable(np.array([1, 0, 3]), valid),
        "word": pa.array(["a", None, "c"]),
        "flag": Nullable(np.array([True, False, False]), valid),
    }
    times = np.arange(3)
    sender, receiver = (FrameCodec(schema, columns=schema.names) for _ in range(2))
    frame = sender.encode(
        message_of(Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns), 5, 6),
        sent_at_ns=0,
    )
    body = len(frame) - HEADER.size
    for at in range(HEADER.size, len(frame)):
        spoiled = bytes([*frame[:at], 7, *frame[at + 1 :]])
        with suppress(FrameError):
            FrameCodec(schema, columns=schema.names).decode(spoiled)
    for cut in range(body):
        with pytest.raises(FrameError):
            FrameCodec(schema, columns=schema.names).decode(
                changed(frame[: HEADER.size + cut], size=cut)
            )
    message, _ = receiver.decode(frame)
    assert message.batch is not None
    for name, column in columns.items():
        assert message.batch.columns[name].tolist() == column.tolist()
    bare = FrameCodec(pa.schema([]), columns=[])
    empty = bare.encode(
        message_of(Batch(event_time_ns=times, stimulus_time_ns=times, columns={}), 5, 6),
        sent_at_ns=0,
    )
    with pytest.raises(FrameError):
        bare.decode(changed(empty, flags=1 | 8, rows=4))


def changed(frame: bytes, **fields: int | bytes) -> bytes:
    told = ("promise", "stimulus", "newest")
    names = ("magic", "version", "kind", "flags", "rows", *told)
    names = (*names, "sent", "number", "fingerprint", "size")
    header = dict(zip(names, HEADER.unpack_from(frame), strict=True)) | fields
    return HEADER.pack(*header.values()) + frame[HEADER.size :]


@pytest.mark.parametrize(
    ("fields", "claim"),
    [
        ({"magic": b"HTTP"}, "we speak"),
        ({"version": 1}, "version 1"),
        ({"kind": 2}, "kind grant"),
        ({"kind": 77}, "kind 77"),
        ({"flags": 4}, "without a batch"),
        ({"flags": 8}, "no room for its masks"),
        ({"flags": 16}, "flags 0x10"),
        ({"flags": 1 | FIRST_FLAG}, "flags 0x101"),
        ({"flags": 5}, "9 values"),
        ({"flags": 3}, "says that it belongs to the read"),
        ({"flags": 0}, "without a batch"),
        ({"rows": -1}, "-1 rows"),
        ({"rows": 8}, "8 values"),
        ({"rows": 10}, "10 rows"),
        ({"rows": 2**62}, "do not fit"),
        ({"number": 1}, "frame 1 came where frame 0 was due"),
        ({"fingerprint": 1}, "another schema"),
        ({"size": 2**63}, "says that its body"),
        ({"size": 0}, "says that its body"),
    ],
)
def test_a_header_that_lies_is_refused(fields: dict[str, Any], claim: str) -> None:
    with pytest.raises(FrameError, match=claim):
        codec().decode(changed(sound_frame(), **fields))


def test_a_frame_cut_anywhere_or_with_more_behind_is_refused() -> None:
    frame = sound_frame()
    for wrong in [*(frame[:size] for size in range(len(frame))), frame + b"\0", frame + b"\0" * 8]:
        honest = wrong
        if len(wrong) >= HEADER.size:  # even if the header tells the new length
            honest = changed(wrong, size=len(wrong) - HEADER.size)
        for bad in (wrong, honest):
            with pytest.raises(FrameError):
                codec().decode(bad)


def test_a_frame_that_is_missing_or_comes_twice_is_noticed() -> None:
    sender, receiver = codec(), codec()
    frames = [sender.encode(message_of(None, n, n), sent_at_ns=n) for n in range(3)]
    receiver.decode(frames[0])
    for wrong in (frames[0], frames[2]):
        with pytest.raises(FrameError, match="where frame 1 was due"):
            receiver.decode(wrong)
    assert receiver.decode(frames[1])[0].progress.promise_ns == 1
    assert receiver.decode(frames[2])[0].progress.promise_ns == 2


@pytest.mark.parametrize(
    ("offsets", "text", "claim"),
    [
        ([0, 5, 3, 6], b"abcdef", "out of order"),
        ([0, 2, 4, 7], b"abcdef", "out of its text"),
        ([0, 2, 4, 2**31 - 1], b"abcdef", "out of its text"),
        ([1, 2, 4, 6], b"abcdef", "out of order"),
        ([0, -2, 4, 6], b"abcdef", "out of order"),
        ([0, 1, 4, 6], "żółw"[:3].encode(), "not text"),  # cut inside a character
        ([0, 2, 4, 6], b"ab\xff\xfeef", "not text"),
    ],
)
def test_text_that_arrow_could_not_trust_is_refused(
    offsets: list[int], text: bytes, claim: str
) -> None:
    only_text = pa.schema([("line", pa.string())])
    sound = codec(only_text).encode(
        message_of(batch_of([1, 2, 3], {"line": ["ab", "cd", "ef"]}), 0, 0), sent_at_ns=0
    )
    body = len(sound) - HEADER.size
    at = HEADER.size + 16 + 2 * 24
    wrong = sound[:at] + np.array(offsets, np.int32).tobytes() + text.ljust(8, b"\0")
    assert len(wrong) == HEADER.size + body
    with pytest.raises(FrameError, match=claim):
        codec(only_text).decode(wrong)


@pytest.mark.parametrize("offsets", [[0, 1], [0, 3], [1, 2], [0, -2]])
def test_one_text_begins_and_ends_with_its_bytes(offsets: list[int]) -> None:
    only_text = pa.schema([("line", pa.string())])
    sent = message_of(batch_of([1], {"line": ["ab"]}), 0, 0)
    sound = codec(only_text).encode(sent, sent_at_ns=0)
    wrong = sound[:-16] + np.array(offsets, np.int32).tobytes() + sound[-8:]
    with pytest.raises(FrameError, match="out of its text"):
        codec(only_text).decode(wrong)


@pytest.mark.parametrize("length", [8, 4_096, 4_104, 100_000])
def test_a_byte_that_is_no_text_is_found_in_text_of_any_length(length: int) -> None:
    only_text = pa.schema([("line", pa.string())])
    sent = message_of(batch_of([1], {"line": ["x" * length]}), 0, 0)
    sound = codec(only_text).encode(sent, sent_at_ns=0)
    assert_same(codec(only_text).decode(sound)[0].batch, sent.batch)
    for at in (len(sound) - length, len(sound) - 1):
        with pytest.raises(FrameError, match="not text"):
            codec(only_text).decode(sound[:at] + b"\xff" + sound[at + 1 :])


def test_a_boolean_is_0_or_1() -> None:
    only = pa.schema([("is_late", pa.bool_())])
    sent = batch_of([1, 2], {"is_late": [True, False]})
    frame = codec(only).encode(message_of(sent, 0, 0), sent_at_ns=0)
    with pytest.raises(FrameError, match="'is_late'"):
        codec(only).decode(frame[:-8] + b"\2" + frame[-7:])


def read_all(batch: Batch | None) -> None:
    """Touch every value, as the stages behind would."""
    for values in batch.columns.values() if batch is not None else ():
        if isinstance(values, np.ndarray):
            values.copy()
        else:
            values.validate(full=True)
            values.to_pylist()
            values.take(pa.array([len(values) - 1] if len(values) else [], pa.int64()))


@given(noise=st.binary(max_size=400))
def test_noise_is_refused(noise: bytes) -> None:
    for frame in (noise, sound_frame()[: HEADER.size] + noise):
        for read in (codec().decode, codec().decode_grant, codec().check_hello):
            with pytest.raises(FrameError):
                read(frame)


def test_a_frame_that_was_tampered_with_is_refused_or_still_sound(chance: Random) -> None:
    frames = [sound_frame(rows) for rows in range(1, 12)]
    refused = 0
    for turn in range(6_000):
        frame = tampered_frame(chance.choice(frames), chance.choice(frames), chance)
        try:
            read_all(codec().decode(frame)[0].batch)
        except FrameError:
            refused += 1
        except Exception as problem:
            raise AssertionError(f"turn {turn}: {frame!r}") from problem
    assert 3_000 < refused < 6_000


def test_a_grant_comes_back_as_it_was() -> None:
    both = codec()
    for grant in (GrantFrame(1, False), GrantFrame(2**40, False), GrantFrame(0, True)):
        assert both.decode_grant(both.encode_grant(grant)) == grant
    with pytest.raises(FrameError, match="no body"):
        codec().decode_grant(changed(sound_frame(), kind=2))
    with pytest.raises(FrameError, match="0 rows"):
        codec().decode_grant(codec().encode_grant(GrantFrame(0, False)))


def test_two_ends_with_different_columns_refuse_each_other_by_name() -> None:
    ours, alike = codec(), codec()
    ours.check_hello(alike.encode_hello())
    other = SCHEMA.set(1, pa.field("speed", pa.float32()))
    with pytest.raises(FrameError, match=r"'speed': float.*'speed': double"):
        codec().check_hello(codec(other).encode_hello())
    with pytest.raises(FrameError, match=r"nothing.*'remark'"):
        codec().check_hello(codec(columns=SCHEMA.names[:-1]).encode_hello())
    with pytest.raises(FrameError, match="'rows with writers' where we have 'rows with no fields'"):
        codec().check_hello(codec(row_fields={"writers"}).encode_hello())
    with pytest.raises(FrameError, match="another schema"):
        codec().decode(codec(other).encode(message_of(None, 0, 0), sent_at_ns=0))
