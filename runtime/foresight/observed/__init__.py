"""Observations of a flow: by a sample, or by an earlier job.

| file | contents |
| --- | --- |
| `flow_sample.py` | costs, counts and times of a flow, from either |
| `sampling.py` | a short run of the flow over some rows of each source |
| `slices.py` | its slices as a table of observations; the spread of its work |
| `stretches.py` | the rows of a sample: stretches of one time at all sources |
| `some_rows.py` | an input that passes on only these rows |
| `source_times.py` | arrivals and promises of a source's rows, without any stage |
| `history.py` | the same from the samples of earlier jobs |
"""
