"""Control loop of both hosts: samples in, commands out.

| file | what it says |
| --- | --- |
| `graph.py` | a flow's steps as deciders see them |
| `commands.py` | commands to a slot while it runs |
| `deciders.py` | several deciders, and which of them prevails |
| `rest.py` | latency that events still have downstream of a step that sheds |
| `loop.py` | rounds of samples, decisions and commands; the state for a successor |
"""
