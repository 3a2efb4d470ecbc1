"""Policies that close windows, from `ignore` to ProbSlack, with what they report.

`policy` is the interface, `words` the functions that users write. A run is `ground` (ticks, rows,
how far windows had closed when a row came) and `account` (closed windows, missed rows). It runs
under one of the simple policies or under ProbSlack. ProbSlack is `histograms` and `fitting`
(statistics of the rows), `tables` and `lines` (how long to wait for each type), `candidates` or
`disorder` (when windows may close), `budget` and `settling` (when they do).
"""
