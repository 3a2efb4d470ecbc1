"""Ray shells around the runtime: receive a stimulus, ask the runtime, perform its actions.

One room each, from the ground up:

- `checkpoints/`: Keep checkpoints on disk: a file a slot, a manifest as the commit. No Ray.
- `connections/`: Watch a listening socket's connections, and hang up on those without a key.
- `jobs/`: Run a job from its start to its record: attached to its driver, or detached.
- `kernel/`: Facts of this host's kernel about processes and files. No Ray, nothing else of
  `actors`.
- `nodes/`: Start, connect, watch and check the Ray nodes of a cluster.
- `sinks/`: Write results where they leave: to files, to the user's function, or to memory.
- `slot/`: Run a slot in real time, around `runtime/schedule/slot.py`. No Ray.
- `tuning/`: Set slacks while a job runs: a tuner beside the job, its supervisor, its samples.
- `wire/`: Carry messages between slots, over TCP, or a Unix socket and shared memory. No Ray.

docs/architecture.md says which may import which.
"""
