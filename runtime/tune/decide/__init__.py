"""Decisions on slacks: policies, the models' search, and the choice of a ruling policy.

- `accounts.py`: Record of each rule: its cost in rows, and whether it kept the deadline.
- `climb.py`: Greedy hill climbing for slacks: fewest slack-ready events within the deadline.
- `closing_shares.py`: Shares of the deadline that bound how long closing windows wait.
- `feasible.py`: Check whether any slack can meet a deadline, before the flow runs.
- `guarded.py`: Guard of a policy: its errors are counted, and its host goes on.
- `make.py`: Make a policy from settings.
- `model_rule.py`: Slacks chosen by models: the fewest slack-ready events within the deadline.
- `policies.py`: Simple slack policies: rivals of the tuner, which users may pick.
- `tuner.py`: SLTuner: slacks by its models or a simple rule, whichever has the better record.
"""
