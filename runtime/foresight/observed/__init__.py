"""Observations of a flow: by a sample, or by an earlier job.

| file | what it has |
| --- | --- |
| `flow_sample.py` | costs, counts and times of a flow, whoever observed them |
| `sampling.py` | a short run of the flow over some rows of each source |
| `stretches.py` | which rows these are: stretches of one time at all sources |
| `some_rows.py` | an input that hands over these rows alone |
| `source_times.py` | when a source's rows come, and what they promise, without any stage |
| `history.py` | the same from what earlier jobs have kept |
"""
