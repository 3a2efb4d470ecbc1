"""Which slot each stage of a plan runs in, and why: a rule today, Mace's search to come.

| page | what it has |
| --- | --- |
| `place.py` | the simple rule, and the user's own word |
| `moved.py` | the user's word for a flow that runs: what may move, and what stays |
| `placement_text.py` | where each stage runs and with whom, as text |
"""
