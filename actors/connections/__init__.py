"""Watch a listening socket's connections, and hang up on those without a key.

`actors/wire` (between slots) and `ingest` (from Spark) listen on TCP. `ingest` may
import nothing else of `actors`. Nothing here needs Ray, nor anything else of ours.

| file | what it does |
| --- | --- |
| `pending.py` | tells connections without a key from peers, and hangs up on surplus ones |
| `monitor.py` | reports libzmq's connection events, and checks pending connections meanwhile |
"""
