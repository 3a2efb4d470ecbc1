"""From an operation over expressions to the function that computes it for a batch.

A function that chooses rows is needed twice: where the operation is true, and where it is known to
be false, which `~` asks for. Between the two is what is unknown, for a value of it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runtime.flow.kernels import COMPARISONS, comparison_with, kernel_for, refuting
from runtime.flow.notation import INFIX
from runtime.model import Batch, Column

if TYPE_CHECKING:
    from runtime.flow.expressions import Expr


def computation(op: str, operands: Sequence[Expr], option: Any) -> Callable[[Batch], Column]:
    """Return the function that computes an operation, its literals bound."""
    first, last = operands[0], operands[-1]
    if op == "~":
        return first.refuted
    if op in COMPARISONS and last.value is not None and first.value is None:
        compare, compared = comparison_with(op, last.value), first.operand
        return lambda batch: compare(compared(batch))
    # Kernels take literals as they are, beside an array in their first place or the other.
    is_literal = [each.value is not None for each in operands]
    needs_array = all(is_literal) or (is_literal[0] and op not in INFIX)
    parts = [
        each.evaluate if needs_array and (place == 0 or all(is_literal)) else each.operand
        for place, each in enumerate(operands)
    ]
    kernel = kernel_for(op, option)
    return lambda batch: kernel(*[part(batch) for part in parts])


def refutation(op: str, operands: Sequence[Expr], option: Any) -> Callable[[Batch], Column] | None:
    """Return the function of where an operation is known to be false; None: where it is not true.

    As in SQL: a comparison with a null is unknown, and so is what `~` makes of it.
    """
    if op == "~":
        return operands[0].evaluate
    if op in ("&", "|"):
        combine = np.logical_or if op == "&" else np.logical_and
        return lambda batch: combine(*[each.refuted(batch) for each in operands])
    if op == "where":
        condition, yes, no = operands
        return lambda batch: np.where(
            condition.evaluate(batch), yes.refuted(batch), no.refuted(batch)
        )
    kernel = refuting(op, option)
    if kernel is None:
        return None
    first, others = operands[0], operands[1:]
    return lambda batch: kernel(first.evaluate(batch), *[each.operand(batch) for each in others])
