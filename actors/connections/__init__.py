"""Watch a listening socket's connections, and hang up on those without a key.

`actors/wire` (between slots) and `ingest` (from Spark) listen on TCP. `ingest` may
import nothing else of `actors`. Nothing here needs Ray, nor anything else of ours.

- `monitor.py`: Yield the connection events of one socket; few connections without a key may wait.
- `pending.py`: Tell connections without a key from peers; hang up on surplus ones.
"""
