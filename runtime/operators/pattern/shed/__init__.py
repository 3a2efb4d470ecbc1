"""A pattern under load: an operator round `PatternMachine` that drops events.

| page | contents |
| --- | --- |
| `shed_pattern.py` | the operator |
| `shed_matchers.py` | matchers whose windows have lost events, or are given up |
| `window_shedding.py`, `kinds.py`, `kept.py`, `open_windows.py` | what shedding sees of a read |
| `event_drops.py`, `pair_drops.py`, `stretch_drops.py` | what is dropped |
| `overload.py`, `passing.py` | how much is dropped; when rows are passed over |
| `what_if.py` | what shedding costs in matches |
"""
