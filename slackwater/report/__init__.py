"""A run's report for people: on a terminal, as a file, as pictures. Nothing here runs anything.

| file | what it does |
| --- | --- |
| `render.py`, `latency_table.py` | tables: the report; where latency comes from |
| `picture.py`, `deadline_picture.py` | latency over time; a run under a deadline |
| `report_file.py` | `report.json` and `status.json`, replaced whole and read with care |
| `sanitize.py` | text of others, so that no terminal obeys it |
"""
