"""The operator of patterns: from rows to matches (docs/decisions/2026-11-24-patterns.md).

| page | contents |
| --- | --- |
| `step.py` | the step of the flow, and the seam of `shed=` |
| `stream.py`, `checked.py` | what a user writes, and what is refused |
| `machine.py` | rows in, matches out; predicates over earlier events |
| `fits.py` | which events of the pattern each row is |
| `rows.py` | the rows that matches are made of |
| `matchers.py` | each event to the matcher of its key |
| `leaving.py` | matches as rows |
"""
