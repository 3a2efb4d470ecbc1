"""Set slacks while a job runs: a tuner beside the job, its supervisor, its samples.

| file | what it does |
| --- | --- |
| `supervisor.py` | looks after a job's tuner; begin here |
| `process.py` | one tuner: its actor, and its process, which surely ends |
| `tuner.py` | asks the slots once a second, and sends them the policy's commands |
| `sample_history.py` | samples that outlive their job |
| `job_records.py` | the file of one job's samples |
| `back_off.py` | waits before a restart after repeated deaths |
"""
