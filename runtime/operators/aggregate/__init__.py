"""`aggregate`: results per key and window of event time.

- `accumulating.py`: Accumulating machines: rows add to the states of cells, and results come of
  these states.
- `accumulators.py`: Accumulators hold the state of cells: a count, sum, minimum or maximum, or all
  values.
- `aggregate_functions.py`: Users write an aggregate function of a column: `sw.mean("x")`, or
  `sw.count(where=…)`.
- `calendar_windows.py`: Calendar windows: days, weeks, months, quarters and years of a zone's
  clock.
- `cells.py`: A cell is the rows of one key in one pane.
- `chosen_rows.py`: Chosen rows of each cell: the first, the greatest k, those that differ, all.
- `close.py`: `close=` of an aggregate: its settings, and their checks where a user writes it.
- `closing.py`: Windows close in time: rows come by arrival, and a policy closes windows.
- `combine.py`: Partial results beside the source: a row for each key and pane of a batch.
- `counted_values.py`: Values of each cell, each with the number of its rows.
- `cumulative_windows.py`: Cumulative windows: several begin together, and each ends one step after
  the one before.
- `custom_aggregate.py`: Users write a custom aggregate: functions that make a state, and a result
  of it.
- `custom_states.py`: States of a custom aggregate, by cell, and calls of the user's functions.
- `early_results.py`: Early results: a window leaves before its end, again and again, as its rows
  come.
- `empty_windows.py`: Windows without rows: each known key leaves them for a time after its rows.
- `exact_sums.py`: Exact sums of floats, from which rows can be taken out.
- `interval_cells.py`: Cells of intervals: each has rows of a key, and is held until a time.
- `interval_machine.py`: The machine of intervals: rows extend them, and they leave when they are
  over.
- `interval_rule.py`: The contract of rules of intervals: cells of rows, and intervals that are
  over.
- `interval_words.py`: Users write windows that follow from the rows of a key: sessions, counts, all
  rows.
- `kinds.py`: Kinds of aggregates, in one table: the columns each takes, its states, and its
  results.
- `machine.py`: Windowed aggregates: rows accumulate in cells (key × pane), windows leave as they
  close.
- `moments.py`: Variances: sums of distances to a value of the cell, and of their squares.
- `needs.py`: Needs: the states that aggregates are computed from; aggregates share equal ones.
- `openings.py`: Windows that rows open: each row that fits opens a window of its key.
- `over_machine.py`: The machines of `over`: rows leave with aggregates of the rows before them.
- `over_step.py`: `over`: its step, and the method that makes it.
- `pair_moments.py`: Covariances: sums of products of distances to a pair of the cell.
- `partial_aggregates.py`: Partial aggregates of a batch, made beside a source, and aggregates of
  these.
- `ranges.py`: Aggregates of ranges of rows that lie side by side, without a copy.
- `row_counts.py`: Count windows: so many rows of a key, in the order in which they come.
- `running.py`: Running aggregates: the states of cells after each row.
- `runs.py`: Runs of a read: the rows of each key, and the state before them.
- `schema.py`: Schemas of the results of an aggregate, and the checks of its columns.
- `segments.py`: Segments of rows of an aggregate: its windows close between them.
- `sessions.py`: Sessions: rows of a key that follow each other within a gap are one interval.
- `states.py`: States of cells: the needs of a step's aggregates, and the columns made of them.
- `step.py`: `aggregate`: its step, and the method that makes it.
- `three_windows.py`: `drift=` of an aggregate: each window as it is, and moved by the bound.
- `totals_machine.py`: The machine of an aggregate without windows, whose results change.
- `totals_step.py`: `aggregate` without windows: its step, whose results change with each row.
- `whole_sum.py`: Sums of whole numbers that no stream fills, and means.
- `window.py`: Windows of event time, in whole panes: when each closes, and its panes.
- `window_step.py`: Steps that aggregate rows in windows: their base, and the step of intervals.
- `written.py`: Users write an aggregate with windows of event time and the aggregates of columns.
"""
