"""Messages from one slot to another: over TCP with keys, or over a Unix socket of one host. No Ray.

| file | what it does |
| --- | --- |
| `channel.py` | a channel's two ends: a sender and a receiver |
| `channel_end.py` | what both share: a ZeroMQ socket, read and written without waiting |
| `frames.py`, `buffers.py` | a message as bytes; a column of it as Arrow buffers |
| `keys.py` | who may speak: CURVE keys, and who checks them |
| `listening.py` | how a socket comes to listen on TCP |
| `refused_peers.py` | who was refused, counted and told |
| `local_sockets.py` | who is on our host, and sockets that only our user can reach |
| `waiting.py` | waits for channels, and for other threads |
"""
