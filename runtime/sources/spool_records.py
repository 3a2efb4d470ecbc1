"""Records of a spool keep rows of an input that is read once, in files.

```
file 1   head │ block │ block │ block ┐ half a block: cut off, the process was killed
file 2   head ("file 1 ends at 4,096") │ block │ end of the input
```

A position is the number of a file and the place of a record in it. Rows are an Arrow stream each.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

from slackwater.runtime.model.arrow_streams import block_of
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, EndOfInput

__all__ = ["DamagedSpool", "Head", "Kind", "Place", "Record", "pack", "unpack"]

_FORMAT = 1
_MAGIC = b"SWSP"
_LENGTHS = struct.Struct("!4sBHQ")  # magic, kind, bytes of the input's position, of the body
_CHECK = struct.Struct("!I")
_START = _LENGTHS.size + _CHECK.size


class DamagedSpool(Exception):
    """Bytes where a record must be, and that are not one."""


class Kind(IntEnum):
    """Kinds of records."""

    HEAD = 0
    ROWS = 1
    BAD_ROWS = 2
    END = 3


class Place(NamedTuple):
    """Place of a record in a spool.

    Attributes:
        file: number of its file, from 1.
        offset: place of its first byte there.
    """

    file: int
    offset: int

    def to_bytes(self) -> bytes:
        """Return it as a position of an input."""
        return b"%d:%d" % self

    @classmethod
    def of(cls, at: bytes) -> Place:
        """Return the place that a position names.

        Raises:
            ValueError: the position is of another input.
        """
        file, offset = at.split(b":")
        return cls(int(file), int(offset))


class Record(NamedTuple):
    """A record of a spool.

    Attributes:
        kind: kind of the record.
        at: position of the input that came with the rows; empty if none came.
        body: bytes of the record.
        end: place after the record in its file.
    """

    kind: Kind
    at: bytes
    body: pa.Buffer
    end: int

    def polled(self) -> pa.RecordBatch | BadRows | EndOfInput:
        """Return what the input had handed over."""
        if self.kind is Kind.END:
            return END_OF_INPUT
        rows = block_of(self.body)
        return BadRows(rows) if self.kind is Kind.BAD_ROWS else rows


class Head(NamedTuple):
    """First record of a file.

    Attributes:
        ends: {number of an earlier file: where it ends}; what lies there after is of no account.
        at: position of the input that came with the last rows before this file; empty if none.
    """

    ends: Mapping[int, int]
    at: bytes

    def to_bytes(self) -> bytes:
        """Return it as a record."""
        plain = {"format": _FORMAT, "ends": {str(n): end for n, end in self.ends.items()}}
        return pack(Kind.HEAD, self.at, json.dumps(plain).encode())

    @classmethod
    def of(cls, record: Record) -> Head:
        """Return the head in a record.

        Raises:
            DamagedSpool: the record is not a head, or of another format.
        """
        if record.kind is not Kind.HEAD:
            raise DamagedSpool("it does not begin with a head")
        plain = json.loads(record.body.to_pybytes())
        if plain["format"] != _FORMAT:
            raise DamagedSpool(f"it is of format {plain['format']}, and {_FORMAT} can be read")
        return cls({int(n): end for n, end in plain["ends"].items()}, record.at)


def pack(kind: Kind, at: bytes = b"", body: bytes | pa.Buffer = b"") -> bytes:
    """Return the bytes of a record."""
    contents = memoryview(body)
    lengths = _LENGTHS.pack(_MAGIC, kind, len(at), contents.nbytes)
    check = zlib.crc32(contents, zlib.crc32(at, zlib.crc32(lengths)))
    return b"".join((lengths, _CHECK.pack(check), at, contents))


def unpack(data: memoryview, offset: int) -> Record | None:
    """Return the record at a place; None if the data end before its end.

    A last record whose check is wrong counts as half-written, and so do zeros up to the end: a
    power cut may leave both.

    Args:
        data: bytes of the file.
        offset: place of the record.

    Raises:
        DamagedSpool: the bytes there are another's, or were changed.
    """
    left = len(data) - offset
    if left < _START:
        return None
    magic, kind, at_bytes, body_bytes = _LENGTHS.unpack_from(data, offset)
    if magic != _MAGIC or kind not in Kind.__members__.values():
        if not bytes(data[offset:]).strip(b"\0"):
            return None
        raise DamagedSpool(f"there is no record at byte {offset:,}")
    whole = _START + at_bytes + body_bytes
    if left < whole:
        return None
    (check,) = _CHECK.unpack_from(data, offset + _LENGTHS.size)
    contents = data[offset + _START : offset + whole]
    if zlib.crc32(contents, zlib.crc32(data[offset : offset + _LENGTHS.size])) != check:
        if left == whole:
            return None
        raise DamagedSpool(f"the record at byte {offset:,} was changed: its check is wrong")
    at, body = bytes(contents[:at_bytes]), pa.py_buffer(contents[at_bytes:])
    return Record(Kind(kind), at, body, offset + whole)
