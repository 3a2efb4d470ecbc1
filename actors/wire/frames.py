"""Encode a message as bytes: a fixed header and the Arrow buffers of its columns.

```
header  72 bytes, little endian: magic, version, kind, flags, rows, promise, its stimulus, newest
        event time, time of sending, frame number, schema fingerprint, body length
body    of a message from a shared gate: the tag of its read (runtime/model/message.py,
        ReadTag; 4 int64)
        with a flag: how far arrivals have come (Arrived; 3 int64)
        for each column that Arrow keeps: bytes of its text or of its IPC message, bytes of the
        validity bitmap of text (int64 each)
        with a flag, for each column of numbers: whether it has nulls (one byte each)
        event time, stimulus time: int64
        the columns: numbers as they are, times as whole numbers, booleans one byte each, 0 or
        1 (Arrow's bool8), each with a mask if it has nulls, one byte a row, 1 where there is a
        value; text as Arrow's offsets (int32, from 0), text, and validity bitmap (none without
        nulls); decimals, bytes, lists, structs and maps as an Arrow IPC record batch message
        with a flag for each, the fields of rows that the channel carries, in the order of
        `ROW_FIELDS` (runtime/model/batch.py)
```

Every buffer starts at a multiple of 8. They are the buffers of an Arrow IPC record batch without
the flatbuffer around it: both ends know the schema, so the numbers of rows and the text lengths say
where each buffer is. Measured CPU time of encode and decode for 5 columns of numbers: 8 µs for 1 or
10 rows and 44 µs for 10,000; Arrow IPC takes 44 µs and 91 µs. Small frames are the rule when a
stream is calm, and there each call counts: hence few calls below, and checks in line.

Bytes from the wire are hostile until checked: any fault in them is a `FrameError`.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Sequence, Set
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.actors.wire import extras
from slackwater.actors.wire.buffers import (
    BOOL,
    FEW_ROWS,
    INT64,
    PADDING,
    add_arrow,
    add_text,
    misfit,
    padded,
    read_arrow,
    read_booleans,
    read_text,
    text_size,
    wire_field,
)
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import START_NS, Batch, BoolArray, Columns, Mark, Message, Progress
from slackwater.runtime.model.batch import RowFields
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.schema import storage_type

MAX_BYTES = 16 * 2**20
"""The longest body, 16 MiB: each connection of a hostile peer can make us hold this much."""

HEADER = struct.Struct("<4sBBHqqqqqQQQ")
_KIND_AT = 5  # byte of the header that has the kind
_TEXT = struct.Struct("<2q")  # bytes of text or of an Arrow message, of the validity bitmap
MAGIC = b"SLKW"
VERSION = 7
DATA, GRANT, HELLO, MARK = 1, 2, 3, 4
_TIMES = (("event time", INT64, 8), ("stimulus time", INT64, 8))
_KINDS = {DATA: "data", GRANT: "grant", HELLO: "hello", MARK: "mark"}
# Flags of data; from `extras.FIRST_FLAG` on, those of fields of rows.
_HAS_BATCH, _HAS_TAG, _HAS_ARRIVED, _HAS_NULLS = 1, 2, 4, 8
_OF_DATA = _HAS_BATCH | _HAS_TAG | _HAS_ARRIVED | _HAS_NULLS
_WITHOUT_ROWS = _HAS_TAG | _HAS_ARRIVED
_IS_FINAL = 1  # the only flag of grants


class FrameTooLongError(FrameError):
    """The message is over the limit; half of its rows may fit."""


class GrantFrame(NamedTuple):
    """Grants a sender credit."""

    rows: int
    is_final: bool
    """The receiver has seen the end of the stream: the sender needs no more credit."""


class FrameCodec:
    """Encodes the messages that one end sends, and decodes those that it receives.

    Frames are numbered from 0 in each direction, so a lost or repeated frame is noticed: each end
    has its own codec, for one connection. A refused frame changes nothing. A promise never runs
    back, and no row is older than an earlier promise.

    Args:
        schema: inside types of the rows (`runtime/model/schema.py`).
        columns: names of the columns that travel, in this order.
        row_fields: fields of rows that travel (`Channel.row_fields`).
        may_be_late: rows may be older than promised (`Channel.may_be_late`).
        max_bytes: longest body, sent or accepted.

    Raises:
        ColumnError: a name is not in the schema.
        SchemaError: a type does not travel.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        columns: Sequence[str],
        row_fields: Set[str] = frozenset(),
        may_be_late: bool = True,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._names = tuple(columns)
        self._columns = tuple(wire_field(schema, name) for name in columns)
        self._arrays = (*_TIMES, *self._columns)
        widths = Counter(width for _, _, width in self._arrays)
        self._texts_size = _TEXT.size * widths.pop(0, 0)  # text and Arrow's types have width 0
        self._are_texts = [dtype is None for _, dtype, width in self._columns if not width]
        self._row_size = sum(widths.elements())
        self._widths = tuple(widths.items())  # of (bytes of a value, columns)
        self.max_bytes = max_bytes
        self._fields = extras.carried_fields(row_fields)
        field_flags = sum([carried.flag for carried in self._fields])
        self._flags = {DATA: _OF_DATA | field_flags, GRANT: _IS_FINAL, HELLO: 0, MARK: 0}
        names = ", ".join([carried.name for carried in self._fields])
        self._lines = [f"rows with {names or 'no fields'}"]
        self._lines += [f"{name!r}: {storage_type(schema.field(name).type)}" for name in columns]
        digest = hashlib.sha256("\n".join(self._lines).encode()).digest()
        self._fingerprint = int.from_bytes(digest[:8], "little")
        self._sent = 0
        self._received = 0
        self._may_be_late = may_be_late
        self._promised_ns = START_NS  # by the frames received

    # --- sending ---

    def encode(self, message: Message, *, sent_at_ns: int) -> bytes:
        """Return the message as one frame; see `encode_parts`."""
        return b"".join(self.encode_parts(message, sent_at_ns=sent_at_ns)[0])

    def encode_parts(self, message: Message, *, sent_at_ns: int) -> tuple[list[Any], int]:
        """Return the contiguous buffers of the message's frame, and its bytes.

        Raises:
            FrameTooLongError: the body would be longer than `max_bytes`.
            FrameError: the batch does not fit the schema.
        """
        batch = message.batch
        flags, rows, size = 0, 0, 0
        parts: list[Any] = []
        if batch is not None:
            flags, rows = _HAS_BATCH, len(batch.event_time_ns)
            parts, size, masks = self._body(batch, rows)
            if masks:
                flags |= _HAS_NULLS
                size += extras.add_masks(parts, masks, columns=len(self._columns), rows=rows)
            if self._fields:
                own, added = extras.add_fields(parts, batch.fields, self._fields, rows=rows)
                flags, size = flags | own, size + added
        promise_ns, stimulus_ns, newest_ns, arrived = message.progress
        if arrived is not None:
            flags |= _HAS_ARRIVED
            size += extras.add_arrived(parts, arrived)
        if message.tag is not None:
            flags |= _HAS_TAG
            size += extras.add_tag(parts, message.tag)
        if size > self.max_bytes:
            raise self._too_long(DATA, rows=rows, size=size)
        header = HEADER.pack(
            MAGIC,
            VERSION,
            DATA,
            flags,
            rows,
            promise_ns,
            stimulus_ns,
            newest_ns,
            sent_at_ns,
            self._sent,
            self._fingerprint,
            size,
        )
        self._sent += 1
        return [header, *parts], HEADER.size + size

    def encode_grant(self, grant: GrantFrame) -> bytes:
        """Return the credit as a frame."""
        flags = _IS_FINAL if grant.is_final else 0
        return self._control(GRANT, b"", flags=flags, rows=grant.rows)

    def encode_hello(self) -> bytes:
        """Return the frame that names our columns: the first in its direction."""
        text = "\n".join(self._lines).encode()
        return self._control(HELLO, text)

    def encode_mark(self, mark: Mark) -> bytes:
        """Return the mark of a checkpoint as a frame."""
        return self._control(MARK, b"", rows=mark.number)

    def _body(self, batch: Batch, rows: int) -> tuple[list[Any], int, dict[int, BoolArray]]:
        """Return the buffers of a batch, their bytes, and {place of a column: its mask}.

        Raises:
            FrameError: the batch does not fit the schema.
        """
        arrays: list[Any] = [batch.event_time_ns, batch.stimulus_time_ns]
        arrays += map(batch.columns.get, self._names)
        parts: list[Any] = [b""]  # the first holds the texts' lengths
        size = self._texts_size + rows * self._row_size
        shape = (rows,)
        masks: dict[int, BoolArray] = {}
        own = len(_TIMES)  # place of the first column
        for place, (name, dtype, width) in enumerate(self._arrays):
            values = arrays[place]
            if not width:
                bitmap = 0
                if isinstance(dtype, pa.DataType):
                    length = add_arrow(parts, name, values, dtype, rows=rows)
                    size += padded(length)
                else:
                    length, bitmap = add_text(parts, name, values, rows=rows)
                    size += text_size(rows, length, bitmap)
                parts[0] += _TEXT.pack(length, bitmap)
                continue
            if type(values) is Nullable and place >= own:
                if values.null_count:
                    masks[place - own] = values.valid
                values = values.values
            if (
                not isinstance(values, np.ndarray)
                or (values.dtype is not dtype and values.dtype != dtype)
                or values.shape != shape
            ):
                raise misfit(name, values, f"a NumPy array of {rows} {dtype}")
            is_copied = rows <= FEW_ROWS or not values.flags.c_contiguous
            parts.append(values.tobytes() if is_copied else values)
            if over := rows * width & 7:
                parts.append(PADDING[over])
                size += 8 - over
        return parts, size, masks

    def _control(self, kind: int, body: bytes, *, flags: int = 0, rows: int = 0) -> bytes:
        """Return a frame about the channel itself."""
        size = len(body)
        if size > self.max_bytes:
            raise self._too_long(kind, rows=rows, size=size)
        number, of = self._sent, self._fingerprint
        header = HEADER.pack(MAGIC, VERSION, kind, flags, rows, 0, 0, 0, 0, number, of, size)
        self._sent += 1
        return header + body

    def _too_long(self, kind: int, *, rows: int, size: int) -> FrameTooLongError:
        return FrameTooLongError(
            f"a {_KINDS[kind]} frame of {rows} rows would be {size} bytes long, and the "
            f"limit is {self.max_bytes}; hand over fewer rows at a time, or shorter text"
        )

    # --- receiving ---

    def decode(self, frame: bytes) -> tuple[Message, int]:
        """Return the message of a data frame, and its time of sending (sender's clock, ns).

        The message's arrays are read-only views of the frame.

        Raises:
            FrameError: the bytes are not the next frame of this channel, whole and sound.
        """
        flags, rows, progress, sent_at_ns = self._open(frame, DATA)
        batch, tag, start = None, None, HEADER.size
        masks: dict[int, BoolArray] = {}
        if flags & _HAS_TAG:
            tag, start = extras.read_tag(frame, start, rows=rows), start + extras.TAG_SIZE
        if flags & _HAS_ARRIVED:
            progress = progress.with_arrived(extras.read_arrived(frame, start))
            start += extras.ARRIVED_SIZE
        if flags & _HAS_NULLS:
            masks, start = extras.read_masks(frame, start, columns=len(self._columns), rows=rows)
        if flags & _HAS_BATCH:
            end = len(frame)
            fields: RowFields = {}
            if self._fields:
                fields, end = extras.read_fields(frame, self._fields, flags, rows=rows)
            batch = self._read_batch(frame, rows, start, end, fields)
            for place, mask in masks.items():
                name, _, width = self._columns[place]
                if not width:
                    raise FrameError(f"column {name!r} has a mask, and its own bitmap")
                batch.columns[name] = Nullable(np.asarray(batch.columns[name]), mask)
        elif rows or flags & ~_WITHOUT_ROWS or len(frame) > start:
            raise FrameError(f"a frame without a batch says {rows} rows, {len(frame)} bytes")
        promised_ns = self._promised_ns
        if progress.promise_ns < promised_ns:
            raise FrameError(
                f"frame {self._received} promises {progress.promise_ns}, and {promised_ns} had "
                "been promised: a promise never runs back"
            )
        if rows and not self._may_be_late:
            times = batch.event_time_ns  # type: ignore[union-attr]  # it has rows
            oldest_ns = min(times.tolist()) if rows <= FEW_ROWS else int(times.min())
            if oldest_ns < promised_ns:
                raise FrameError(
                    f"frame {self._received} has a row of {oldest_ns}, older than the promised "
                    f"{promised_ns}; nothing on this channel may come late"
                )
        self._promised_ns = progress.promise_ns
        self._received += 1
        return Message(batch, progress, tag), sent_at_ns

    def decode_grant(self, frame: bytes) -> GrantFrame:
        """Return the credit of a grant frame.

        Raises:
            FrameError: the bytes are not the next frame of this channel, or no grant.
        """
        flags, rows, *_ = self._open(frame, GRANT)
        if len(frame) > HEADER.size:
            raise FrameError(f"a grant has no body, and this one has {len(frame)} bytes")
        if not rows and not flags & _IS_FINAL:
            raise FrameError("a grant of 0 rows that is not the last says nothing")
        self._received += 1
        return GrantFrame(rows, is_final=bool(flags & _IS_FINAL))

    def decode_mark(self, frame: bytes) -> Mark:
        """Return the mark of a mark frame.

        Raises:
            FrameError: the bytes are not the next frame of this channel, or no mark.
        """
        _, number, *_ = self._open(frame, MARK)
        if len(frame) > HEADER.size or not number:
            raise FrameError(f"mark {number} has {len(frame)} bytes; it has a number, and no body")
        self._received += 1
        return Mark(number)

    def check_hello(self, frame: bytes) -> None:
        """Check that the other end has the same columns.

        Raises:
            FrameError: the columns differ (names the first), or the frame is not a hello.
        """
        _, rows, *_ = self._open(frame, HELLO)
        ours = "\n".join(self._lines).encode()
        theirs = frame[HEADER.size :]
        if theirs != ours or rows:
            raise FrameError(self._difference(theirs))
        self._received += 1

    @staticmethod
    def is_mark(frame: bytes) -> bool:
        """Whether a frame says that it is a mark; `decode_mark` checks it."""
        return len(frame) >= HEADER.size and frame[_KIND_AT] == MARK

    def _open(self, frame: bytes, kind: int) -> tuple[int, int, Progress, int]:
        """Check a header; return (flags, rows, progress, time of sending)."""
        if len(frame) < HEADER.size:
            raise FrameError(f"{len(frame)} bytes are not a frame; a header has {HEADER.size}")
        (
            magic,
            version,
            got_kind,
            flags,
            rows,
            promise_ns,
            stimulus_ns,
            newest_ns,
            sent_at_ns,
            number,
            fingerprint,
            size,
        ) = HEADER.unpack_from(frame)
        if magic != MAGIC or version != VERSION:
            raise FrameError(
                f"a frame starts with {magic!r}, version {version}; we speak {MAGIC!r}, version "
                f"{VERSION}; run the same release of slackwater on every node"
            )
        if got_kind != kind:
            raise FrameError(
                f"frame {number} is of kind {_KINDS.get(got_kind, got_kind)}, and only "
                f"{_KINDS[kind]} may come here now"
            )
        if flags & ~self._flags[kind] or rows < 0:
            raise FrameError(f"frame {number} has flags {flags:#x} and {rows} rows")
        if number != self._received:
            raise FrameError(f"frame {number} came where frame {self._received} was due")
        if size != len(frame) - HEADER.size or size > self.max_bytes:
            raise FrameError(
                f"frame {number} says that its body has {size} bytes, and it has "
                f"{len(frame) - HEADER.size}; the limit is {self.max_bytes}"
            )
        if fingerprint != self._fingerprint and kind != HELLO:
            raise FrameError(f"frame {number} has another schema than {self._lines}")
        return flags, rows, Progress(promise_ns, stimulus_ns, newest_ns), sent_at_ns

    def _difference(self, theirs: bytes) -> str:
        lines = theirs.decode(errors="replace").split("\n")
        for our_line, their_line in zip_longest(self._lines, lines, fillvalue="nothing"):
            if our_line != their_line:
                return (
                    f"the other end of the channel has {their_line[:200]!r} where we have "
                    f"{our_line[:200]!r}; both ends must come from one plan"
                )
        return "the other end's hello is malformed"

    def _read_batch(
        self, frame: bytes, rows: int, start: int, end: int, fields: RowFields
    ) -> Batch:
        size = end - start
        expected = self._texts_size
        for width, columns in self._widths:
            expected += columns * padded(rows * width)
        if expected > size:
            raise FrameError(f"{rows} rows do not fit into a frame of {len(frame)} bytes")
        at = start + self._texts_size
        texts = []
        lengths = _TEXT.iter_unpack(frame[start:at]) if self._texts_size else ()
        for (length, bitmap), is_text in zip(lengths, self._are_texts, strict=False):
            if length < 0 or bitmap not in (0, (rows + 7) // 8 if is_text else 0):
                raise FrameError(f"{rows} values cannot have {length} bytes, bitmap of {bitmap}")
            own = text_size(rows, length, bitmap) if is_text else padded(length)
            texts.append((length, bitmap, own))
            expected += own
        if expected != size:
            raise FrameError(f"a body of {rows} rows has {expected} bytes, and this one has {size}")
        # From here on every buffer lies within the frame, at a multiple of 8.
        int64s = np.frombuffer(frame, INT64)  # slicing it is cheaper than another view
        start = at // 8
        middle, stop = start + rows, start + 2 * rows
        at += len(_TIMES) * 8 * rows
        values: Columns = {}
        for name, dtype, width in self._columns:
            if dtype is INT64:
                values[name] = int64s[at // 8 : at // 8 + rows]
            elif not width:
                length, bitmap, size = texts.pop(0)
                if isinstance(dtype, pa.DataType):
                    values[name] = read_arrow(name, frame, at, dtype, rows=rows, length=length)
                else:
                    values[name] = read_text(
                        name, frame, at, rows=rows, length=length, bitmap=bitmap
                    )
                at += size
            elif dtype == BOOL:
                values[name] = read_booleans(name, frame, at, rows=rows)
            else:
                values[name] = np.frombuffer(frame, dtype, rows, at)
            at += padded(rows * width)
        return Batch(
            event_time_ns=int64s[start:middle],
            stimulus_time_ns=int64s[middle:stop],
            columns=values,
            **fields,
        )
