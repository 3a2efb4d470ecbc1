"""Rows as an Arrow stream of their own, with dictionaries and metadata."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["block_of", "stream_of"]


def stream_of(rows: pa.RecordBatch | pa.Table) -> pa.Buffer:
    """Return rows as an Arrow stream."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema) as stream:
        stream.write(rows)
    return buffer.getvalue()


def block_of(stream: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the rows of a stream that was made of one block."""
    with pa.ipc.open_stream(stream) as blocks:
        return blocks.read_next_batch()
