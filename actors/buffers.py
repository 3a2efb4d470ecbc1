"""The columns of a batch as Arrow buffers one after the other, and back (`actors/frames.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from runtime.errors import ColumnError, FrameError, SchemaError
from runtime.model import Int64Array
from runtime.model.schema import wire_type

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
_PADDING = [b"\0" * size for size in range(8)]


class BodyWriter:
    """The buffers of a body so far, and their size with padding."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.size = 0

    def add(self, buffer: Any, size: int) -> None:
        """Add a buffer of `size` bytes."""
        self.parts.append(buffer)
        self.size += size
        if size % 8:
            self.parts.append(_PADDING[-size % 8])
            self.size += -size % 8

    def add_numbers(self, name: str, values: Any, *, rows: int, dtype: np.dtype[Any]) -> None:
        """Add an array of exactly this length and type; else `FrameError`."""
        if not isinstance(values, np.ndarray) or values.dtype != dtype or values.shape != (rows,):
            raise _misfit(name, values, f"a NumPy array of {rows} {dtype}")
        buffer = values if values.flags.c_contiguous else np.ascontiguousarray(values)
        self.add(buffer, rows * dtype.itemsize)

    def add_text(self, name: str, values: Any, *, rows: int) -> tuple[int, int]:
        """Add offsets, text and bitmap of an Arrow array; return bytes of text and of bitmap."""
        is_text = isinstance(values, pa.Array) and values.type == pa.string()
        if not is_text or len(values) != rows:
            raise _misfit(name, values, f"an Arrow array of {rows} strings")
        validity, offsets, text = values.buffers()
        bounds: Int64Array | npt.NDArray[np.int32] = np.zeros(1, dtype=np.int32)
        if rows:
            bounds = np.frombuffer(offsets, np.int32, rows + 1, values.offset * 4)
        start, stop = int(bounds[0]), int(bounds[-1])
        self.add(bounds - bounds[0] if start else bounds, 4 * (rows + 1))
        self.add(text.slice(start, stop - start) if stop > start else b"", stop - start)
        if not values.null_count:
            return stop - start, 0
        size = (rows + 7) // 8
        if values.offset % 8:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            self.add(np.packbits(valid, bitorder="little"), size)
        else:
            self.add(validity.slice(values.offset // 8, size), size)
        return stop - start, size


class BodyReader:
    """Reads buffers off a body whose length has been checked."""

    def __init__(self, frame: bytes, *, rows: int, start: int) -> None:
        self._frame = frame
        self._rows = rows
        self._at = start

    def numbers(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the next column, shape (rows,), as a view."""
        return np.frombuffer(
            self._frame, dtype, self._rows, self._skip(self._rows * dtype.itemsize)
        )

    def booleans(self, name: str) -> npt.NDArray[np.bool_]:
        """Return the next column, shape (rows,), as a view; `FrameError` if not all 0 or 1."""
        values = self.numbers(np.dtype(np.uint8))
        if values.max(initial=0) > 1:
            raise FrameError(f"column {name!r} has booleans other than 0 and 1")
        return values.view(BOOL)

    def text(self, name: str, length: int, *, bitmap: int) -> pa.Array:
        """Return the next column of text, as a view; `FrameError` if Arrow could not trust it.

        Args:
            name: for the error.
            length: bytes of text.
            bitmap: bytes of validity bitmap; 0 without nulls.
        """
        frame = pa.py_buffer(self._frame)
        at = self._skip(4 * (self._rows + 1))
        bounds = np.frombuffer(self._frame, np.int32, self._rows + 1, at)
        if bounds[0] != 0 or bounds[-1] != length or (bounds[1:] < bounds[:-1]).any():
            raise FrameError(f"text column {name!r} has offsets out of order or out of its text")
        offsets = frame.slice(at, bounds.nbytes)
        text_at = self._skip(length)
        text = frame.slice(text_at, length)
        validity = frame.slice(self._skip(bitmap), bitmap) if bitmap else None
        values = pa.StringArray.from_buffers(self._rows, offsets, text, validity)
        # ASCII is sound wherever it is cut; only other text needs the slow look at each value.
        if np.frombuffer(self._frame, np.int8, length, text_at).min(initial=0) < 0:
            try:
                values.validate(full=True)
            except pa.ArrowInvalid as problem:
                raise FrameError(f"text column {name!r} is no text: {problem}") from problem
        return values

    def _skip(self, size: int) -> int:
        """Return where the buffer at hand starts, and go to the next."""
        at = self._at
        self._at += padded(size)
        return at


def padded(size: int) -> int:
    """Return the size with padding to a multiple of 8."""
    return (size + 7) & ~7


def _misfit(name: str, values: Any, wanted: str) -> FrameError:
    got = type(values).__name__
    if isinstance(values, np.ndarray):
        got = f"NumPy array of shape {values.shape} and type {values.dtype}"
    elif isinstance(values, pa.Array):
        got = f"Arrow array of {len(values)} {values.type}"
    return FrameError(
        f"column {name!r} is to travel as {wanted}, and the batch has: "
        f"{got}; return columns of the types the step was built with"
    )


def wire_dtype(schema: pa.Schema, name: str) -> np.dtype[Any] | None:
    """Return the NumPy type of a column on the wire; None for text.

    Raises:
        ColumnError: the schema has no such column.
        SchemaError: its type does not travel.
    """
    if name not in schema.names:
        raise ColumnError(f"column {name!r} is to travel, and the schema has {schema.names}")
    wire = wire_type(schema.field(name).type)
    if pa.types.is_string(wire):
        return None
    if pa.types.is_integer(wire) or pa.types.is_boolean(wire) or pa.types.is_floating(wire):
        dtype: np.dtype[Any] = np.dtype(wire.to_pandas_dtype())
        return dtype
    raise SchemaError(
        f"column {name!r} has type {wire}, which does not travel; only numbers, booleans, "
        "timestamps and strings do"
    )
