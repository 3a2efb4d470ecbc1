"""Carry messages between slots, over TCP or a Unix socket. No Ray.

| file | what it does |
| --- | --- |
| `channel.py` | a channel's two ends: a sender and a receiver |
| `channel_end.py` | shared by both ends: a ZeroMQ socket, read and written without waiting |
| `frames.py`, `buffers.py` | a message as bytes; a column of it as Arrow buffers |
| `keys.py` | CURVE keys, and the handler that admits their holders |
| `listening.py` | lets a guarded socket listen on TCP |
| `refused_peers.py` | counts refused connections, and logs their addresses |
| `local_sockets.py` | which processes share our host, and sockets that only our user can reach |
| `waiting.py` | waits for channels, and for other threads |
"""
