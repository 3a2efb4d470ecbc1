"""A job from its start to its record: attached to its driver, or detached from it.

| file | what it does |
| --- | --- |
| `job.py` | a job's slots, watched until the end; begin here |
| `slot_actors.py` | their Ray actors: made, asked, ended |
| `replacing.py` | its stages move to other slots while it runs |
| `coordinator.py` | who runs a detached job |
| `detached.py` | a detached job as others hold it |
| `records.py` | what is known of detached jobs, also later |
| `end_on_record.py` | whether the job that holds a lock is over |
| `results.py` | what collect sinks have gathered |
| `picklable.py` | what of a plan cannot be sent, named |
| `logs.py`, `user_output_relay.py` | what its processes have printed: later, and at once |
| `latest_reports.py` | what each slot last said of itself |
| `deaths.py`, `ray_errors.py` | how a process died; Ray's errors as ours |
| `periodic_calls.py` | calls to slots, made now and then |
"""
