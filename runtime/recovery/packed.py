r"""Plain values as one Arrow record: a tree as text, and columns of arrays.

```
{"n": 7, "keys": [3, 1, …], "text": <Arrow>}   plain values (runtime/model/plain.py)
        │ pack                     ▲ unpack
        ▼                          │
tree    {"n": 7, "keys": {"\0": ["numpy", "<i8", [9], 1, 0]}, …}
1, 2 …  arrays, one after the other, a column for each type; a large one has its own
        those of NumPy, and bytes, are there as bytes
```

All comes back as it was: ints of any size, NaN, bytes, tuples apart from lists, types of arrays. A
long list of numbers, of texts, or of tuples of one length is columns, too: a text would hold up
other threads of the process while it is made. Nothing is pickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.shown import a_kind

__all__ = ["pack", "unpack"]

_IS = "\0"
"""Key of an object of the tree that stands for something else than a dict."""
FEW = 64
"""Shorter sequences and dicts are text."""
LINE = 1_000
"""Most elements of a long sequence that are looked at in one step.

Each step, such as making the text of a line, holds up the other threads of the process.
"""
OWN_COLUMN = 1 << 18
"""Bytes from which an array has its own column, and is not copied."""
MOST_SHARED = 1 << 30
"""Most bytes of small arrays in one column: texts of Arrow end at 2 GiB."""
WIDEST = 64
"""Most elements of tuples that become columns."""
_COLUMNS = {int: pa.int64(), float: pa.float64(), str: pa.large_string()}
_INT_BITS = 63

Reference = list[Any]
"""[kind, what that kind needs]; in the tree it is `{_IS: reference}`."""


def pack(plain: Any) -> pa.RecordBatch:
    """Return plain values as a record batch of one row.

    Args:
        plain: None, numbers, text, bytes, arrays, and lists, tuples and dicts of these.

    Raises:
        TypeError: something else is in it, or a dict has a key that is not text.
    """
    return _Packer().record(plain)


def unpack(record: pa.RecordBatch) -> Any:
    """Return the plain values of a record that `pack` returned; arrays are copies.

    Raises:
        KeyError, ValueError, TypeError, IndexError: the record is not such a record.
    """
    return _Unpacker(record).plain()


class _Column:
    """Column of a record: arrays of one type, one after the other."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.arrays: list[pa.Array] = []
        self.values = self.bytes = 0

    def add(self, array: pa.Array) -> int:
        """Add an array; return where it begins."""
        start = self.values
        self.arrays.append(array)
        self.values += len(array)
        self.bytes += array.nbytes
        return start

    def whole(self) -> pa.Array:
        return self.arrays[0] if len(self.arrays) == 1 else pa.concat_arrays(self.arrays)


class _Packer:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._columns: list[_Column] = []
        self._shared: dict[pa.DataType, _Column] = {}  # {type: column of small arrays}

    def record(self, plain: Any) -> pa.RecordBatch:
        self._lines.append(_text(self._tree(plain)))
        tree = "\n".join(self._lines).encode("utf-8", "surrogatepass")
        arrays = [_of_uint8(np.frombuffer(tree, np.uint8))]
        arrays += [column.whole() for column in self._columns]
        names = ["tree", *(str(column.place) for column in self._columns)]
        return pa.RecordBatch.from_arrays([_one_row(array) for array in arrays], names)

    def _tree(self, plain: Any) -> Any:  # noqa: PLR0911, PLR0912 - one for each kind
        kind = type(plain)
        if plain is None or kind is bool or kind is str:
            return plain
        if kind is int:
            if plain.bit_length() <= _INT_BITS:
                return plain
            return {_IS: ["int", hex(plain)]}
        if kind is float:
            return plain if math.isfinite(plain) else {_IS: ["float", repr(plain)]}
        if kind is list:
            return self._sequence(plain)
        if kind is tuple:
            return {_IS: ["tuple", self._sequence(plain)]}
        if kind is dict:
            return self._dict(plain)
        match plain:
            case bytes():
                return {_IS: ["bytes", *self._of_bytes(np.frombuffer(plain, np.uint8)), len(plain)]}
            case np.ndarray():
                return {_IS: self._of_numpy(plain)}
            case pa.Array():
                return {_IS: self._of_arrow(plain)}
            case int():  # here, and below, of a subclass
                return self._tree(int(plain))
            case float():
                return self._tree(float(plain))
            case str():
                return str.__str__(plain)
        raise TypeError(f"{a_kind(plain)} is not a plain value: give to_plain(…) of it")

    def _sequence(self, values: Sequence[Any]) -> Any:
        if len(values) < FEW:
            return [self._tree(value) for value in values]
        pieces = [values[start : start + LINE] for start in range(0, len(values), LINE)]
        kinds = set().union(*(set(map(type, piece)) for piece in pieces))
        if len(kinds - {NoneType}) == 1 and (array := _as_array(pieces, kinds)) is not None:
            return {_IS: ["column", self._of_arrow(array)]}
        if kinds == {tuple} and (columns := _columns_of(pieces)) is not None:
            return {_IS: ["rows", [self._sequence(column) for column in columns]]}
        lines = [_text([self._tree(value) for value in piece]) for piece in pieces]
        self._lines += lines
        return {_IS: ["lines", len(self._lines) - len(lines), len(self._lines)]}

    def _dict(self, plain: dict[Any, Any]) -> Any:
        if not all(isinstance(key, str) for key in plain):
            raise TypeError("a dict has a key that is not text: give to_plain(…) of it")
        if len(plain) < FEW and _IS not in plain:
            return {key: self._tree(value) for key, value in plain.items()}
        return {_IS: ["dict", self._sequence([*plain]), self._sequence([*plain.values()])]}

    def _of_numpy(self, array: npt.NDArray[Any]) -> Reference:
        if array.dtype.hasobject:
            raise TypeError(
                f"an array of {array.dtype} is not a plain value: give arrays of numbers"
            )
        whole = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        descr = self._tree(np.lib.format.dtype_to_descr(array.dtype))
        return ["numpy", descr, list(array.shape), *self._of_bytes(whole)]

    def _of_bytes(self, values: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """Add bytes; return their column and where they begin in it."""
        array = _of_uint8(values)
        column = self._column_of(array)
        return column.place, column.add(array)

    def _of_arrow(self, array: pa.Array) -> Reference:
        column = self._column_of(array)
        return ["arrow", column.place, column.add(array), len(array)]

    def _column_of(self, array: pa.Array) -> _Column:
        """Return the column for an array: one of its own if it is large."""
        is_shared = array.nbytes < OWN_COLUMN and not _has_own_column(array.type)
        column = self._shared.get(array.type) if is_shared else None
        if column is None or column.bytes + array.nbytes > MOST_SHARED:
            column = _Column(len(self._columns) + 1)
            self._columns.append(column)
            if is_shared:
                self._shared[array.type] = column
        return column


class _Unpacker:
    def __init__(self, record: pa.RecordBatch) -> None:
        self._columns = [column.values for column in record.columns]
        tree = self._bytes(0).tobytes().decode("utf-8", "surrogatepass")
        self._lines = tree.split("\n")

    def plain(self) -> Any:
        return self._plain(json.loads(self._lines[-1]))

    def _bytes(self, column: int) -> npt.NDArray[np.uint8]:
        values: npt.NDArray[np.uint8] = self._columns[column].to_numpy()
        return values

    def _plain(self, tree: Any) -> Any:
        kind = type(tree)
        if kind is list:
            return [self._plain(value) for value in tree]
        if kind is not dict:
            return tree
        reference = tree.get(_IS)
        if reference is None:
            return {key: self._plain(value) for key, value in tree.items()}
        return self._meant(reference)

    def _meant(self, reference: Reference) -> Any:  # noqa: PLR0911 - one for each kind
        match reference:
            case ["int", digits]:
                return int(digits, 16)
            case ["float", digits]:
                return float(digits)
            case ["tuple", values]:
                return tuple(self._plain(values))
            case ["dict", keys, values]:
                return dict(zip(self._plain(keys), self._plain(values), strict=True))
            case ["column", values]:
                return _listed(self._meant(values))
            case ["rows", columns]:
                return list(zip(*map(self._plain, columns), strict=True))
            case ["lines", start, stop]:
                lines = self._lines[start:stop]
                return list(chain.from_iterable(self._plain(json.loads(line)) for line in lines))
            case ["bytes", column, start, size]:
                return self._bytes(column)[start : start + size].tobytes()
            case ["numpy", descr, shape, column, start]:
                dtype = np.lib.format.descr_to_dtype(self._plain(descr))
                values = np.empty(shape, dtype)
                whole = self._bytes(column)[start : start + values.nbytes]
                values.reshape(-1).view(np.uint8)[:] = whole
                return values
            case ["arrow", column, start, size]:
                return pa.concat_arrays([self._columns[column].slice(start, size)])
        raise ValueError(f"a tree of plain values has a reference {reference!r:.100}")


def _text(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _as_array(pieces: Sequence[Sequence[Any]], kinds: set[type]) -> pa.Array | None:
    """Return a list as an array; None if one does not hold it exactly."""
    (kind,) = kinds - {NoneType}
    if kind not in _COLUMNS:
        return None
    try:
        return pa.concat_arrays([pa.array(piece, _COLUMNS[kind]) for piece in pieces])
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):  # more bits, half a character
        return None


def _columns_of(pieces: Sequence[Sequence[tuple[Any, ...]]]) -> list[list[Any]] | None:
    """Return the columns of tuples; None if their lengths differ or are too long."""
    widths = set().union(*(set(map(len, piece)) for piece in pieces))
    width = max(widths)
    if len(widths) > 1 or not 0 < width <= WIDEST:
        return None
    columns: list[list[Any]] = [[] for _ in range(width)]
    for piece in pieces:
        for column, values in zip(columns, zip(*piece, strict=True), strict=True):
            column.extend(values)
    return columns


def _listed(array: pa.Array) -> list[Any]:
    if array.null_count or pa.types.is_large_string(array.type):
        return array.to_pylist()  # type: ignore[no-any-return]
    return array.to_numpy().tolist()  # type: ignore[no-any-return]


def _one_row(values: pa.Array) -> pa.Array:
    offsets = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values)


def _of_uint8(values: npt.NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)])


def _has_own_column(kind: pa.DataType) -> bool:
    """Whether arrays of a type share no column: each may have its own dictionary."""
    return bool(pa.types.is_nested(kind) or pa.types.is_dictionary(kind))
