"""Start, connect, watch and check the Ray nodes of a cluster.

| file | what it does |
| --- | --- |
| `ray_nodes.py` | the nodes of a flow; begin here |
| `local.py` | nodes on this machine |
| `connecting.py` | from an address to a connected driver |
| `tokens.py` | a cluster's token, and which other users can read it |
| `placement.py` | the nodes, and their room for slots |
| `versions.py` | what each node runs |
| `host_monitor.py` | checks through their kernels that hosts answer |
| `cluster_monitor.py` | checks that the head and our own raylet answer |
| `gateway.py` | questions that only a process inside the cluster can answer |
| `in_band.py` | users' objects as bytes, for actors |
| `time_limits.py` | calls to Ray's head, each within a time limit |
| `host_facts.py` | facts of a host, for `slackwater doctor` |

Some programs are run by their path, so they stay beside their callers: `local_supervisor.py` (run
by `local.py`), `stub_agent.py` and `late_agent.py` (by the supervisor), `probe.py` (by
`connecting.py`); the doctor sends `host_facts.py` over ssh.
"""
