"""`to_table`: the newest row of each key, as rows that change."""
