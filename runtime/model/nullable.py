"""Columns of numbers, booleans or times in which some rows are null.

```
values  3  0  7  0        0 where a row is null
valid   ■  □  ■  ■        a column without nulls is a NumPy array alone, and has no mask
```

A null is neither zero nor NaN: NaN is a value of a float column, as in SQL engines. Text and all
other types that NumPy holds badly are Arrow arrays, which have nulls of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "NUMBERS",
    "BoolArray",
    "Nullable",
    "Numbers",
    "as_dtype",
    "bitmap_of",
    "in_own_memory",
    "is_true",
    "nulled",
    "numbers_of",
    "valid_bits",
    "valid_of",
    "without_mask",
]

BoolArray = npt.NDArray[np.bool_]


class Nullable:
    """A column with nulls, shape (rows,). Treat it as frozen.

    Attributes:
        values: shape (rows,); 0 or False where a row is null, so a row that is true is not null.
        valid: shape (rows,): which rows have a value.
    """

    __slots__ = ("valid", "values")

    def __init__(self, values: npt.NDArray[Any], valid: BoolArray) -> None:
        self.values = values
        self.valid = valid

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a column with nulls is not an array: take its values and its mask")

    def __repr__(self) -> str:
        return f"Nullable({self.to_pylist()})"

    def __getitem__(self, rows: slice) -> Nullable:
        return Nullable(self.values[rows], self.valid[rows])

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of the values."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of values and mask."""
        return self.values.nbytes + self.valid.nbytes

    @property
    def null_count(self) -> int:
        """Number of rows that are null."""
        return len(self.valid) - int(np.count_nonzero(self.valid))

    def take(self, rows: npt.NDArray[Any]) -> Nullable:
        """Return the rows at these positions."""
        return Nullable(self.values.take(rows), self.valid.take(rows))

    def to_pylist(self) -> list[Any]:
        """Return Python's values; nulls are None."""
        pairs = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        return [value if is_valid else None for value, is_valid in pairs]

    tolist = to_pylist

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """Return the column as an Arrow array of this type."""
        own = pa.from_numpy_dtype(self.dtype)
        array = None if self.dtype.kind == "b" else in_own_memory(self, own)
        if array is None:
            array = pa.array(self.values, mask=~self.valid)
        return array if own == kind else array.cast(kind)


Numbers: TypeAlias = npt.NDArray[Any] | Nullable
NUMBERS = (np.ndarray, Nullable)
"""Classes of columns that are not Arrow arrays."""


def nulled(values: npt.NDArray[Any], valid: BoolArray) -> Numbers:
    """Return values, null where `valid` is false.

    That is the array itself if it is false nowhere.
    """
    if np.count_nonzero(valid) == len(valid):
        return values
    return Nullable(np.where(valid, values, values.dtype.type(0)), valid)


def numbers_of(columns: Sequence[Numbers]) -> Numbers:
    """Return one column of numbers after the other, at least one."""
    values = [column.values if isinstance(column, Nullable) else column for column in columns]
    if not any(isinstance(column, Nullable) for column in columns):
        return np.concatenate(values)
    valid = [
        column.valid if isinstance(column, Nullable) else np.ones(len(column), np.bool_)
        for column in columns
    ]
    return Nullable(np.concatenate(values), np.concatenate(valid))


def valid_of(column: Any) -> BoolArray | None:
    """Return which rows have a value, shape (rows,); None if all have one."""
    if isinstance(column, Nullable):
        return column.valid
    if isinstance(column, pa.Array) and column.null_count:
        return valid_bits(column)
    return None


def in_own_memory(column: Numbers, kind: pa.DataType) -> pa.Array | None:
    """Return a column as an Arrow array over its memory; None if that has gaps.

    `kind` has values as wide as the column's, and is not boolean.
    """
    own, valid = (column.values, column.valid) if isinstance(column, Nullable) else (column, None)
    if not own.flags.contiguous:
        return None
    buffers = [None if valid is None else bitmap_of(valid), pa.py_buffer(own)]
    return pa.Array.from_buffers(kind, len(own), buffers)


def bitmap_of(valid: BoolArray) -> pa.Buffer:
    """Return Arrow's bitmap of which values are not null."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def valid_bits(array: pa.Array) -> BoolArray:
    """Return which values of an Arrow array are not null, shape (values,)."""
    bitmap = array.buffers()[0]
    if bitmap is None:  # without nulls, or of nothing else
        return np.full(len(array), array.null_count == 0)
    size, start = len(array), array.offset
    whole = np.frombuffer(bitmap, np.uint8)[start // 8 : (start + size + 7) // 8]
    bits = np.unpackbits(whole, bitorder="little")[start % 8 : start % 8 + size]
    return bits.view(np.bool_)


def is_true(mask: Numbers) -> BoolArray:
    """Return the rows where a true/false column is true: neither false nor null."""
    return mask.values if isinstance(mask, Nullable) else mask


def without_mask(column: Any) -> Any:
    """Return a column without its mask if no row is null."""
    if isinstance(column, Nullable) and not column.null_count:
        return column.values
    return column


def as_dtype(column: Numbers, dtype: npt.DTypeLike) -> Numbers:
    """Return a column with values of another type, which holds them all."""
    if isinstance(column, Nullable):
        return Nullable(column.values.astype(dtype, copy=False), column.valid)
    return column.astype(dtype, copy=False)
