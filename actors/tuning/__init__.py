"""Set slacks while a job runs: a tuner beside the job, its supervisor, its samples.

- `job_records.py`: Keep one job's samples in a file: JSON lines, the first about the job itself.
- `process.py`: Run one tuner: its actor, made by Ray, and its process, which surely ends.
- `sample_history.py`: Keep samples after their job: they tune the flow's next job from its start.
- `supervisor.py`: Supervise a job's tuner: start it, restart it, end it with the job.
- `tuner.py`: Run the SLTuner of [ssg] §5 as a Ray actor, in its own process.
"""
