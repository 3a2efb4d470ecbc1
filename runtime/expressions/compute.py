"""Compile an operation over expressions to a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.compared import COMPARISONS, comparison_with
from slackwater.runtime.expressions.kernels import kernel_for
from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.notation import INFIX
from slackwater.runtime.expressions.nulls import (
    both,
    chosen,
    either,
    errors_among,
    is_false,
    not_true,
    over_values,
    spread,
)
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.nullable import NUMBERS, is_true, without_mask

Of = Callable[[Batch], Any]
"""Function from a batch to values: one for each row, or a literal's single value."""


class Computable(Protocol):
    """Operand of an operation: the part of an expression that computing it takes."""

    @property
    def value(self) -> Value | None:
        """Value of a literal; None if it is no literal."""
        ...

    def evaluate(self, batch: Batch) -> Column:
        """Return the values, shape (rows,)."""
        ...

    def operand(self, batch: Batch) -> Any:
        """Return the values, or a literal's plain value, for a kernel."""
        ...


def computation(op: str, operands: Sequence[Computable], option: Any) -> Callable[[Batch], Column]:
    """Return the function that computes an operation, its literals bound."""
    first, last = operands[0], operands[-1]
    if op == "~":
        return lambda batch: not_true(first.evaluate(batch))
    if op in ("&", "|"):
        return _logic(op, first.evaluate, last.evaluate)
    if op in COMPARISONS and last.value is not None and first.value is None:
        compare, compared = over_values(comparison_with(op, last.value)), first.operand
        return lambda batch: compare(compared(batch))
    if op in ("where", "when"):
        return _choice(operands)
    # Kernels take plain literals if another operand is an array.
    is_literal = [each.value is not None for each in operands]
    needs_array = all(is_literal) or (is_literal[0] and op not in INFIX)
    parts = [
        each.evaluate if needs_array and (place == 0 or all(is_literal)) else each.operand
        for place, each in enumerate(operands)
    ]
    kernel = kernel_for(op, option)
    if op == "is_null":  # not as an operand: a time may be too far away to be computed on
        return lambda batch: kernel(first.evaluate(batch))
    return lambda batch: kernel(*[part(batch) for part in parts])


def _logic(op: str, first: Of, second: Of) -> Callable[[Batch], Column]:
    """Return the function of `&` or `|`.

    The second side counts only where it decides. It is computed for all rows first; if that raises
    for a row, only for those that the first side leaves open. So `(col("n") != 0) &
    (10 // col("n") > 2)` has a value for each row, as it reads.
    """
    combine, decided_by = (both, is_false) if op == "&" else (either, is_true)

    def computed(batch: Batch) -> Column:
        try:
            return combine(first(batch), second(batch))
        except OperatorError:
            mask = first(batch)
            is_open = ~decided_by(mask)
            rows = is_open.nonzero()[0]
            return combine(mask, spread(_of_some(second, batch, rows), is_open, rows))

    return computed


def _choice(operands: Sequence[Computable]) -> Of:
    """Return the function of a choice: condition, value, condition, value, …, last value."""
    chosen: Of = operands[-1].operand
    for place in range(len(operands) - 3, -1, -2):
        chosen = _where(operands[place].evaluate, operands[place + 1].operand, chosen)
    return chosen


def _where(condition: Of, *sides: Of) -> Callable[[Batch], Column]:
    """Return the function of a choice between two sides.

    Each side is computed only where it counts, as in `_logic`. So `where(col("n") != 0,
    10 // col("n"), 0)` has a value for each row.
    """

    def computed(batch: Batch) -> Column:
        mask = is_true(condition(batch))
        try:
            return chosen(mask, *[side(batch) for side in sides])
        except OperatorError:
            parts = []
            for side, of in zip(sides, (mask, ~mask), strict=True):
                rows = of.nonzero()[0]
                values = _of_some(side, batch, rows)
                is_column = isinstance(values, (*NUMBERS, pa.Array))
                parts.append(spread(values, of, rows) if is_column else values)
            return without_mask(chosen(mask, *parts))

    return computed


def _of_some(side: Of, batch: Batch, rows: Int64Array) -> Any:
    """Return a side's values for some rows, computed for those only."""
    with errors_among(rows):
        return side(batch.take(rows))
