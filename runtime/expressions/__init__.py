"""Expressions over a row's columns: their types, text and computation.

- `casts.py`: Casts of expressions, `.cast(type)` and `.try_cast(type)`.
- `comparable.py`: Families of types, and the operands that can be compared.
- `compared.py`: Comparisons of numbers, exact where a whole number meets a float.
- `compute.py`: Compile a bound operation over expressions to a function of a batch.
- `decimals.py`: Operands of operations over decimals, which are Arrow arrays.
- `expressions.py`: Expressions over a row's columns, computed for a whole batch at once.
- `fit.py`: Values that a user's function returned, made a column of a declared type.
- `function.py`: Function: a row of the table, with operands, result, kernel, text and traits.
- `functions.py`: `map_elements`: a user's function on each value of an expression.
- `holding.py`: Types that hold the values of two others unchanged, for advice that loses none.
- `inside.py`: Parts of an expression, its columns renamed, and whether it can fail.
- `kernels.py`: Kernels of operators and of numbers, chosen once for known types.
- `literals.py`: Literals of an expression: value, type and text.
- `nested_methods.py`: Parts of lists, structs and maps: `col("a")["b"]`,
  `col("readings").list.mean()`.
- `notation.py`: Notation of an expression, with only the parentheses that Python needs.
- `nulls.py`: Operations over columns with nulls, as in SQL: kernels see values only.
- `result_types.py`: Types of expressions, from those of their operands, checked when a flow is
  built.
- `row_tests.py`: Predicate tested row by row: for few rows ten times faster than arrays.
- `table.py`: The table of functions: each function of expressions is one row.
- `text_methods.py`: Text of expressions, `col("s").str`: methods, and their kernels by Arrow.
- `time_methods.py`: Times of expressions, `col("t").dt`: parts, truncation and text, in the
  column's zone.
- `times.py`: Times in nanoseconds, out of columns that keep them in another unit.
- `whole.py`: Arithmetic of whole numbers: a result beyond 64 bits is refused, never wrapped.
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
