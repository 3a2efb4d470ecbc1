"""Decisions by predictions, before a flow runs and while it does.

- `admission.py`: Admission of a flow beside those that run, by its predicted latency.
- `placements.py`: Placement of a flow by a search, which counts thin and long links.
- `plan_choice.py`: Choice among plans with the same results, by latency: [mace] §IX-A.
- `provision.py`: Fewest nodes that keep a deadline. Source: [mace] §I, System Provisioning; §IX.
- `replica_choice.py`: Choice of the number of replicas, by the predictions with several.
- `worthwhile.py`: Re-placement of a running job is worth it if the gain beats the cost.
"""
