"""Observations of a flow: by a sample, or by an earlier job.

- `first_keys.py`: First keys of a flow: its sources' first rows, counted by key group.
- `flow_sample.py`: Observations of a flow, by a sample or by an earlier job: costs, counts, times.
- `history.py`: Statistics of a flow from the samples of its earlier jobs (`Tuning(history=…)`).
- `parts.py`: Parts of steps: put together in a sample, and divided for a plan.
- `sampling.py`: Short run of a flow, to learn its stages' costs.
- `slices.py`: Slices of a sample as a table of observations; the spread of their work.
- `some_rows.py`: Input of a sample: some rows of an input, in blocks of different lengths.
- `source_times.py`: Times of a source's first rows: arrivals, event times, promises.
- `stretches.py`: Rows of a sample: stretches of one time, evenly over the input.
"""
