"""Report of a run for people: on a terminal, as a file, as pictures.

| file | content |
| --- | --- |
| `render.py`, `latency_table.py` | tables: the report; the parts of latency |
| `picture.py`, `deadline_picture.py` | latency over time; a run under a deadline |
| `report_file.py` | `report.json` and `status.json`, replaced whole and checked when read |
| `progress.py` | progress of a run: on a terminal, in a notebook, in a log |
| `run_folders.py` | a folder for each run; the oldest are removed |
| `sanitize.py` | text from outside, made safe for a terminal |
"""
