"""The contract of all operators, and the code that they share.

| page | contents |
| --- | --- |
| `contract.py` | the promises of every operator |
| `streams.py`, `flow_builder.py`, `checks.py`, `keep.py` | what streams share |
| `keys.py`, `codes.py`, `arrays.py` | key columns to dense codes; arrays that grow |
| `user_code.py`, `fit.py` | the user's functions and expressions, and what they return |
| `late_rows.py` | rows that came too late |
| `drift.py` | how far clocks may be off |
"""
