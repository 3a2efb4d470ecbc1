"""Contract and record of a tuner: samples in, slacks out, second by second.

The base of `runtime/tune`: this room neither predicts nor chooses. A host needs it and a policy.

- `contract.py`: Contract of a slack policy: samples of a second in, rules out.
- `paths.py`: Latency over the paths of a flow. Source: [ssg] Eq. 2.
- `tuning_record.py`: Record of the tuner: samples into whole seconds, seconds into a report.
"""
