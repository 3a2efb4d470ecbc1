"""The operator of patterns: from rows to matches (docs/decisions/2026-11-24-patterns.md).

- `checked.py`: Checks of a pattern, given the columns of its rows and its scope.
- `fits.py`: Fits tells, for a whole batch, which events of a pattern each row is.
- `leaving.py`: Matches leave as rows.
- `machine.py`: Sequences of events: rows in the order of the stream, matches out.
- `matchers.py`: The matchers of all keys: events in order in, matches out.
- `rows.py`: The rows that matches may be made of, found by their place in the stream.
- `saved_matchers.py`: State of all matchers, in columns, saved in steps.
- `step.py`: The step of a pattern, and the seam through which it sheds events.
- `stream.py`: The method `pattern` of streams.
"""
