"""Decisions on slacks: policies, the models' search, and the choice of a ruling policy.

| file | what it decides |
| --- | --- |
| `feasible.py`, `chosen.py` | whether a job's deadline and settings can stand |
| `closing_shares.py` | how long windows that close by arrivals may wait |
| `make.py` | from settings to a policy |
| `policies.py` | the simple rules, and the rivals of [ssg] §6 |
| `model_rule.py` | the slacks of the models: estimator, trigger, climb |
| `trigger.py`, `climb.py` | whether slacks must change, and which cost the least order |
| `tuner.py`, `accounts.py` | SLTuner: all rules are tried, and the one with the best record rules |
| `guarded.py` | errors of a policy are counted, and never end the job |
"""
