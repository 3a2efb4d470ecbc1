"""Estimate the bytes of a block that is read ahead: they bound the queue."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["BlockSize"]

_SMALL_BYTES = 16_384
"""A block may report up to this size even if it is a part of another object."""


class BlockSize:
    """Estimates the sizes of one input's blocks, faster than Arrow can tell them."""

    def __init__(self) -> None:
        self._known: pa.Schema | None = None  # of the last block
        self._row_bits: int | None = None  # None: rows differ in size

    def of(self, block: pa.RecordBatch) -> int:
        """Return about how many bytes a block has, and hardly fewer."""
        schema = block.schema
        if self._known is None or not schema.equals(self._known):
            self._known, self._row_bits = schema, _row_bits(schema)
        if self._row_bits is not None:
            return len(block) * self._row_bits // 8 + 2 * len(schema)  # parts of bytes
        whole = int(block.get_total_buffer_size())  # also of a whole that it is part of
        return whole if whole <= _SMALL_BYTES else int(block.nbytes)


def _row_bits(schema: pa.Schema) -> int | None:
    bits = 0  # one bit for a null
    for kind in schema.types:
        if not pa.types.is_primitive(kind):
            return None
        bits += kind.bit_width + 1
    return bits
