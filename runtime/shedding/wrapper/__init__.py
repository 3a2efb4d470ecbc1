"""The operator round that of a pattern: it drops events under load.

| page | contents |
| --- | --- |
| `words.py` | what a user writes for `shed=` |
| `shed_pattern.py` | the operator, and the class of every value of `shed=` |
| `shed_matchers.py` | its matchers: windows may have lost events, or be given up |
| `window_shedding.py`, `kinds.py`, `kept.py`, `open_windows.py` | what shedding sees of a read |
| `event_drops.py`, `pair_drops.py` | what is dropped; in stretches: `window_shedding.py` |
| `what_if.py` | what shedding costs in matches |
"""
