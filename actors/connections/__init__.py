"""What both wires need of a socket that listens: to know who calls, and to hang up.

`actors/wire` (between slots) and `ingest` (from Spark) listen on TCP. This is all that `ingest` may
import of `actors`. Nothing here needs Ray, nor anything else of ours.

| file | what it does |
| --- | --- |
| `pending.py` | tells connections that have not shown a key from peers, and hangs up on some |
| `monitor.py` | hears from libzmq who comes and goes, and has the callers looked at meanwhile |
"""
