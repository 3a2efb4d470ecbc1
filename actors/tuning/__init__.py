"""Slacks, set while a job runs: the tuner beside it, kept alive, and what it learns from.

| file | what it does |
| --- | --- |
| `supervisor.py` | a job's tuner in its care; begin here |
| `process.py` | one tuner: its actor, and its process, which ends for certain |
| `tuner.py` | asks the slots once a second, and tells them what the policy decides |
| `sample_history.py` | samples that outlive their job |
| `job_records.py` | the file that they are kept in |
| `back_off.py` | how long to leave in peace what dies again and again |
"""
