"""Run a job from its start to its record: attached to its driver, or detached.

| file | what it does |
| --- | --- |
| `job.py` | starts a job's slots, and reports on them; begin here |
| `slot_actors.py` | makes, asks and ends their Ray actors |
| `replacing.py` | moves its stages to other slots while it runs |
| `coordinator.py` | runs a detached job |
| `detached.py` | controls a detached job from other processes |
| `records.py` | records of detached jobs, also after their end |
| `end_on_record.py` | checks whether a lock's job is over |
| `results.py` | rows of collect sinks |
| `picklable.py` | names the part of a plan that does not pickle |
| `logs.py`, `user_output_relay.py` | output of its processes: later, and at once |
| `latest_reports.py` | the newest report of each slot |
| `deaths.py`, `ray_errors.py` | cause of a process's death; Ray's errors as ours |
| `periodic_calls.py` | repeated calls to slots |
"""
