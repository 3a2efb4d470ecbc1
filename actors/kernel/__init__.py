"""Facts of this host's kernel about processes and files. No Ray, nothing else of `actors`.

| file | what it does |
| --- | --- |
| `boot.py` | the boot id of this host's kernel |
| `process_identity.py` | identifies a process that others start for us, and ends it |
| `descendants.py` | ends the processes that code here has started |
| `plain_files.py` | reads a file that another user may have put there |
"""
