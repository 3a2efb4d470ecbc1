"""Present a run's report to people: on a terminal, as a file, as pictures.

Nothing here runs anything.

| file | what it does |
| --- | --- |
| `render.py`, `latency_table.py` | tables: the report; where latency comes from |
| `picture.py`, `deadline_picture.py` | latency over time; a run under a deadline |
| `report_file.py` | `report.json` and `status.json`: replaced whole, and checked when read |
| `sanitize.py` | makes text of others safe for a terminal |
"""
