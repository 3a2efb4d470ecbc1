"""Facts of this host's kernel about processes and files. No Ray, nothing else of `actors`.

- `boot.py`: Identify the boot of the kernel that this process runs under.
- `descendants.py`: End the processes that code in this process has started.
- `occupied.py`: Measure how long a thread is occupied: its CPU time, and its own waits.
- `plain_files.py`: Write files for our user alone; read files of unknown origin with care.
- `process_identity.py`: Identify a process that others start for us, so that we can end it.
"""
