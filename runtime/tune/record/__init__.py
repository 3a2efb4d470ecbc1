"""Contract and record of a tuner: samples in, slacks out, second by second.

The base of `runtime/tune`: this room neither predicts nor chooses. A host needs it and a policy.

| file | what it says |
| --- | --- |
| `contract.py` | the protocol of every policy: samples of a second in, slacks out |
| `paths.py` | latency over the worst path of a flow, measured or predicted ([ssg] Eq. 2) |
| `tuning_record.py` | samples into whole seconds, seconds into a report |
"""
