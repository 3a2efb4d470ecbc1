"""Expressions over a row's columns: their types, text and computation.

| file | content |
| --- | --- |
| `expressions.py` | expressions as a user writes them: `col("speed") < 8` |
| `literals.py`, `notation.py` | literals in an expression; an expression as text |
| `table.py`, `function.py` | the table of functions, and a row of it |
| `result_types.py`, `comparable.py`, `holding.py` | result types of functions, operands refused |
| `compute.py`, `nulls.py` | a function of a batch, made of a kernel for known types |
| `kernels.py`, `compared.py`, `whole.py`, `casts.py` | kernels of numbers, comparisons and casts |
| `text_methods.py`, `time_methods.py` | methods and kernels of text and of times |
| `nested_methods.py` | those of lists, structs and maps |
| `inside.py` | parts of an expression, and whether it can fail |
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
