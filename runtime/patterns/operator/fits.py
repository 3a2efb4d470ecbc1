"""Fits tells, for a whole batch, which events of a pattern each row is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.operators.ground.user_code import holds
from slackwater.runtime.patterns.normal import Asked

_SMALL = 1 << 16
"""Signatures below this are looked up in an array."""
_BITS = 30
"""So many predicates are put into one number; its code is put into the next."""
_MOST_KNOWN = 1 << 16
"""The most signatures that are remembered; with more, all are computed again."""

NOTHING: tuple[int, ...] = ()


class Fits:
    """Fits tells rows apart by their signature: their type and the predicates that are true.

    ```
    type 2; true 0 1 1 | 1 0      2·011 ──▶ code 7      at most _BITS predicates at a time, so that
                                  7·10  ──▶ kind 4      no number of them is too many
    ```

    Args:
        asked: the events of the pattern, by number.
        type_column: the column of types; None if rows have no types.
        step: the step's name, for errors.

    Costs: a look-up in a table of types for each row; each different predicate once, over those
    rows only that have a type of the pattern.

    Attributes:
        of_kind: numbers of the events that each kind of row fits, of kinds that have come; 0 fits
            nothing. Kinds are good up to the next batch.
    """

    def __init__(self, asked: Sequence[Asked], *, type_column: str | None, step: str) -> None:
        self._asked = asked
        self._step = step
        self._type_column = type_column
        self._types = list(dict.fromkeys(one for each in asked for one in each.types or ()))
        if self._types:
            arrow_functions()  # so that the first row need not wait for the import
        self._has_untyped = any(one.types is None for one in asked)
        wheres = {str(one.where): one.where for one in asked if one.where is not None}
        self._wheres: list[Expr] = list(wheres.values())
        self._place = {text: i for i, text in enumerate(wheres)}
        self._values: pa.Array | None = None
        self._begin()

    def _begin(self) -> None:
        # The codes of each stretch of predicates but the last.
        self._codes = [_Codes() for _ in self._wheres[_BITS::_BITS]]
        self._known: dict[int, int] = {}  # {signature of the last stretch: its kind}
        self._numbers: dict[tuple[int, ...], int] = {NOTHING: 0}  # {what it fits: its kind}
        self.of_kind: list[tuple[int, ...]] = [NOTHING]
        size = (len(self._types) + 1) << min(len(self._wheres), _BITS)
        # The kind of each signature; -1: not computed yet.
        is_small = not self._codes and size <= _SMALL
        self._kinds_of = np.full(size, -1, dtype=np.int64) if is_small else None

    def of(self, batch: Batch) -> tuple[Int64Array, Int64Array]:
        """Return the rows that fit something, ascending, and the kind of each: see `of_kind`."""
        if len(self._known) + sum(len(one.signatures) for one in self._codes) > _MOST_KNOWN:
            self._begin()
        rows = np.arange(len(batch))
        kinds = None
        if self._types:
            kinds = self._kinds(batch)
            if not self._has_untyped:
                rows = np.flatnonzero(kinds)
                if not len(rows):
                    return rows, rows
                kinds = kinds[rows]
                if len(rows) < len(batch):
                    batch = batch.take(rows)
        signatures = np.zeros(len(rows), dtype=np.int64) if kinds is None else kinds
        for i, where in enumerate(self._wheres):
            if i and i % _BITS == 0:
                signatures = self._codes[i // _BITS - 1].of(signatures)
            is_true = holds(where, batch, step=self._step)
            signatures = (signatures << 1) | is_true
        return self._some(rows, signatures)

    def _kinds(self, batch: Batch) -> Int64Array:
        """Return the number of each row's type, from 1 on; 0 for other types."""
        assert self._type_column is not None
        column = batch.columns[self._type_column]
        values: pa.Array = column
        if isinstance(column, Nullable):
            values = column.to_arrow(pa.from_numpy_dtype(column.dtype))
        elif isinstance(column, np.ndarray):
            values = pa.array(column)
        if self._values is None or self._values.type != values.type:
            self._values = pa.array(self._types, values.type)
        arrow = arrow_functions()
        places = arrow.index_in(values, value_set=self._values)
        kinds: Int64Array = arrow.fill_null(places, -1).to_numpy(zero_copy_only=False) + np.int64(1)
        return kinds

    def _some(self, rows: Int64Array, signatures: Int64Array) -> tuple[Int64Array, Int64Array]:
        table = self._kinds_of
        if table is None:
            distinct, places = np.unique(signatures, return_inverse=True)
            of_distinct = [self._kind_of(one) for one in distinct.tolist()]
            kinds = np.array(of_distinct, dtype=np.int64).take(places)
        else:
            kinds = table[signatures]
            if (kinds < 0).any():
                for one in np.unique(signatures[kinds < 0]).tolist():
                    table[one] = self._kind_of(one)
                kinds = table[signatures]
        keep = np.flatnonzero(kinds)
        return rows[keep], kinds[keep]

    def _kind_of(self, signature: int) -> int:
        kind = self._known.get(signature)
        if kind is None:
            fits = self._fits_of(signature)
            kind = self._numbers.get(fits)
            if kind is None:
                kind = self._numbers[fits] = len(self.of_kind)
                self.of_kind.append(fits)
            self._known[signature] = kind
        return kind

    def _fits_of(self, signature: int) -> tuple[int, ...]:
        """Return the numbers of the events that a row of this signature fits."""
        count = len(self._wheres)
        truths: list[bool] = []  # from the last predicate to the first
        for known in reversed(self._codes):
            width = (count - len(truths) - 1) % _BITS + 1
            truths += [bool(signature >> i & 1) for i in range(width)]
            signature = known.signatures[signature >> width]
        width = count - len(truths)
        truths += [bool(signature >> i & 1) for i in range(width)]
        kind = signature >> width
        value = self._types[kind - 1] if kind else None
        return tuple(
            number
            for number, one in enumerate(self._asked)
            if (one.types is None or (kind and value in one.types))
            and (one.where is None or truths[count - 1 - self._place[str(one.where)]])
        )


class _Codes:
    """Dense codes of signatures, in order of first appearance."""

    def __init__(self) -> None:
        self.signatures: list[int] = []
        self._code: dict[int, int] = {}

    def of(self, signatures: Int64Array) -> Int64Array:
        distinct, places = np.unique(signatures, return_inverse=True)
        code = self._code
        codes = [code.setdefault(one, len(code)) for one in distinct.tolist()]
        if len(code) > len(self.signatures):
            self.signatures += list(islice(code, len(self.signatures), None))
        return np.array(codes, dtype=np.int64).take(places)
