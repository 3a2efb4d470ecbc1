"""Each type through each operator and sink, beside DuckDB.

| file | content |
| --- | --- |
| `drawn_types.py` | a column of each type, drawn at random |
| `steps.py` | what is done to a column, and the rows that DuckDB makes of it |
| `compare.py` | the benchmark `values` |
"""
