"""Keys become one dense code per row, and codes become keys again.

```
cell   line      code        codes are given in order of first appearance,
7      "20"      0           so they say nothing but "equal" or "not equal"
7      "26"      1
7      "20"      0
```
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model import BoolArray, Column, Int64Array
from slackwater.runtime.model.divided import distinct
from slackwater.runtime.model.nullable import NUMBERS, Nullable, valid_of, without_mask
from slackwater.runtime.model.state import Fields, declared_of
from slackwater.runtime.operators.ground.codes import HashCodes, IntCodes

_FEW_ROWS = 8
_MOST_KNOWN = 65_536


class KeyIndex:
    """Dense int codes for the values of some key columns. Stable until `keep` is called.

    It grows with every new key. Bounded over long runs: the holder of codes calls `keep` with
    the codes still in use, once there are more than twice as many as it needs
    (`is_worth_keeping`), and moves its own codes accordingly.

    Null and NaN are keys like others here (one each); `any_null` tells nulls apart.
    Columns given in one place must be of one kind on every call: whole numbers of any width,
    booleans and times, or floats, or one of Arrow's types.
    """

    STATE = Fields("_part")

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._part: _Part = _part_of(columns)
        self._known: dict[Any, int] = {}  # codes of keys that came a few rows at a time

    def __len__(self) -> int:
        return len(self._part)

    def codes(self, columns: Sequence[Column], rows: int) -> Int64Array:
        """Return the code of each row, shape (rows,)."""
        if not self._columns:
            return np.zeros(rows, dtype=np.int64)
        return self._few(columns) if rows <= _FEW_ROWS else self._part.codes(columns)

    def known(self, columns: Sequence[Column]) -> int | None:
        """Return the code of the key of a single row; None: ask `codes`.

        The columns have shape (1,).
        """
        if len(columns) != 1 or not isinstance(columns[0], np.ndarray):
            values = [column.tolist()[0] for column in columns]
            return self._known.get(values[0] if len(values) == 1 else tuple(values))
        return self._known.get(columns[0].item(0))

    def _few(self, columns: Sequence[Column]) -> Int64Array:
        """Return the codes of a few rows by a dict, as most keys are known."""
        values = [column.tolist() for column in columns]
        keys = values[0] if len(values) == 1 else list(zip(*values, strict=True))
        known = self._known
        try:
            return np.array([known[key] for key in keys], dtype=np.int64)
        except KeyError:
            codes = self._part.codes(columns)
            if len(known) > _MOST_KNOWN:
                known.clear()
            known.update(zip(keys, codes.tolist(), strict=True))
            return codes

    def columns(self, codes: Int64Array) -> list[Column]:
        """Return the key columns of these codes, as they came in."""
        return self._part.columns(codes) if self._columns else []

    def is_worth_keeping(self, referred: int) -> bool:
        """Whether most keys are forgotten when at most `referred` of them stay."""
        return len(self) > 2 * referred + 1024

    def keep(self, codes: Int64Array) -> Int64Array:
        """Forget all keys but those of `codes`, distinct and ascending.

        Returns:
            The new code of each old one, shape (old length,); −1 for the forgotten.
        """
        self._known.clear()
        if not self._columns:  # all rows have one key, which needs no place
            return np.zeros(1, dtype=np.int64)
        return self._part.keep(codes)


def keys_of(machine: Any) -> KeyIndex | None:
    """Return the keys that divide a machine's state; None without any."""
    declared = declared_of(machine)
    for field in () if declared is None else declared.divided:
        value = getattr(machine, field.name)
        if isinstance(value, KeyIndex):
            return value
        if (keys := keys_of(value)) is not None:
            return keys
    return None


def any_null(columns: Sequence[Column]) -> BoolArray | None:
    """Return whether a column of each row is null; None if none is."""
    masks = [valid for column in columns if (valid := valid_of(column)) is not None]
    if not masks:
        return None
    is_null: BoolArray = ~reduce(np.logical_and, masks)
    return is_null if bool(is_null.any()) else None


class _Part(Protocol):
    STATE: Fields

    def __len__(self) -> int: ...

    def codes(self, columns: Sequence[Column]) -> Int64Array: ...

    def columns(self, codes: Int64Array) -> list[Column]: ...

    def keep(self, codes: Int64Array) -> Int64Array: ...


def _part_of(columns: int) -> _Part:
    return _OneColumn() if columns < 2 else _Pair(_part_of(columns - 1), _OneColumn())


class _OneColumn:
    """Codes of one column; its first rows tell the type."""

    STATE = Fields("_dtype", "_like", "_numbers", "_others", elements={"_others": "_new_others"})

    def __init__(self) -> None:
        self._dtype: str | None = None  # of the column, in letters; None: Arrow's, or not known yet
        self._like = pa.array([], pa.string())  # no values, of the column's type if it is Arrow's
        self._numbers = IntCodes()
        # Codes of Arrow's values, and of numbers once one has come that int64 does not hold.
        self._others: HashCodes | None = None

    def _new_others(self) -> HashCodes:
        return HashCodes()

    def __len__(self) -> int:
        return len(self._numbers if self._others is None else self._others)

    def codes(self, columns: Sequence[Column]) -> Int64Array:
        (column,) = columns
        if not isinstance(column, NUMBERS):
            if self._others is None:
                self._others, self._like = HashCodes(), column[:0]
            return self._others.codes(column)
        if column.dtype.str != self._dtype:
            self._dtype = _wider(self._dtype, column.dtype).str
        values, valid = (
            column if isinstance(column, np.ndarray) else column.values,
            valid_of(column),
        )
        if self._others is None and values.dtype == np.uint64 and (values >> 63).any():
            known = self.columns(np.arange(len(self)))[0].tolist()
            self._others = HashCodes(known)
        if self._others is not None:
            return self._others.codes(pa.array(values, mask=None if valid is None else ~valid))
        return self._numbers.codes(as_int64(values), valid)

    def columns(self, codes: Int64Array) -> list[Column]:
        if self._others is not None:
            values = [self._others.values[code] for code in codes.tolist()]
            if self._dtype is None:
                return [pa.array(values, self._like.type)]
            known = np.array([value is not None for value in values], np.bool_)
            numbers = np.array([0 if value is None else value for value in values], self._dtype)
            return [without_mask(Nullable(numbers, known))]
        dtype, numbers = np.dtype(self._dtype or np.int64), self._numbers.values.take(codes)
        numbers = (numbers.view(np.float64) if dtype.kind == "f" else numbers).astype(dtype)
        null = self._numbers.null
        return [numbers if null is None else without_mask(Nullable(numbers, codes != null))]

    def keep(self, codes: Int64Array) -> Int64Array:
        if self._others is None:
            return self._numbers.keep(codes)
        moved = np.full(len(self), -1, dtype=np.int64)
        moved[codes] = np.arange(len(codes))
        self._others = HashCodes([self._others.values[code] for code in codes.tolist()])
        return moved


class _Pair:
    """Codes of two parts together: the left code in the high bits, the right below."""

    STATE = Fields("_left", "_right", "_both", "_bits")

    def __init__(self, left: _Part, right: _Part) -> None:
        self._left, self._right = left, right
        self._both = IntCodes()
        self._bits = 6  # the bits of the right code

    def __len__(self) -> int:
        return len(self._both)

    def codes(self, columns: Sequence[Column]) -> Int64Array:
        left = self._left.codes(columns[:-1])
        right = self._right.codes(columns[-1:])
        if len(self._right) >> self._bits:
            lefts, rights = self._split(self._both.values)
            self._bits = len(self._right).bit_length() + 1
            self._both.replace((lefts << self._bits) | rights)
        return self._both.codes((left << self._bits) | right)

    def columns(self, codes: Int64Array) -> list[Column]:
        left, right = self._split(self._both.values.take(codes))
        return [*self._left.columns(left), *self._right.columns(right)]

    def keep(self, codes: Int64Array) -> Int64Array:
        moved = self._both.keep(codes)
        left, right = self._split(self._both.values)
        left = self._left.keep(distinct(left)).take(left)
        right = self._right.keep(distinct(right)).take(right)
        self._both.replace((left << self._bits) | right)
        return moved

    def _split(self, both: Int64Array) -> tuple[Int64Array, Int64Array]:
        return both >> self._bits, both & ((1 << self._bits) - 1)


def as_int64(column: npt.NDArray[Any]) -> Int64Array:
    """Return numbers as whole ones that are equal where they are: floats by their bits."""
    if column.dtype.kind == "f":
        floats = column.astype(np.float64) + 0.0  # −0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan  # all NaNs get the same bits
        return floats.view(np.int64)
    return column.astype(np.int64, copy=False)


def _wider(one: str | None, other: np.dtype[Any]) -> np.dtype[Any]:
    # Some types have no common one but Python's own.
    if one is None:
        return other
    both, kinds = np.promote_types(one, other), (np.dtype(one).kind, other.kind)
    return np.dtype(object) if both.kind == "f" and "f" not in kinds else both
