"""What this host's kernel says of processes and files. No Ray, nothing else of `actors`.

| file | what it does |
| --- | --- |
| `boot.py` | which boot of which kernel we run under |
| `process_identity.py` | a process of ours, known for certain, and ended for certain |
| `plain_files.py` | reads a file that somebody else may have put there |
"""
