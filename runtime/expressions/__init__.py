"""Expressions over a row's columns: their types, text and computation.

| file | content |
| --- | --- |
| `expressions.py` | expressions as a user writes them: `col("speed") < 8` |
| `literals.py`, `notation.py` | literals in an expression; an expression as text |
| `result_types.py` | result types of operations |
| `compute.py`, `kernels.py`, `compared.py`, `whole.py` | computation of operations |
| `text_methods.py`, `time_methods.py` | methods of text and of times |
| `functions.py`, `fit.py` | a user's function on each value; its results as a column |
| `decimals.py`, `times.py` | operands that are decimals, or times of another unit |
| `row_tests.py` | a predicate tested row by row, for a row or two |
"""

from slackwater.runtime.expressions.expressions import (
    Expr,
    coalesce,
    col,
    duration,
    event_time,
    lit,
    when,
    where,
)

__all__ = ["Expr", "coalesce", "col", "duration", "event_time", "lit", "when", "where"]
