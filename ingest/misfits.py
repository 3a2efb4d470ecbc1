"""Find all texts of a column that are none of its type.

A pattern drops at once what cannot be one; the others are cast, by halves of what has a bad one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from slackwater.ingest.numerals import Misfit, cast_text
from slackwater.runtime.model.arrow_functions import arrow_functions

__all__ = ["cast_misfits", "misfits"]

_WHOLE = r"^[+-]?[0-9][0-9xXa-fA-F]*$"
_FLOAT = r"(?i)^[+-]?([0-9.][0-9a-fx.+-]*|inf.*|nan.*)$"
_DECIMAL = r"^[+-]?[0-9.]"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"


def misfits(size: int, test: Callable[[int, int], int | None]) -> list[int]:
    """Return the places of bad values, in order.

    Args:
        size: number of all values.
        test: returns the first bad place of a range; None if all are good.
    """
    bad: list[int] = []
    waiting = [(0, size)] if size else []
    while waiting:
        start, stop = waiting.pop()
        first = test(start, stop)
        if first is None:
            continue
        bad.append(first)
        middle = (first + 1 + stop) // 2
        waiting += [part for part in ((middle, stop), (first + 1, middle)) if part[0] < part[1]]
    return sorted(bad)


def cast_misfits(text: pa.StringArray, kind: pa.DataType) -> list[int]:
    """Return the places of texts that cannot be cast; a null can."""
    pattern = _pattern(kind)
    if pattern is None:
        rows = np.arange(len(text))
        other = rows[:0]
    else:
        may_be = arrow_functions().match_substring_regex(text, pattern).fill_null(True)
        is_maybe = may_be.to_numpy(zero_copy_only=False)
        rows, other = np.flatnonzero(is_maybe), np.flatnonzero(~is_maybe)
    left = text.take(pa.array(rows))

    def test(start: int, stop: int) -> int | None:
        cast = cast_text(left.slice(start, stop - start), kind)
        return start + cast.row if isinstance(cast, Misfit) else None

    of_left = misfits(len(left), test)
    return sorted([*other.tolist(), *rows[of_left].tolist()])


def _pattern(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return _WHOLE
    if pa.types.is_floating(kind):
        return _FLOAT
    if pa.types.is_decimal(kind):
        return _DECIMAL
    return _TIME if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else None
