"""`join`: pairs of rows of two streams with equal keys and close event times.

- `asof.py`: `asof`: its step, and the method that makes it.
- `asof_machine.py`: As-of join: each left row leaves once, with the nearest right row of its key.
- `code_index.py`: An index finds places of stored rows by a code, as of their key.
- `columns.py`: The columns of one side of a join are queues: rows leave at the front.
- `fresh.py`: Rows of a table that is read again count until the next reading alone.
- `how.py`: Words of joins: rows that leave, and keys as text.
- `index.py`: An index finds the held rows of a key within a span of event time.
- `key_places.py`: Places of keys in a table.
- `lives.py`: Pairs of rows whose lives meet, of which some come or go.
- `lookup.py`: `lookup` and `cross`: rows with those of a table, by key.
- `machine.py`: Sliding-window join of two streams: pairs of equal keys whose event times are close.
- `one_row.py`: OneRow joins a single row, as most come at the speed of the clock.
- `right_rows.py`: Right rows of an as-of join: of each key those that are needed.
- `rows.py`: The rows that a join holds, of both sides, in the order of processing.
- `state.py`: A join holds rows, and an index over them that is made only when needed.
- `step.py`: `join`: its step, the columns that leave, and the method that makes it.
- `table_join.py`: A join of tables: its step, and the check of its options.
- `table_join_machine.py`: A join of tables stores the rows of both sides by key.
- `table_rows.py`: Table of a lookup: read whole, once, and kept in the step.
- `table_side.py`: A side of a join of tables finds its rows by key and by values.
- `uncertain.py`: A join with `drift=` finds pairs that are surely near enough, and possible ones.
- `unmatched.py`: Unmatched rows of a join leave in order with the pairs.
"""
