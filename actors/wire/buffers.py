"""Convert a column to Arrow buffers and back: parts of a frame's body (`actors/wire/frames.py`)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import ColumnError, FrameError
from slackwater.runtime.model.nullable import bitmap_of, valid_bits
from slackwater.runtime.model.schema import is_text, number_dtype, storage_type

INT64 = np.dtype(np.int64)
INT32 = np.dtype(np.int32)
UINT8 = np.dtype(np.uint8)
BOOL = np.dtype(np.bool_)
Field: TypeAlias = tuple[str, np.dtype[Any] | pa.DataType | None, int]
"""A column on the wire: its name, its type, and bytes of one value (0: they differ).

The type is NumPy's for numbers, None for text, and Arrow's for all others.
"""

FEW_ROWS = 64
"""Up to here a copy of a column costs less than a check of its memory layout."""
PADDING = [b"\0" * (-size % 8) for size in range(8)]  # [size % 8]
_FEW_BYTES = 4096  # the same for text
_STRING = pa.string()
_NO_TEXT = np.zeros(1, dtype=np.int32)  # its offsets


def padded(size: int) -> int:
    """Round a size up to a multiple of 8."""
    return (size + 7) & ~7


def text_size(rows: int, length: int, bitmap: int) -> int:
    """Return the bytes of a text column's buffers, with padding.

    Args:
        rows: number of rows of the batch.
        length: bytes of the text.
        bitmap: bytes of validity bitmap; 0 without nulls.
    """
    return (4 * rows + 11 & ~7) + (length + 7 & ~7) + (bitmap + 7 & ~7)


def add_text(parts: list[Any], name: str, values: Any, *, rows: int) -> tuple[int, int]:
    """Add offsets, text and bitmap of an Arrow array; return bytes of text, of bitmap.

    Raises:
        FrameError: the values are not an array of `rows` strings.
    """
    if not isinstance(values, pa.StringArray) or len(values) != rows:
        raise misfit(name, values, f"an Arrow array of {rows} strings")
    validity, offsets, text = values.buffers()
    bounds: npt.NDArray[np.int32] = _NO_TEXT
    if rows:
        bounds = np.frombuffer(offsets, INT32, rows + 1, values.offset * 4)
    start, stop = bounds.item(0), bounds.item(-1)
    _add(parts, bounds - bounds[0] if start else bounds, 4 * (rows + 1))
    _add(parts, text.slice(start, stop - start) if stop > start else b"", stop - start)
    if not values.null_count:
        return stop - start, 0
    size = (rows + 7) // 8
    if values.offset % 8:
        _add(parts, bitmap_of(valid_bits(values)), size)
    else:
        _add(parts, validity.slice(values.offset // 8, size), size)
    return stop - start, size


def _add(parts: list[Any], buffer: Any, size: int) -> None:
    parts.append(buffer)
    if size & 7:
        parts.append(PADDING[size & 7])


def read_text(name: str, frame: bytes, at: int, *, rows: int, length: int, bitmap: int) -> pa.Array:
    """Return a text column, as a view of the frame.

    Args:
        name: name of the column, for the error.
        frame: bytes of the whole frame.
        at: byte at which the offsets begin.
        rows: number of rows of the batch.
        length: bytes of the text.
        bitmap: bytes of validity bitmap; 0 without nulls.

    Raises:
        FrameError: the offsets or the text are not sound.
    """
    bounds = np.frombuffer(frame, INT32, rows + 1, at)
    is_whole = bounds.item(0) == 0 and bounds.item(-1) == length
    # A single text with these bounds has no offsets that could be out of order.
    if not is_whole or (rows > 1 and largest(bounds[1:] < bounds[:-1])):
        raise FrameError(f"text column {name!r} has offsets out of order or out of its text")
    text_at = at + padded(4 * (rows + 1))
    whole = pa.py_buffer(frame)
    offsets, text = whole.slice(at, 4 * (rows + 1)), whole.slice(text_at, length)
    validity = whole.slice(text_at + padded(length), bitmap) if bitmap else None
    values = pa.Array.from_buffers(_STRING, rows, [validity, offsets, text])
    # ASCII is sound wherever it is cut; only other text needs the slow look at each value.
    if not _is_ascii(frame, text_at, length):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as problem:
            raise FrameError(f"text column {name!r} is not text: {problem}") from problem
    return values


def _is_ascii(frame: bytes, at: int, length: int) -> bool:
    if length <= _FEW_BYTES:
        return frame[at : at + length].isascii()
    smallest = np.frombuffer(frame, np.int8, length, at).min()  # no copy
    return bool(smallest >= 0)


def add_arrow(parts: list[Any], name: str, values: Any, kind: pa.DataType, *, rows: int) -> int:
    """Add an Arrow array of another type as an IPC message; return its bytes.

    Raises:
        FrameError: the values are not an array of `rows` values of this type.
    """
    if not isinstance(values, pa.Array) or values.type != kind or len(values) != rows:
        raise misfit(name, values, f"an Arrow array of {rows} {kind}")
    message = pa.record_batch([values], names=[""]).serialize()
    _add(parts, message, message.size)
    return int(message.size)


def read_arrow(
    name: str, frame: bytes, at: int, kind: pa.DataType, *, rows: int, length: int
) -> pa.Array:
    """Return a column that `add_arrow` wrote, as a view of the frame.

    Raises:
        FrameError: the message is not sound, or has another number of rows.
    """
    message = pa.py_buffer(frame).slice(at, length)
    try:
        (values,) = pa.ipc.read_record_batch(message, pa.schema([("", kind)])).columns
        values.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise FrameError(f"column {name!r} is not of type {kind}: {problem}") from problem
    if len(values) != rows:
        raise FrameError(f"column {name!r} has {len(values)} values in a frame of {rows} rows")
    return values


def read_booleans(name: str, frame: bytes, at: int, *, rows: int) -> npt.NDArray[np.bool_]:
    """Return booleans as a view of the frame; `FrameError` if not all 0 or 1."""
    values = np.frombuffer(frame, UINT8, rows, at)
    if rows and largest(values) > 1:
        raise FrameError(f"column {name!r} has booleans other than 0 and 1")
    return values.view(BOOL)


def largest(values: npt.NDArray[Any]) -> Any:
    """Return the largest value of an array that has one."""
    # `values.max()` takes a microsecond longer.
    return values.item(values.argmax())


def misfit(name: str, values: Any, wanted: str) -> FrameError:
    """Return the error for a column that does not fit the schema."""
    got = type(values).__name__
    if isinstance(values, np.ndarray):
        got = f"NumPy array of shape {values.shape} and type {values.dtype}"
    elif isinstance(values, pa.Array):
        got = f"Arrow array of {len(values)} {values.type}"
    return FrameError(
        f"column {name!r} is to travel as {wanted}, and the batch has "
        f"{got}; return columns of the types the step was built with"
    )


def wire_field(schema: pa.Schema, name: str) -> Field:
    """Return the wire form of a column.

    Raises:
        ColumnError: the schema has no such column.
    """
    if name not in schema.names:
        raise ColumnError(f"column {name!r} is to travel, and the schema has {schema.names}")
    kind = schema.field(name).type
    dtype = number_dtype(kind)
    if dtype is not None:
        return name, dtype, dtype.itemsize
    return name, None if is_text(kind) else storage_type(kind), 0
