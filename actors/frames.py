"""One message as one run of bytes: a fixed header and the Arrow buffers of its columns.

```
header  64 bytes, little endian: magic, version, kind, flags, rows, promise_ns,
        promise_stimulus_ns, sent_at_ns, frame number, schema fingerprint, body length
body    for each text column: bytes of text, bytes of validity bitmap (int64 each)
        event time, stimulus time, writers (where the channel has them): int64
        the columns: numbers as they are, timestamps as int64, booleans one byte each, 0 or
        1 (Arrow's bool8), text as Arrow's offsets (int32, from 0), text, and validity
        bitmap (none without nulls)
```

Every buffer starts at a multiple of 8. They are the buffers of an Arrow IPC record batch
without the flatbuffer around it: both ends know the schema, so rows and text lengths say
where each one is. Measured, encode and decode of 5 columns of numbers, 2 busy cores: 16 µs
for 10 rows and 43 µs for 10,000; Arrow IPC 55 µs and 107 µs.

Bytes from the wire are hostile until checked: whatever is wrong with them is a `FrameError`.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import pyarrow as pa

from actors.buffers import BOOL, INT64, BodyReader, BodyWriter, padded, wire_dtype
from runtime.errors import FrameError
from runtime.model import Batch, Columns, Message
from runtime.model.schema import wire_type

MAX_BYTES = 64 * 2**20
"""The longest body, 64 MiB: what one frame of a hostile peer can make us hold."""

HEADER = struct.Struct("<4sBBHqqqqQQQ")
MAGIC = b"SLKW"
VERSION = 1
DATA, GRANT, HELLO = 1, 2, 3
_KINDS = {DATA: "data", GRANT: "grant", HELLO: "hello"}
_HAS_BATCH, _IS_FINAL = 1, 1  # the one flag of data, and of grants
_FLAGS = {DATA: _HAS_BATCH, GRANT: _IS_FINAL, HELLO: 0}  # {kind: flags it may have}


class FrameTooLongError(FrameError):
    """The message is over the limit; half of its rows may fit."""


class Grant(NamedTuple):
    """Credit given back."""

    rows: int
    is_final: bool
    """The receiver has seen the end of the stream: nothing more needs credit."""


class FrameCodec:
    """Encodes what one end of a channel sends, and decodes what it receives.

    Frames are numbered from 0 in each direction, so a lost or repeated one is noticed: each
    end has a codec of its own, for one connection. A refused frame changes nothing.

    Args:
        schema: the rows' inside types (`runtime/model/schema.py`).
        columns: the names that travel, in this order.
        with_writers: whether batches have `writers`.
        max_bytes: the longest body that is sent or accepted.

    Raises:
        ColumnError: a name that is not in the schema.
        SchemaError: a type that does not travel.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        columns: Sequence[str],
        with_writers: bool,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._dtypes = {name: wire_dtype(schema, name) for name in columns}  # None is text
        text_columns = sum(dtype is None for dtype in self._dtypes.values())
        self._text_lengths = struct.Struct(f"<{2 * text_columns}q")
        numbers = [dtype.itemsize for dtype in self._dtypes.values() if dtype is not None]
        numbers += [INT64.itemsize] * (3 if with_writers else 2)
        self._widths = Counter(numbers)  # {bytes of one value: columns}
        self._with_writers = with_writers
        self.max_bytes = max_bytes
        self._lines = ["writers" if with_writers else "no writers"]
        self._lines += [f"{name!r}: {wire_type(schema.field(name).type)}" for name in columns]
        digest = hashlib.sha256("\n".join(self._lines).encode()).digest()
        self._fingerprint = int.from_bytes(digest[:8], "little")
        self._sent = 0
        self._received = 0

    # --- sending ---

    def encode(self, message: Message, *, sent_at_ns: int) -> bytes:
        """Return the message as one frame.

        Raises:
            FrameTooLongError: the body would be longer than `max_bytes`.
            FrameError: the batch is not of this schema.
        """
        body = BodyWriter()
        if message.batch is not None:
            self._add_batch(body, message.batch)
        return self._frame(
            DATA,
            body,
            flags=0 if message.batch is None else _HAS_BATCH,
            rows=message.rows,
            times=(message.promise_ns, message.promise_stimulus_ns, sent_at_ns),
        )

    def encode_grant(self, grant: Grant) -> bytes:
        """Return the credit as a frame."""
        flags = _IS_FINAL if grant.is_final else 0
        return self._frame(GRANT, BodyWriter(), flags=flags, rows=grant.rows)

    def encode_hello(self) -> bytes:
        """Return the frame that names our columns: the first in its direction."""
        body = BodyWriter()
        text = "\n".join(self._lines).encode()
        body.parts.append(text)
        body.size = len(text)
        return self._frame(HELLO, body)

    def _add_batch(self, body: BodyWriter, batch: Batch) -> None:
        rows = len(batch)
        text_lengths: list[int] = []
        body.add(b"", self._text_lengths.size)  # filled in below
        body.add_numbers("event time", batch.event_time_ns, rows=rows, dtype=INT64)
        body.add_numbers("stimulus time", batch.stimulus_time_ns, rows=rows, dtype=INT64)
        if self._with_writers:
            body.add_numbers("writers", batch.writers, rows=rows, dtype=INT64)
        for name, dtype in self._dtypes.items():
            values = batch.columns.get(name)
            if dtype is None:
                text_lengths += body.add_text(name, values, rows=rows)
            else:
                body.add_numbers(name, values, rows=rows, dtype=dtype)
        body.parts[0] = self._text_lengths.pack(*text_lengths)

    def _frame(
        self,
        kind: int,
        body: BodyWriter,
        *,
        flags: int = 0,
        rows: int = 0,
        times: tuple[int, int, int] = (0, 0, 0),
    ) -> bytes:
        if body.size > self.max_bytes:
            raise FrameTooLongError(
                f"a {_KINDS[kind]} frame of {rows} rows would be {body.size} bytes long, and the "
                f"limit is {self.max_bytes}; hand over fewer rows at a time, or shorter text"
            )
        header = HEADER.pack(
            MAGIC, VERSION, kind, flags, rows, *times, self._sent, self._fingerprint, body.size
        )
        self._sent += 1
        return b"".join((header, *body.parts))

    # --- receiving ---

    def decode(self, frame: bytes) -> tuple[Message, int]:
        """Return the message of a data frame and when it was sent (its sender's clock, ns).

        Its arrays are read-only views of the frame.

        Raises:
            FrameError: anything that is not the next frame of this channel, whole and sound.
        """
        flags, rows, promise_ns, promise_stimulus_ns, sent_at_ns = self._open(frame, DATA)
        batch = None
        if flags & _HAS_BATCH:
            batch = self._read_batch(frame, rows)
        elif rows or len(frame) > HEADER.size:
            raise FrameError(f"a frame without a batch says {rows} rows, {len(frame)} bytes")
        self._received += 1
        return Message(batch, promise_ns, promise_stimulus_ns), sent_at_ns

    def decode_grant(self, frame: bytes) -> Grant:
        """Return the credit of a grant frame.

        Raises:
            FrameError: anything that is not the next frame of this channel, and a grant.
        """
        flags, rows, *_ = self._open(frame, GRANT)
        if len(frame) > HEADER.size:
            raise FrameError(f"a grant has no body, and this one has {len(frame)} bytes")
        if not rows and not flags & _IS_FINAL:
            raise FrameError("a grant of 0 rows that is not the last says nothing")
        self._received += 1
        return Grant(rows, is_final=bool(flags & _IS_FINAL))

    def check_hello(self, frame: bytes) -> None:
        """Check that the other end has our columns.

        Raises:
            FrameError: it has others (names the first that differs), or this is no hello.
        """
        _, rows, *_ = self._open(frame, HELLO)
        ours = "\n".join(self._lines).encode()
        theirs = frame[HEADER.size :]
        if theirs != ours or rows:
            raise FrameError(self._difference(theirs))
        self._received += 1

    def _open(self, frame: bytes, kind: int) -> tuple[int, int, int, int, int]:
        """Check a header; return (flags, rows, promise, promise's stimulus, sent at)."""
        if len(frame) < HEADER.size:
            raise FrameError(f"{len(frame)} bytes are no frame: a header has {HEADER.size}")
        magic, version, got_kind, flags, rows, promise_ns, stimulus_ns, sent_at_ns, *rest = (
            HEADER.unpack_from(frame)
        )
        number, fingerprint, size = rest
        if magic != MAGIC or version != VERSION:
            raise FrameError(
                f"a frame starts with {magic!r}, version {version}; we speak {MAGIC!r}, version "
                f"{VERSION}: run the same release of slackwater on every node"
            )
        if got_kind != kind:
            raise FrameError(
                f"frame {number} is of kind {_KINDS.get(got_kind, got_kind)}, and only "
                f"{_KINDS[kind]} may come here now"
            )
        if flags & ~_FLAGS[kind] or rows < 0:
            raise FrameError(f"frame {number} has flags {flags:#x} and {rows} rows")
        if number != self._received:
            raise FrameError(f"frame {number} came where frame {self._received} was due")
        if size != len(frame) - HEADER.size or size > self.max_bytes:
            raise FrameError(
                f"frame {number} says that its body has {size} bytes, and it has "
                f"{len(frame) - HEADER.size}; the limit is {self.max_bytes}"
            )
        if fingerprint != self._fingerprint and kind != HELLO:
            raise FrameError(f"frame {number} is of another schema than {self._lines}")
        return flags, rows, promise_ns, stimulus_ns, sent_at_ns

    def _difference(self, theirs: bytes) -> str:
        lines = theirs.decode(errors="replace").split("\n")
        for our_line, their_line in zip_longest(self._lines, lines, fillvalue="nothing"):
            if our_line != their_line:
                return (
                    f"the other end of the channel has {their_line[:200]!r} where we have "
                    f"{our_line[:200]!r}; both ends must come from one plan"
                )
        return "the other end's hello is malformed"

    def _read_batch(self, frame: bytes, rows: int) -> Batch:
        expected = self._text_lengths.size
        for width, columns in self._widths.items():
            expected += columns * padded(rows * width)
        if expected > len(frame) - HEADER.size:
            raise FrameError(f"{rows} rows do not fit into a frame of {len(frame)} bytes")
        lengths = self._text_lengths.unpack_from(frame, HEADER.size)
        for length, bitmap in zip(lengths[::2], lengths[1::2], strict=True):
            if length < 0 or bitmap not in (0, (rows + 7) // 8):
                raise FrameError(f"{rows} texts cannot have {length} bytes, bitmap of {bitmap}")
            expected += padded(4 * (rows + 1)) + padded(length) + padded(bitmap)
        if expected != len(frame) - HEADER.size:
            raise FrameError(
                f"a body of {rows} rows has {expected} bytes, and this one has "
                f"{len(frame) - HEADER.size}"
            )
        # From here on every buffer lies within the frame.
        view = BodyReader(frame, rows=rows, start=HEADER.size + self._text_lengths.size)
        event_time_ns, stimulus_time_ns = view.numbers(INT64), view.numbers(INT64)
        writers = view.numbers(INT64) if self._with_writers else None
        values: Columns = {}
        text_lengths = iter(lengths)
        for name, dtype in self._dtypes.items():
            if dtype is None:
                values[name] = view.text(name, next(text_lengths), bitmap=next(text_lengths))
            elif dtype == BOOL:
                values[name] = view.booleans(name)
            else:
                values[name] = view.numbers(dtype)
        return Batch(event_time_ns, stimulus_time_ns, values, writers)
