"""Run a job from its start to its record: attached to its driver, or detached.

- `carrier.py`: Carry a job from the start of its slots to its end, in a thread.
- `coordinator.py`: Run a detached job: a Ray actor with a known name, which no driver owns.
- `deaths.py`: Find out how a slot's process died, from its traces on its host.
- `detached.py`: Control a detached job from other processes: its submitter, a later shell, a Ray
  client.
- `end_on_record.py`: Check by the cluster's records whether a lock's job is over.
- `job.py`: Run one job on a Ray cluster: its slots are actors on their nodes.
- `lasting.py`: A job that comes back: attempts, each from the newest checkpoint of those before.
- `logs.py`: Read the output of a detached job's processes from Ray's log files on their nodes.
- `named_actors.py`: Name the actors of a detached job, so that other processes find and end them.
- `periodic_calls.py`: Repeat calls to slots, one at a time to each, without waiting.
- `picklable.py`: Name the part of a plan that does not pickle: plans carry users' objects
  elsewhere.
- `ray_errors.py`: Turn Ray's errors back into ours, as if the worker's error had been raised here.
- `reach.py`: Look whether all hosts of a job reach one folder.
- `records.py`: Keep records of detached jobs, also after their end: JSON in Ray's key-value store.
- `replacing.py`: Move stages of a running job between its slots, or to new ones.
- `results.py`: Keep the rows of a job's collect sinks, here once the job has ended.
- `slot_actors.py`: Make, ask and end the Ray actors of a job's slots, within time limits.
- `spares.py`: Keep spare processes warm on a job's nodes, for slots whose processes die.
- `start_order.py`: Keep the order to start a detached job, for a later coordinator of it.
- `user_output_relay.py`: Show lines of a job's slots on its driver's terminal.
"""
