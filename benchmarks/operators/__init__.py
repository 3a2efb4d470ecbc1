"""What a row costs in each operator, beside Polars, DuckDB and Flink on the same rows."""
