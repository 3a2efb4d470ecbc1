"""Operators change, drop and combine rows; `runtime/registry` has them all.

| folder | contents |
| --- | --- |
| `each_row` | operators that look at each row alone: a file each |
| others | an operator each: `step.py`, what a user writes; `machine.py`, what is done with rows |
| `ground` | what they share |

`pattern` is in `runtime/patterns/operator`. docs/add-an-operator.md says how to add an operator.
"""
