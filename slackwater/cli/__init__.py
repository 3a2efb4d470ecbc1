"""Command line: commands and exit codes.

| file | content |
| --- | --- |
| `entry.py` | first lines of `slackwater`: signals count from there on |
| `main.py` | run, explain, status, report, version |
| `cluster_commands.py` | submit, jobs, status JOB, logs, stop, latency |
| `doctor_command.py` | doctor: runs the checks of `slackwater/doctor`, and prints them |
| `shell.py` | parts of all commands: the app, options, error messages, printing |
| `userfile.py` | the user's file, and the flow in it |
| `follow.py` | a job followed to its end |
| `versions.py` | versions here |
"""
