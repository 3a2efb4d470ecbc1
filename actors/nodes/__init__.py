"""The Ray nodes there are: started here or elsewhere, asked, looked after, found fit for slots.

| file | what it does |
| --- | --- |
| `ray_nodes.py` | the nodes that a flow runs on; begin here |
| `local.py` | nodes on this machine |
| `connecting.py` | from an address to a connected driver |
| `tokens.py` | a cluster's token, and who else can read it |
| `placement.py` | the nodes, and their room for slots |
| `versions.py` | what each node runs |
| `host_monitor.py` | whether hosts answer, asked of their kernels |
| `cluster_monitor.py` | whether the head and our own raylet answer |
| `gateway.py` | questions that only a process inside the cluster can answer |
| `time_limits.py` | calls to Ray's head, each within a time limit |
| `host_facts.py` | what a host is like, for `slackwater doctor` |

Programs that are run by their path, so they stay beside who runs them: `local_supervisor.py` (by
`local.py`), `stub_agent.py` and `late_agent.py` (by the supervisor), `probe.py` (by
`connecting.py`); the doctor sends `host_facts.py` over ssh.
"""
