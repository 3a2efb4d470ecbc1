"""`join`: pairs of rows of two streams with equal keys and close event times.

| page | contents |
| --- | --- |
| `step.py` | what a user writes, and the step made of it |
| `machine.py`, `one_row.py` | rows in, pairs out |
| `uncertain.py` | the same, where clocks may be off |
| `state.py`, `rows.py`, `columns.py`, `index.py` | the rows that wait for partners |
"""
