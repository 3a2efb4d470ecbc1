"""Compile a bound operation over expressions to a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.function import Call, Function, Operand, Over
from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.nulls import (
    both,
    chosen,
    either,
    errors_among,
    is_false,
    over_values,
    spread,
)
from slackwater.runtime.expressions.whole import Kernel
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.nullable import NUMBERS, is_true, without_mask

Of = Callable[[Batch], Any]
"""Function from a batch to values: one for each row, or a literal's single value."""


class Computable(Protocol):
    """Operand of an operation: the part of an expression that computing it takes."""

    @property
    def value(self) -> Value | None:
        """Value of a literal; None if it is not a literal."""
        ...

    def evaluate(self, batch: Batch) -> Column:
        """Return the values, shape (rows,)."""
        ...

    def operand(self, batch: Batch) -> Any:
        """Return the values, or a literal's plain value, for a kernel."""
        ...


class Types(NamedTuple):
    """Types of a bound operation.

    Attributes:
        operands: type of each operand as the kernel gets it.
        gives: type of the results.
    """

    operands: tuple[pa.DataType, ...]
    gives: pa.DataType


def computation(
    function: Function, operands: Sequence[Computable], option: Any, types: Types
) -> Of:
    """Return the function that computes an operation, its kernel chosen and its literals bound."""
    known = _known(function, operands, types)
    kernel = function.kernel(Call(known, option, types.gives))
    if function.over is Over.BATCHES:
        of_batch: Of = kernel(*operands)
        return of_batch
    parts = [
        each.operand if own.is_literal else _column(each)
        for each, own in zip(operands, known, strict=True)
    ]
    if len(parts) == 2 and known[1].is_literal:  # as most are
        kernel, parts = _with_last(kernel, known[1].value), parts[:1]
    if function.over is Over.VALUES:
        kernel = over_values(kernel)
    if len(parts) == 1:
        (values,) = parts
        return lambda batch: kernel(values(batch))
    return lambda batch: kernel(*[part(batch) for part in parts])


def _with_last(kernel: Kernel, last: Any) -> Kernel:
    return lambda values: kernel(values, last)


def _known(function: Function, operands: Sequence[Computable], types: Types) -> tuple[Operand, ...]:
    """Return the operands as a kernel gets them: plain literals, if another is a column."""
    is_plain = [each.value is not None for each in operands]
    if all(is_plain):
        is_plain = [False] * len(operands)
    if not function.text.is_infix:
        is_plain[0] = False
    return tuple(
        Operand(kind, each.value if plain else None)
        for kind, each, plain in zip(types.operands, operands, is_plain, strict=True)
    )


def _column(operand: Computable) -> Of:
    """Return the function that gives a value for each row, of a literal too."""
    return operand.operand if operand.value is None else operand.evaluate


def logic(op: str) -> Callable[[Call], Callable[..., Of]]:
    """Return the choice of `&` or `|`.

    The second side counts only where it decides. It is computed for all rows first; if that raises
    for a row, only for those that the first side leaves open. So `(col("n") != 0) &
    (10 // col("n") > 2)` has a value for each row, as it reads.
    """
    combine, decided_by = (both, is_false) if op == "&" else (either, is_true)

    def of_sides(left: Computable, right: Computable) -> Of:
        first, second = _column(left), _column(right)

        def computed(batch: Batch) -> Column:
            try:
                return combine(first(batch), second(batch))
            except OperatorError:
                mask = first(batch)
                is_open = ~decided_by(mask)
                rows = is_open.nonzero()[0]
                return combine(mask, spread(_of_some(second, batch, rows), is_open, rows))

        return computed

    return lambda _call: of_sides


def choice(_call: Call) -> Callable[..., Of]:
    """Return the function of condition, value, condition, value, …, last value."""

    def of_operands(*operands: Computable) -> Of:
        chosen: Of = operands[-1].operand
        for place in range(len(operands) - 3, -1, -2):
            chosen = _where(_column(operands[place]), operands[place + 1].operand, chosen)
        return chosen

    return of_operands


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
