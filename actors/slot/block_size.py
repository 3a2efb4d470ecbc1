"""How many bytes a block has that is read ahead: what is in the queue is bounded by that."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["BlockSize"]

_SMALL_BYTES = 16_384
"""So much may be said to be a block's own, though it be a part of something else."""


class BlockSize:
    """Sizes of one input's blocks; to ask a few rows for theirs takes longer than to read them."""

    def __init__(self) -> None:
        self._known: pa.Schema | None = None  # of the last block
        self._row_bits: int | None = None  # None: rows are not all of one size

    def of(self, block: pa.RecordBatch) -> int:
        """Return about how many bytes a block has, and hardly less than it has."""
        schema = block.schema
        if self._known is None or not schema.equals(self._known):
            self._known, self._row_bits = schema, _row_bits(schema)
        if self._row_bits is not None:
            return len(block) * self._row_bits // 8 + 2 * len(schema)  # parts of bytes
        whole = int(block.get_total_buffer_size())  # also what it is a part of: a table, maybe
        return whole if whole <= _SMALL_BYTES else int(block.nbytes)


def _row_bits(schema: pa.Schema) -> int | None:
    bits = 0  # with that for a null
    for kind in schema.types:
        if not pa.types.is_primitive(kind):
            return None
        bits += kind.bit_width + 1
    return bits
