"""Ray shells around the runtime: receive a stimulus, ask the runtime, perform its actions.

One room each, from the ground up:

| room | what it does |
| --- | --- |
| `kernel` | what this host's kernel says of processes and files |
| `connections` | connections to a listening socket that have not shown a key |
| `wire` | messages between slots |
| `sinks` | results, to where they leave |
| `nodes` | the cluster's Ray nodes |
| `slot` | one slot in real time |
| `tuning` | slacks, set while a job runs |
| `jobs` | a job from its start to its record |

docs/architecture.md says which may import which.
"""
