"""Each type through each operator and sink, beside DuckDB.

- `compare.py`: Each type through each operator, frame, snapshot and sink: differences from DuckDB.
- `drawn_types.py`: A column of each type, drawn at random from a few values, with nulls.
- `steps.py`: Operators over a column `x`, and the rows that DuckDB makes of the same rows.
"""
