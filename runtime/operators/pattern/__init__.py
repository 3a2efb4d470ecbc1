"""`pattern`: sequences of events (docs/decisions/2026-11-24-patterns.md).

| page | contents |
| --- | --- |
| `step.py` | the step of the flow |
| `stream.py`, `checked.py` | what a user writes, and what is refused |
| `machine.py` | rows in, matches out; predicates over earlier events |
| `fits.py` | which events of the pattern each row is |
| `rows.py` | the rows that matches are made of |
| `matchers.py` | each event to the matcher of its key |
| `leaving.py` | matches as rows |
| `shed_pattern.py` | the operator round this machine that drops events under load |
| `shed_matchers.py` | its matchers: windows may have lost events, or be given up |
| `window_shedding.py`, `kinds.py`, `kept.py`, `open_windows.py` | what shedding sees of a read |
| `event_drops.py`, `pair_drops.py` | what is dropped; in stretches: `window_shedding.py` |
| `overload.py` | how much is dropped; when rows are passed over |
| `what_if.py` | what shedding costs in matches |
"""
