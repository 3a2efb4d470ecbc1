"""Kinds of blocks that are read ahead: blocks of one kind have the same columns."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

__all__ = ["BAD", "BlockKind"]

BAD = b"bad"
"""Mark, in a block's metadata, of rows that the input could not read."""

_SMALL_BYTES = 16_384
"""A block may report up to this size even if it is a part of another object."""


class BlockKind(NamedTuple):
    """A kind of blocks: what follows from their columns, computed once."""

    schema: pa.Schema
    row_bits: int | None
    """Of each row; None if rows differ in size."""
    more_bytes: int
    """Of a block with such rows: parts of bytes of each column."""
    joins: bool
    """Whether blocks may be joined: two with dictionaries may not fit one index type."""
    is_bad: bool
    """Whether blocks have rows that the input could not read."""

    @classmethod
    def of(cls, schema: pa.Schema) -> BlockKind:
        """Return the kind of blocks with these columns."""
        return cls(
            schema,
            _row_bits(schema),
            2 * len(schema),
            joins=not any(map(_has_dictionary, schema.types)),
            is_bad=BAD in (schema.metadata or ()),
        )

    def bytes_of(self, block: pa.RecordBatch, rows: int) -> int:
        """Return about how many bytes a block has, and hardly fewer; faster than Arrow does."""
        if self.row_bits is not None:
            return rows * self.row_bits // 8 + self.more_bytes
        whole = int(block.get_total_buffer_size())  # also of a whole that it is part of
        return whole if whole <= _SMALL_BYTES else int(block.nbytes)


def _row_bits(schema: pa.Schema) -> int | None:
    bits = 0  # one bit for a null
    for kind in schema.types:
        if not pa.types.is_primitive(kind):
            return None
        bits += kind.bit_width + 1
    return bits


def _has_dictionary(kind: pa.DataType) -> bool:
    """Return whether a type has a dictionary, at any depth."""
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(n).type) for n in range(kind.num_fields))
