"""One control loop for both hosts: samples in, commands out.

| file | what it says |
| --- | --- |
| `commands.py` | what a slot may be told while it runs |
"""
