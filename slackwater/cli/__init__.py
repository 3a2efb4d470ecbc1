"""The command line: commands, their output, and the exit codes.

| file | what it does |
| --- | --- |
| `main.py` | run, explain, status, report, version; `slackwater` starts here |
| `cluster_commands.py` | submit, jobs, status JOB, logs, stop, latency |
| `doctor_command.py` | doctor: runs `slackwater/doctor`, and prints its findings |
| `shell.py` | shared by all commands: the app, options, errors, printing |
| `userfile.py` | the user's file, and the flow in it |
| `follow.py`, `progress.py` | watches a job to its end; shows its progress |
| `versions.py` | the versions that run here |
"""
