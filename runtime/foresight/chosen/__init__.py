"""Decisions by predictions, before a flow runs and while it does.

| file | what is chosen |
| --- | --- |
| `placements.py` | the slot of each stage |
| `plan_choice.py` | one of the plans with the same results |
| `provision.py` | the fewest nodes that keep a deadline |
| `admission.py` | whether a flow is let in beside those that run |
| `worthwhile.py` | which stages of a running flow move |
"""
