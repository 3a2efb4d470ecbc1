"""The writers within one source: an id for each, and the newest event of each.

An id is the rank of the source in the high 15 bits and the writer in the low 48: an integer
that fits as it is, anything else by its 48-bit BLAKE2b hash. So ids are the same on every
host and in every run, and two sources never share one. Partitions whose names end in `#` and a
number, as the row groups of a file, follow each other: the number is added to the hash of the rest.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.model import START_NS, Column, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import newest_before

_VALUE_BITS = 48
_RANKS = 2**15


class WriterTable:
    """Every writer seen so far. Numbers them 0, 1, 2 … in order of appearance.

    Args:
        source: its name, for errors.
        rank: the source's rank in the plan, 0 <= rank < 32,768.
        are_partitions: whether the writers are partitions of the source.

    Raises:
        SettingError: the rank is out of its range.
    """

    STATE = Fields("_numbers", "_newest_ns")

    def __init__(self, source: str, rank: int, *, are_partitions: bool = False) -> None:
        if not 0 <= rank < _RANKS:
            raise SettingError(
                f"source {source!r} has rank {rank}, and writer ids have room for ranks 0 to "
                f"{_RANKS - 1}; give the flow fewer sources, or this one no writer column"
            )
        self._source, self._value = source, _value_of_partition if are_partitions else _value
        self._base = rank << _VALUE_BITS
        self._numbers: dict[int | str, int] = {}  # {writer: its number}
        self._names: dict[int, int | str] = {}  # {id: writer}
        self._ids = np.empty(0, dtype=np.int64)  # by number
        self._newest_ns = np.empty(0, dtype=np.int64)  # by number

    def number(self, column: Column) -> Int64Array:
        """Return the number of each row's writer, shape (rows,); new writers get new ones.

        Raises:
            SchemaError: two writers share an id.
        """
        arrow = column if isinstance(column, pa.Array) else pa.array(column)
        encoded = arrow.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        known = self._numbers
        if not known.keys() >= set(names):
            self._add([name for name in names if name not in known])
        numbers = np.fromiter((known[name] for name in names), dtype=np.int64, count=len(names))
        rows: Int64Array = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return rows

    def ids(self, numbers: Int64Array) -> Int64Array:
        """Return the id of each row's writer, shape (rows,)."""
        return self._ids[numbers]

    def name(self, number: int) -> int | str:
        """Return a writer as its column has it."""
        return self._names[int(self._ids[number])]

    def newest_before(self, numbers: Int64Array, event_time_ns: Int64Array) -> Int64Array:
        """Return each row's newest earlier event of the same writer, and remember these rows.

        Args:
            numbers: shape (rows,), from `number`.
            event_time_ns: event times, shape (rows,).

        Returns:
            Shape (rows,); START_NS for a writer's first row.
        """
        return newest_before(numbers, event_time_ns, self._newest_ns)

    def derive(self) -> None:
        """Find the ids of the writers."""
        self._names = {self._base | self._value(name): name for name in self._numbers}
        self._ids = np.fromiter(self._names, dtype=np.int64, count=len(self._names))

    def _add(self, names: list[int | str]) -> None:
        for name in names:
            writer = self._base | self._value(name)
            other = self._names.setdefault(writer, name)
            if other != name:
                raise SchemaError(
                    f"source {self._source!r}: writers {other!r} and {name!r} have the same "
                    f"48-bit id {self._value(name)}, so they cannot be told apart; rename one of "
                    "them"
                )
            self._numbers[name] = len(self._numbers)
        self._ids = np.fromiter(self._names, dtype=np.int64, count=len(self._names))
        new = np.full(len(names), START_NS, dtype=np.int64)
        self._newest_ns = np.concatenate([self._newest_ns, new])


def _value(name: int | str) -> int:
    if isinstance(name, int) and 0 <= name < 2**_VALUE_BITS:
        return name
    digest = hashlib.blake2b(str(name).encode(), digest_size=_VALUE_BITS // 8).digest()
    return int.from_bytes(digest, "big")


def _value_of_partition(name: int | str) -> int:
    run, mark, number = str(name).rpartition("#")
    is_numbered = mark and number.isascii() and number.isdecimal()
    return (_value(run) + int(number)) % 2**_VALUE_BITS if is_numbered else _value(name)
