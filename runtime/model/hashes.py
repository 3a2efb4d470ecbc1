"""Hashes of values, the same in each process.

Equal values of two types (int32 and int64, decimals of two scales) have one hash. A float is hashed
by its bits, so it has another one than the whole number that equals it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.batch import Column
from slackwater.runtime.model.nullable import Nullable

__all__ = ["hashed", "mixed_hashes"]

_Hashes = npt.NDArray[np.uint64]


def hashed(column: Column) -> _Hashes:
    """Return the hash of each value, shape (rows,)."""
    return mixed_hashes([column], len(column))


def mixed_hashes(columns: Sequence[Column], rows: int) -> _Hashes:
    """Return the hash of each row of some columns, shape (rows,)."""
    mixed = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        mixed ^= _whole(column)
        # The finaliser of splitmix64: neighbouring values get hashes that have no pattern.
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _whole(column: Column) -> _Hashes:
    """Return values as whole numbers, equal ones alike; null and NaN as 0."""
    if isinstance(column, Nullable):
        column = np.where(column.valid, column.values, 0)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "f":
            column = np.nan_to_num(column.astype(np.float64)) + 0.0  # −0.0 is 0.0
            return column.view(np.uint64)
        whole: _Hashes = column.astype(np.int64).view(np.uint64)
    else:
        whole = _of_arrow(column)
    return whole


def _of_arrow(values: pa.Array) -> _Hashes:
    encoded = values.dictionary_encode(null_encoding="encode")
    # Not hash(): it differs from process to process.
    distinct = [
        0 if v is None else zlib.crc32(_bytes_of(v)) for v in encoded.dictionary.to_pylist()
    ]
    hashes: _Hashes = np.array(distinct, dtype=np.uint64)[encoded.indices.to_numpy()]
    return hashes


def _bytes_of(value: str | bytes | Decimal) -> bytes:
    if isinstance(value, Decimal):
        value = str(value.normalize())
    return value.encode() if isinstance(value, str) else value
