"""Decisions by predictions, before a flow runs and while it does.

| file | choice |
| --- | --- |
| `placements.py` | the slot of each stage |
| `plan_choice.py` | one of the plans with the same results |
| `provision.py` | the fewest nodes that keep a deadline |
| `admission.py` | whether a flow may run beside others |
| `worthwhile.py` | moves of a running flow's stages |
"""
