"""Carry messages between slots, over TCP, or a Unix socket and shared memory. No Ray.

- `buffers.py`: Convert a column to Arrow buffers and back: parts of a frame's body
  (`actors/wire/frames.py`).
- `channel.py`: Connect the two ends of a channel: one edge of the plan, one ZeroMQ connection.
- `channel_end.py`: Share one ZeroMQ socket's code between both ends: read and write without
  waiting.
- `extras.py`: Encode the optional parts of a frame: tag, arrivals, masks of nulls, row fields.
- `frames.py`: Encode a message as bytes: a fixed header and the Arrow buffers of its columns.
- `keys.py`: Admit only holders of a job's CURVE keys to its channels, through a ZAP handler.
- `listening.py`: Let a socket of ours listen on TCP: guarded, on one network, watched.
- `local_sockets.py`: Identify processes of one host, and place sockets that only our user can
  reach.
- `refused_peers.py`: Count the connections that a socket refused, and log each address once.
- `shared_memory.py`: Share memory between two ends of a channel on one host, for long frames.
- `waiting.py`: Wait for channels, and for other threads, to the microsecond.
"""
