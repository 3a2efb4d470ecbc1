"""Columns of promised types, made of what a user's function returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.fit import NOT_FITTING, as_column, described
from slackwater.runtime.expressions.result_types import TYPES
from slackwater.runtime.model import Batch, Column, Columns
from slackwater.runtime.model.schema import is_sound
from slackwater.runtime.operators.ground.user_code import row_of
from slackwater.runtime.shown import shown, text_of

_MOST_REASON = 400
"""Most characters of a reason: Arrow's have the value in them."""


def fitted(
    values: Any, to: pa.DataType, *, name: str, step: str, rows: Batch | None = None
) -> Column:
    """Make values (an array, an Arrow array or a sequence) an inside column; see `as_column`.

    Args:
        values: shape (rows,), values of the column.
        to: the type that values have inside.
        name: the name of the column.
        step: the step whose function returned them.
        rows: the rows that they were made of, for the error.

    Raises:
        OperatorError: they do not fit; names the step, the column and the row.
    """
    try:
        return as_column(values, to, name=name, who=f"step {step!r}")
    except NOT_FITTING as problem:
        wanted = next((known for known, kind in TYPES.items() if kind == to), to)
        raise OperatorError(
            f"step {step!r}: column {name!r} should be {wanted}, but its function returned "
            f"{described(values)}: {text_of(problem, _MOST_REASON)}{_first_of(values, to, rows)}"
        ) from problem


def fitted_columns(
    values: Mapping[str, Any], schema: pa.Schema, *, step: str, rows: Batch | None = None
) -> Columns:
    """Return the columns of a schema, each made of its values as `fitted` makes them."""
    return {
        field.name: fitted(values[field.name], field.type, name=field.name, step=step, rows=rows)
        for field in schema
    }


def _first_of(values: Any, to: pa.DataType, rows: Batch | None) -> str:
    """Return the first row whose value does not fit, as text; "" without."""
    if rows is None or len(values) != len(rows) or getattr(values, "ndim", 1) != 1:
        return ""
    for place in range(len(values)):
        try:
            fitted(values[place : place + 1], to, name="", step="")
        except OperatorError:
            is_damaged = isinstance(values, pa.Array) and not is_sound(values.slice(place, 1))
            first = "text that cannot be shown" if is_damaged else shown(values[place])
            return f"\nfirst {first}, of the {row_of(rows, place)}"
    return ""
