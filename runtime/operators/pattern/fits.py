"""Which of the events that a pattern asks for each row is, for a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from runtime.expressions.expressions import Expr
from runtime.model import Batch, Int64Array
from runtime.model.arrow_functions import arrow_functions
from runtime.operators.ground.user_code import evaluated
from runtime.patterns.normal import Asked

_SMALL = 1 << 16
"""Signatures below this are looked up in an array."""

NOTHING: tuple[int, ...] = ()


class Fits:
    """Tells rows apart by their type and by which predicates are true: their signature.

    Args:
        asked: all that the pattern asks for, by number.
        type_column: which column is the type; None: there is none.
        step: whose it is, for errors.

    Costs: a look-up in a table of types for each row; each different predicate once, over those
    rows only that have a type of the pattern.
    """

    def __init__(self, asked: Sequence[Asked], *, type_column: str | None, step: str) -> None:
        self._asked = asked
        self._step = step
        self._type_column = type_column
        self._types = list(dict.fromkeys(one for each in asked for one in each.types or ()))
        if self._types:
            arrow_functions()  # now, not in the first row's latency
        self._has_untyped = any(one.types is None for one in asked)
        wheres = {str(one.where): one.where for one in asked if one.where is not None}
        self._wheres: list[Expr] = list(wheres.values())
        # The first predicate is the highest bit of a signature.
        self._bit = {text: 1 << (len(wheres) - 1 - i) for i, text in enumerate(wheres)}
        self._values: pa.Array | None = None
        self._known: dict[int, tuple[int, ...]] = {}
        size = (len(self._types) + 1) << len(self._wheres)
        # -1: not worked out yet, 0: fits nothing, 1: fits something.
        self._fits_some = np.full(size, -1, dtype=np.int8) if size <= _SMALL else None

    def of(self, batch: Batch) -> tuple[Int64Array, list[tuple[int, ...]]]:
        """Return the rows that fit something, ascending, and the numbers of what each fits."""
        rows = np.arange(len(batch))
        kinds = None
        if self._types:
            kinds = self._kinds(batch)
            if not self._has_untyped:
                rows = np.flatnonzero(kinds)
                if not len(rows):
                    return rows, []
                kinds = kinds[rows]
                if len(rows) < len(batch):
                    batch = batch.take(rows)
        signatures = np.zeros(len(rows), dtype=np.int64) if kinds is None else kinds
        for where in self._wheres:
            is_true = np.asarray(evaluated(where, batch, step=self._step), dtype=np.bool_)
            signatures = (signatures << 1) | is_true
        return self._some(rows, signatures)

    def _kinds(self, batch: Batch) -> Int64Array:
        """Return for each row the number of its type from 1 on; 0: the pattern asks for no such."""
        assert self._type_column is not None
        column = batch.columns[self._type_column]
        values = column if isinstance(column, pa.Array) else pa.array(column)
        if self._values is None or self._values.type != values.type:
            self._values = pa.array(self._types).cast(values.type)
        arrow = arrow_functions()
        found = arrow.index_in(values, value_set=self._values)
        kinds: Int64Array = arrow.fill_null(found, -1).to_numpy(zero_copy_only=False) + np.int64(1)
        return kinds

    def _some(
        self, rows: Int64Array, signatures: Int64Array
    ) -> tuple[Int64Array, list[tuple[int, ...]]]:
        table = self._fits_some
        if table is not None:
            some = table[signatures]
            if (some < 0).any():
                for one in np.unique(signatures[some < 0]).tolist():
                    table[one] = bool(self._fits_of(one))
                some = table[signatures]
            keep = np.flatnonzero(some)
            known = self._known
            return rows[keep], [known[one] for one in signatures[keep].tolist()]
        fits = [self._fits_of(one) for one in signatures.tolist()]
        keep = np.array([i for i, one in enumerate(fits) if one], dtype=np.int64)
        return rows[keep], [one for one in fits if one]

    def _fits_of(self, signature: int) -> tuple[int, ...]:
        """Return the numbers of what a row of this signature fits."""
        fits = self._known.get(signature)
        if fits is None:
            count = len(self._wheres)
            kind = signature >> count
            value = self._types[kind - 1] if kind else None
            fits = tuple(
                number
                for number, one in enumerate(self._asked)
                if (one.types is None or (kind and value in one.types))
                and (one.where is None or signature & self._bit[str(one.where)])
            )
            self._known[signature] = fits
        return fits
