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

__all__ = ["HASH_VERSION", "KEY_GROUPS", "hashed", "key_hashes", "mixed_hashes", "owners"]

_Hashes = npt.NDArray[np.uint64]

KEY_GROUPS = 128
"""Number of key groups. A replica owns a run of them: another number of replicas moves groups."""
HASH_VERSION = 1
"""Version of `key_hashes`: output that a run resumes has the order of one version."""
_HASH_BITS = 48
"""Bits of a key's hash: with a rank above them they are a writer (`RANK_SHIFT`)."""
_GROUP_BITS = 7


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


def key_hashes(columns: Sequence[Column], rows: int) -> npt.NDArray[np.int64]:
    """Return the hash of each row's key, of 48 bits.

    It is the order of keys at one event time, and so part of a step's output (`HASH_VERSION`).

    Args:
        columns: the key columns, of shape (rows,).
        rows: number of rows in each column.

    Returns:
        Shape (rows,).
    """
    return (mixed_hashes(columns, rows) >> np.uint64(64 - _HASH_BITS)).view(np.int64)


def owners(hashes: npt.NDArray[np.int64], replicas: int) -> npt.NDArray[np.uint8]:
    """Return the replica that owns each key.

    A replica owns a run of the 128 groups of keys. Its number is a byte: NumPy sorts by radix.

    Args:
        hashes: hashes of `key_hashes`, shape (rows,).
        replicas: number of replicas, `KEY_GROUPS` at most.

    Returns:
        Shape (rows,).
    """
    groups = hashes >> (_HASH_BITS - _GROUP_BITS)
    return ((groups * replicas) >> _GROUP_BITS).astype(np.uint8)


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
