"""Which slacks are set: policies, the search behind the models, and who of them rules.

| file | what it decides |
| --- | --- |
| `feasible.py`, `chosen.py` | whether a job's deadline and settings can stand |
| `closing_shares.py` | what windows that close in time may wait |
| `make.py` | from settings to a policy |
| `policies.py` | the simple rules, and the rivals of [ssg] §6 |
| `model_rule.py` | what the models would set: estimator, trigger, climb |
| `trigger.py`, `climb.py` | whether slacks must change, and which lose the least order |
| `tuner.py`, `accounts.py` | SLTuner: all run along, and the one with the best record rules |
| `guarded.py` | what a policy does wrong is counted, and takes nobody down |
"""
