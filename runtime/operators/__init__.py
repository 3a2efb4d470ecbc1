"""Operators: what a flow does to rows, each a machine behind a gate.

| page | what it has |
| --- | --- |
| `contract.py` | what every operator promises |
| `make.py` | from a step to its machine |
| `stateless.py`, `user_code.py`, `fit.py` | filter, assign, select, map |
| `aggregate.py`, `window.py`, `cells.py`, `accumulators.py` | windowed aggregates |
| `join.py`, `join_state.py`, `join_index.py`, `join_rows.py` | the sliding-window join |
| `keys.py`, `codes.py`, `arrays.py` | key columns to dense codes; arrays that grow |
"""

from runtime.operators.contract import Operator, Stateless
from runtime.operators.make import make_operator, make_stateless

__all__ = ["Operator", "Stateless", "make_operator", "make_stateless"]
