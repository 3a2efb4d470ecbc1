"""Rows of every type that travels, and the check that an expression keeps its word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Batch, Column, batch_of
from slackwater.runtime.model.nullable import NUMBERS, Nullable

NAN = float("nan")
KNOWN = np.array([True, False, True])
DAY_NS = 86_400 * 10**9
SCHEMA = pa.schema(
    {
        "speed": pa.float64(),
        "single": pa.float32(),
        "count": pa.int64(),
        "small": pa.int8(),
        "hash": pa.uint64(),
        "stopped": pa.bool_(),
        "line": pa.string(),
        "seen": pa.timestamp("ns", tz="UTC"),
        "planned": pa.timestamp("ns"),
    }
)


def rows() -> Batch:
    """Return three rows of SCHEMA; speed, single and line are null in the second."""
    return batch_of(
        [10, 20, 30],
        {
            "speed": Nullable(np.array([4.0, 0.0, 12.5]), KNOWN),
            "single": Nullable(np.array([0.1, 0.0, -2.5], np.float32), KNOWN),
            "count": np.array([7, -7, 0]),
            "small": np.array([127, -128, 5], np.int8),
            "hash": np.array([2**64 - 1, 2**63, 3], np.uint64),
            "stopped": np.array([True, False, True]),
            "line": pa.array(["20", None, "26"]),
            "seen": np.array([DAY_NS, 2 * DAY_NS, 0]),
            "planned": np.array([0, DAY_NS, 0]),
        },
    )


def bound(expression: Expr, kind: pa.DataType) -> Expr:
    """Return an expression bound to columns of one type."""
    return expression.bound(pa.schema([(name, kind) for name in expression.columns()]))


def evaluated(expression: Expr, batch: Batch) -> Column:
    """Return the values of an expression, bound to the types that the batch has."""
    types = {
        name: column.type if isinstance(column, pa.Array) else pa.from_numpy_dtype(column.dtype)
        for name, column in batch.columns.items()
    }
    return expression.bound(pa.schema(types)).evaluate(batch)


def values(expression: Expr) -> list[Any]:
    """Evaluate over `rows`, and check that the type is the one that was announced."""
    announced = expression.type_in(SCHEMA, step="test")
    column = expression.bound(SCHEMA).evaluate(rows())
    assert len(column) == 3
    if isinstance(column, NUMBERS):
        inside = pa.int64() if pa.types.is_timestamp(announced) else announced
        assert pa.from_numpy_dtype(column.dtype) == inside, f"{expression!s} is {column.dtype}"
    else:
        assert column.type == announced, f"{expression!s} is {column.type}"
    plain: list[Any] = column.tolist()
    return plain
