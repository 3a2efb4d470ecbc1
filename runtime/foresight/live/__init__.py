"""A prediction held against the run that it is of, while that goes on.

| file | what it says |
| --- | --- |
| `live_estimate.py` | what latency is to be expected of what has arrived; what has shifted |
| `work_so_far.py` | the work of what has arrived, with what rows cost as they came |
| `seen_statistics.py` | what rows have cost of late, beside what was predicted with |
| `shifts.py` | which of that is far off, and has been for a while |
| `job_deciders.py` | a job's policies and its estimate, as the control loop asks them |
"""

from slackwater.runtime.foresight.live.job_deciders import JobDeciders
from slackwater.runtime.foresight.live.live_estimate import LiveEstimate

__all__ = ["JobDeciders", "LiveEstimate"]
