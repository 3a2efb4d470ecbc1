"""Hashes of values, the same in each process.

Equal values of two types (int32 and int64, decimals of two scales) have one hash. A float is hashed
by its bits, so it has another one than the whole number that equals it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.batch import Column
from slackwater.runtime.model.nullable import Nullable

__all__ = [
    "HASH_VERSION",
    "KEY_GROUPS",
    "even_groups",
    "groups_of",
    "groups_owned",
    "hashed",
    "key_hashes",
    "owners",
    "owners_of_rows",
    "rows_by_group",
]

_Hashes = npt.NDArray[np.uint64]

KEY_GROUPS = 128
"""Number of key groups. A replica owns a run of them: another number of replicas moves groups."""
HASH_VERSION = 1
"""Version of `key_hashes`: output that a run resumes has the order of one version."""
_HASH_BITS = 48
"""Bits of a key's hash: with a rank above them they are a writer (`RANK_SHIFT`)."""
_GROUP_BITS = 7
_STEPS = 8
"""A range of whole numbers is rounded to an eighth of its width: its table serves others, too."""
_NULL, _NAN = np.uint64(0x6E756C6C6E756C6C), np.uint64(0x7FF8000000000000)
"""Numbers in place of null and NaN."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Of splitmix64."""
_FACTOR = np.uint64(0x5851F42D4C957F2D)
_INVERSE = np.uint64(pow(0x5851F42D4C957F2D, -1, 2**64))


def hashed(column: Column) -> _Hashes:
    """Return the hash of each value, shape (rows,)."""
    return _mixed_hashes([column], len(column))


def _mixed_hashes(columns: Sequence[Column], rows: int) -> _Hashes:
    """Return the hash of each row of some columns, shape (rows,)."""
    mixed = np.zeros(rows, dtype=np.uint64) if not columns else _mixed(_whole(columns[0]))
    for column in columns[1:]:
        mixed ^= _whole(column)
        mixed = _mixed(mixed)
    return mixed


def _mixed(whole: _Hashes) -> _Hashes:
    """Mix whole numbers in place; return them.

    Neighbouring values get hashes that have no pattern: the finaliser of splitmix64. A source
    hashes each row that it divides, so there is one array beside the values, and no other.
    """
    whole += _GAMMA
    shifted = whole >> _SHIFTS[0]
    for shift, factor in zip(_SHIFTS[1:], _FACTORS, strict=True):
        whole ^= shifted
        whole *= factor
        np.right_shift(whole, shift, out=shifted)
    whole ^= shifted
    return whole


def key_hashes(columns: Sequence[Column], rows: int) -> npt.NDArray[np.int64]:
    """Return the hash of each row's key, of 48 bits.

    It is the order of keys at one event time, and so part of a step's output (`HASH_VERSION`).

    Args:
        columns: the key columns, of shape (rows,).
        rows: number of rows in each column.

    Returns:
        Shape (rows,).
    """
    hashes = _mixed_hashes(columns, rows)
    hashes >>= np.uint64(64 - _HASH_BITS)
    return hashes.view(np.int64)


def even_groups(replicas: int) -> tuple[int, ...]:
    """Return numbers of key groups of replicas that own as many each."""
    stops = [-(-KEY_GROUPS * number // replicas) for number in range(replicas + 1)]
    return tuple(stop - start for start, stop in pairwise(stops))


def owners(hashes: npt.NDArray[np.int64], groups: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Return the replica that owns each key.

    A replica owns a run of the 128 groups of keys. Its number is a byte: NumPy sorts by radix.

    Args:
        hashes: hashes of `key_hashes`, shape (rows,).
        groups: number of groups of each replica, `KEY_GROUPS` in all.

    Returns:
        Shape (rows,).
    """
    return _owner_of_groups(groups).take(groups_of(hashes))


def groups_of(hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the group of each key, from 0 to `KEY_GROUPS` − 1.

    Args:
        hashes: hashes of `key_hashes`, shape (rows,).

    Returns:
        Shape (rows,).
    """
    return hashes >> (_HASH_BITS - _GROUP_BITS)


def rows_by_group(columns: Sequence[Column], rows: int) -> npt.NDArray[np.int64]:
    """Return the number of rows in each group of keys, shape (KEY_GROUPS,).

    Args:
        columns: the key columns, of shape (rows,).
        rows: number of rows in each column.
    """
    return np.bincount(groups_of(key_hashes(columns, rows)), minlength=KEY_GROUPS)


def groups_owned(replica: int, groups: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the groups of keys that a replica owns, ascending.

    Args:
        replica: number of the replica, from 0.
        groups: number of groups of each replica, `KEY_GROUPS` in all.
    """
    return np.flatnonzero(_owner_of_groups(groups) == replica)


@cache
def _owner_of_groups(groups: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    return np.repeat(np.arange(len(groups), dtype=np.uint8), groups)


def owners_of_rows(
    columns: Sequence[Column], rows: int, groups: tuple[int, ...]
) -> npt.NDArray[np.uint8]:
    """Return the replica that owns the key of each row.

    Whole numbers within a short range are hashed once each, not once a row, as text is; batches
    with the same range share a table.

    Args:
        columns: the key columns, of shape (rows,).
        rows: number of rows in each column.
        groups: number of groups of each replica, `KEY_GROUPS` in all.

    Returns:
        Shape (rows,).
    """
    column = columns[0]
    if len(columns) == 1 and isinstance(column, np.ndarray) and column.dtype.kind == "i" and rows:
        least, most = int(column.min()), int(column.max())
        step = 1 << max((most - least).bit_length() - _STEPS.bit_length() + 1, 0)
        first = least // step * step
        size = (most // step + 1) * step - first
        if size <= rows:
            own = _owners_of_range(first, size, groups)
            return own.take(np.subtract(column, first, dtype=np.int64) if first else column)
    return owners(key_hashes(columns, rows), groups)


@lru_cache(maxsize=16)
def _owners_of_range(first: int, size: int, groups: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    # Past the last int64 the numbers begin again, and no row has them.
    return owners(key_hashes([np.arange(size) + first], size), groups)


def _whole(column: Column) -> _Hashes:
    """Return values as whole numbers in a new array; equal values, nulls, NaN alike."""
    if isinstance(column, Nullable):
        return np.where(column.valid, _whole(column.values), _NULL)
    if not isinstance(column, np.ndarray):
        return _of_arrow(column)
    if column.dtype.kind == "f":
        values = column.astype(np.float64) + 0.0  # −0.0 is 0.0
        return np.where(np.isnan(values), _NAN, values.view(np.uint64))
    whole: _Hashes = column.astype(np.int64).view(np.uint64)
    return whole


def _of_arrow(values: pa.Array) -> _Hashes:
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_decimal(distinct.type):
        texts = [None if v is None else _text_of(v) for v in distinct.to_pylist()]
        distinct = pa.array(texts, pa.string())
    hashes = _of_bytes(distinct.cast(pa.large_binary()).fill_null(b""))
    if distinct.null_count:
        hashes[np.asarray(distinct.is_null())] = _NULL
    of_rows: _Hashes = hashes.take(encoded.indices.to_numpy())
    return of_rows


def _text_of(value: Decimal) -> str:
    return str(value.normalize())  # one text for each value, whatever its scale


def _of_bytes(whole: pa.LargeBinaryArray) -> _Hashes:
    """Return a hash of the bytes of each value: a polynomial of them, modulo 2**64.

    Not hash(): it differs from process to process. Not a CRC: of its 32 bits 65,000 keys use up
    enough for two of them to have one hash, and then the order of these is that of the rows.
    """
    _, places, data = whole.buffers()
    offsets = np.frombuffer(places, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    offsets, first = offsets - offsets[0], int(offsets[0])
    size = int(offsets[-1])
    bytes_there = np.frombuffer(data or b"", np.uint8)[first : first + size].astype(np.uint64)
    powers = np.cumprod(np.full(size + 1, _FACTOR, dtype=np.uint64))
    sums = np.zeros(size + 1, dtype=np.uint64)
    np.cumsum((bytes_there + np.uint64(1)) * powers[:size], out=sums[1:])
    inverse = np.cumprod(np.full(size + 1, _INVERSE, dtype=np.uint64))
    starts, stops = offsets[:-1], offsets[1:]
    lengths = (stops - starts).astype(np.uint64)
    hashes: _Hashes = (sums[stops] - sums[starts]) * inverse[starts] + lengths
    return hashes
