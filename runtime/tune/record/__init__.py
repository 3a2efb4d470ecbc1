"""What a tuner is told, what it may answer, and what is kept of both, second by second.

The ground of `runtime/tune`: nothing here predicts or chooses. A host needs this room and a policy.

| file | what it says |
| --- | --- |
| `contract.py` | samples of a second in, slacks out: what every policy looks like |
| `paths.py` | latency over the worst path of a flow, measured or predicted ([ssg] Eq. 2) |
| `tuning_record.py` | samples into whole seconds, seconds into a report |
"""
