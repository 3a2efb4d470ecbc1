"""Report of a run for people: on a terminal, as a file, as pictures.

- `deadline_picture.py`: Picture of a run under a deadline: latency, slack, slack-ready, late rows,
  results.
- `kept.py`: Text of how well a deadline was kept, and of slacks.
- `latency_table.py`: Parts of a job's latency: sinks by quantile, stages by part, links by delay.
- `ledger_text.py`: Ledger of a run in a line or two, with its verdict.
- `live_view.py`: Live view of a run: live on a terminal and in a notebook, or lines.
- `operator_tables.py`: Tables of closing and shedding, for the operators that do it.
- `picture.py`: Pictures of latency over stimulus time: a PNG, and blocks on a terminal.
- `prediction_table.py`: Predicted and measured latency, as a table and as lines of a picture.
- `render.py`: Report of a run as text: tables, the ledger with its verdict, and notes.
- `report_file.py`: Report of a run on disk: `report.json` at its end, `status.json` while it runs.
- `run_folders.py`: Folders of runs without `--out`: out/<flow>-<local time>.
- `run_status.py`: Tell whether a run is still there: its status file, its process, its heartbeat.
- `sanitize.py`: Text from outside, made safe for the command line: styled, as JSON, or plain.
- `tables.py`: Columns and numbers of a report's tables.
"""
