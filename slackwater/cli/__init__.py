"""The command line: what a person types, what is shown meanwhile, and the exit codes.

| file | what it does |
| --- | --- |
| `main.py` | run, explain, status, report, version; `slackwater` starts here |
| `cluster_commands.py` | submit, jobs, status JOB, logs, stop, latency |
| `doctor_command.py` | doctor: asks `slackwater/doctor`, and prints what it found |
| `shell.py` | what all commands share: the app, options, errors told, printing |
| `userfile.py` | the user's file, and the flow in it |
| `follow.py`, `progress.py` | a job watched to its end, and how it is going |
| `versions.py` | what runs here |
"""
