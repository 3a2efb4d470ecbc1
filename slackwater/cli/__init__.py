"""Command line: commands and exit codes.

- `checkpoint_options.py`: Options of commands for a job's checkpoints.
- `cluster_commands.py`: Commands for a cluster: submit, jobs, status JOB, logs, stop, latency.
- `doctor_command.py`: Command `slackwater doctor`: finds problems of this machine or a cluster.
- `entry.py`: Begin the command line: signals count from here on, the rest is imported after.
- `follow.py`: Follow a job to its end: progress, and files that outlast it.
- `main.py`: Command line: run, explain, status, report, version.
- `plan_command.py`: Commands `slackwater plan` and `provision`: latency predicted before a flow
  runs.
- `rate_options.py`: Options of commands for rates, and for admission under a deadline.
- `shell.py`: Parts that all commands share: the app, its options, error messages and printing.
- `streams.py`: Handle stdout and stderr that are closed, or whose disk is full.
- `timesync_command.py`: Command `slackwater timesync`: a time server, its key, and a client's view.
- `userfile.py`: Import the user's file, and find the dataflow in it.
"""
