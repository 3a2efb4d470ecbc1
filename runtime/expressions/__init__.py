"""Expressions over a row's columns: what they are, which types they have, how they compute.

| page | what it has |
| --- | --- |
| `expressions.py` | what a user writes: `col("speed") < 8` |
| `literals.py`, `notation.py` | what may stand in one as it is; how one is written as text |
| `result_types.py` | which type leaves an operation |
| `compute.py`, `kernels.py`, `compared.py`, `whole.py` | what an operation computes |
| `row_tests.py` | a predicate asked row by row, for a row or two |
| `nearest.py` | the name that was probably meant, for errors |
"""

from slackwater.runtime.expressions.expressions import Expr, col, duration, event_time, lit, where

__all__ = ["Expr", "col", "duration", "event_time", "lit", "where"]
