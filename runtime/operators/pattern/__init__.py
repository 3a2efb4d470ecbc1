"""`pattern`: sequences of events (docs/decisions/2026-11-24-patterns.md).

| page | contents |
| --- | --- |
| `step.py`, `explained.py` | the step of the flow |
| `stream.py`, `checked.py` | what a user writes, and what is refused |
| `machine.py` | rows in, matches out |
| `fits.py` | which events of the pattern each row is |
| `conditions.py`, `rows.py` | predicates over earlier events; the rows that they read |
| `matchers.py` | each event to the matcher of its key |
| `leaving.py` | matches as rows |
| `shed_pattern.py` | the operator round this machine that drops events under load |
| `shed_matchers.py` | its matchers: windows may have lost events, or be given up |
| `window_shedding.py`, `kinds.py`, `kept.py`, `open_windows.py` | what shedding sees of a read |
| `event_drops.py`, `pair_drops.py`, `stretch_drops.py` | what is dropped |
| `overload.py`, `passing.py` | how much is dropped; when rows are passed over |
| `what_if.py` | what shedding costs in matches |
"""

from slackwater.runtime.operators.pattern.stream import Patterning

__all__ = ["Patterning"]
