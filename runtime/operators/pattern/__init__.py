"""`pattern`: sequences of events (docs/decisions/2026-11-24-patterns.md).

| page | what it has |
| --- | --- |
| `step.py`, `explained.py` | what it is to the flow |
| `stream.py`, `checked.py`, `drift.py` | what a user writes, and what is refused |
| `machine.py` | rows in, matches out |
| `fits.py` | which events of the pattern each row is |
| `conditions.py`, `rows.py` | predicates over earlier events; the rows that they read |
| `values.py` | what matchers have to know of each row beside that |
| `leaving.py` | matches as rows |
"""

from runtime.operators.pattern.stream import KeyedPatterning, Patterning

__all__ = ["KeyedPatterning", "Patterning"]
