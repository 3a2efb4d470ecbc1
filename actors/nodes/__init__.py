"""Start, connect, watch and check the Ray nodes of a cluster.

- `cluster_monitor.py`: Watch the two processes a driver depends on: the head's gcs_server, its
  raylet.
- `connecting.py`: Connect a driver to an address: find the Ray head, ask it, then call `ray.init`.
- `gateway.py`: Ask questions that only a process inside the cluster can answer, from any driver.
- `host_facts.py`: Collect facts of a host for `slackwater doctor`, without judgement.
- `host_monitor.py`: Ask kernels whether their hosts answer, so that a lost host is known within
  seconds.
- `in_band.py`: Objects of users as bytes, so that they arrive through Ray as they left.
- `late_agent.py`: Stand in for Ray's runtime env agent until its first call: 8 MB, not 75.
- `local.py`: Simulate Ray nodes on this machine: driver's side of
  `actors/nodes/local_supervisor.py`.
- `local_supervisor.py`: Start the local Ray nodes, outlive their driver, and take them down.
- `placement.py`: List the Ray nodes for the slots of [mace] Def. 7, and check their room.
- `probe.py`: Probe a Ray head in a separate process; print one line of JSON.
- `ray_nodes.py`: Open the Ray nodes of a flow: start local ones, or connect to a cluster.
- `stub_agent.py`: Stand in for Ray's dashboard agent: 8 MB, not 85, and no polling.
- `time_limits.py`: Limit the time of Ray calls that have no limit.
- `tokens.py`: Find a cluster's token file, and check that no other user can read it.
- `versions.py`: Refuse nodes that run other versions than the submitter, before a job starts.
- `warm_workers.py`: Fork workers of a local node from a process that has loaded Ray and Slackwater.

Some programs are run by their path, so they stay beside their callers: `local_supervisor.py` (run
by `local.py`), `stub_agent.py`, `late_agent.py` and `warm_workers.py` (by raylets), `probe.py` (by
`connecting.py`); the doctor sends `host_facts.py` over ssh.
"""
