"""Keep memory that a slice frees in the slot's process, for the next slice.

```
slice     takes 5 MB ─▶ gives them back ─▶ the next slice takes 5 MB
glibc     returns them, if they end the heap: the system clears each page again
kept      up to `HEAP_BYTES` stay, and are used as they are
```

Clearing pages took a tenth to a third of an aggregate's time, in some runs and not in others: it
depends on what happens to lie at the end of the heap.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["keep_freed_memory"]

HEAP_BYTES = 64 * 2**20
"""Freed bytes that stay at the end of a heap, of which glibc has several; above that, all of them
return to the system. Some ten times what the longest slice takes."""
MAPPED_FROM_BYTES = 32 * 2**20
"""Larger arrays are mapped apart and return at once; glibc allows no more than this."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_OF_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Make this process keep `HEAP_BYTES` of freed heap memory; return whether it does.

    It does not without glibc, or if the environment has settings for glibc: those hold.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or any(name in os.environ for name in _OF_USERS):
        return False
    is_set = set_option(_TRIM_THRESHOLD, HEAP_BYTES)
    return bool(is_set and set_option(_MMAP_THRESHOLD, MAPPED_FROM_BYTES))
