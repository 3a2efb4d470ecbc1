"""`aggregate`: results per key and window of event time.

| page | contents |
| --- | --- |
| `step.py`, `schema.py`, `close.py`, `written.py` | what a user writes, and the step made of it |
| `machine.py`, `closing.py`, `segments.py` | rows in, windows out; when windows close |
| `three_windows.py` | the same, where clocks may be off |
| `window.py`, `cells.py` | the windows of a row, and the state of each window |
| `needs.py`, `accumulators.py`, `whole_sum.py` | the values that are computed |
"""
