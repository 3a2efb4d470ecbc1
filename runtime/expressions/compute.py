"""Compile an operation over expressions to a function of a batch.

A function that chooses rows exists twice: for rows where the operation is true, and for rows where
it is known to be false, which `~` needs. For all other rows it is unknown, as one of its values is
null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.kernels import (
    COMPARISONS,
    comparison_with,
    kernel_for,
    refuting,
)
from slackwater.runtime.expressions.notation import INFIX
from slackwater.runtime.expressions.result_types import Value
from slackwater.runtime.expressions.whole import widened
from slackwater.runtime.model import Batch, BoolArray, Column
from slackwater.runtime.model.arrow_functions import arrow_functions

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

    def refuted(self, batch: Batch) -> Column:
        """Return the rows for which it is known to be false."""
        ...


def computation(op: str, operands: Sequence[Computable], option: Any) -> Callable[[Batch], Column]:
    """Return the function that computes an operation, its literals bound."""
    first, last = operands[0], operands[-1]
    if op == "~":
        return first.refuted
    if op in ("&", "|"):
        return _chosen(op, first.evaluate, last.evaluate)
    if op in COMPARISONS and last.value is not None and first.value is None:
        compare, compared = comparison_with(op, last.value), first.operand
        return lambda batch: compare(compared(batch))
    # Kernels take plain literals if another operand is an array.
    is_literal = [each.value is not None for each in operands]
    needs_array = all(is_literal) or (is_literal[0] and op not in INFIX)
    parts = [
        each.evaluate if needs_array and (place == 0 or all(is_literal)) else each.operand
        for place, each in enumerate(operands)
    ]
    if op == "where":
        return _chosen(op, *parts)
    kernel = kernel_for(op, option)
    return lambda batch: kernel(*[part(batch) for part in parts])


def refutation(
    op: str, operands: Sequence[Computable], option: Any
) -> Callable[[Batch], Column] | None:
    """Return the function of the rows where an operation is known to be false.

    None if these are exactly the rows where it is not true. As in SQL, a comparison with a null is
    unknown, and its negation too.
    """
    first, others = operands[0], operands[1:]
    if op == "~":
        return first.evaluate
    if op in ("&", "|"):
        return _chosen("|" if op == "&" else "&", first.refuted, others[0].refuted)
    if op == "where":
        return _chosen(op, first.evaluate, *[each.refuted for each in others])
    kernel = refuting(op, option)
    if kernel is None:
        return None
    return lambda batch: kernel(first.evaluate(batch), *[each.operand(batch) for each in others])


def _chosen(op: str, first: Of, *sides: Of) -> Callable[[Batch], Column]:
    """Return the function of `&`, `|` or `where`, each side computed only where it decides.

    A side is computed for all rows first; if that raises for a row, only for the rows where the
    side decides. So `where(col("n") != 0, 10 // col("n"), 0)` and `(col("n") != 0) &
    (10 // col("n") > 2)` have a value for each row, as they read.
    """
    kernel = kernel_for(op)

    def computed(batch: Batch) -> Column:
        try:
            return kernel(first(batch), *[side(batch) for side in sides])
        except OperatorError:
            mask = np.asarray(first(batch))
            if op == "where":
                yes, no = _of_some(sides[0], batch, mask), _of_some(sides[1], batch, ~mask)
            elif op == "&":
                yes, no = _of_some(sides[0], batch, mask), mask[~mask]
            else:
                yes, no = mask[mask], _of_some(sides[0], batch, ~mask)
            return _put_together(mask, yes, no)

    return computed


def _of_some(side: Of, batch: Batch, mask: BoolArray) -> Any:
    """Return a side's values for the rows of a mask, computed for those only."""
    rows = mask.nonzero()[0]
    try:
        return side(batch.take(rows))
    except OperatorError as problem:
        if problem.place is not None:
            problem.place = int(rows[problem.place])
        raise


def _put_together(mask: BoolArray, yes: Any, no: Any) -> Column:
    """Return a column of `yes` where the mask is true, else `no`."""
    if isinstance(yes, str | pa.Array):
        text = pa.nulls(len(mask), pa.string())
        for chosen, values in ((mask, yes), (~mask, no)):
            text = arrow_functions().replace_with_mask(text, pa.array(chosen), values)
        return text
    yes, no = widened(yes), widened(no)
    made = np.empty(len(mask), np.result_type(yes, no))
    made[mask], made[~mask] = yes, no
    return made
