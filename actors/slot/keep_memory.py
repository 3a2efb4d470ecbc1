"""Memory that a slice gives back stays with the slot's process: the next slice asks for as much.

```
slice     takes 5 MB ─▶ gives them back ─▶ the next takes 5 MB
glibc     to the system, if they lie at the end of the heap: each page is cleared anew
kept      so much of it stays, and is taken as it is
```

Of what an aggregate took, a tenth to a third was clearing pages, in some runs and not in others,
for it hangs on what happens to lie at the end.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["keep_freed_memory"]

KEPT_BYTES = 64 * 2**20
"""Of freed memory at the end of a heap, of which glibc has several: if there is more, all of that
goes back. Some ten times what a longest slice takes."""
MAPPED_FROM_BYTES = 32 * 2**20
"""Arrays of so much, the most that glibc allows, are mapped apart and go back at once."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_OF_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Have this process keep `KEPT_BYTES` of what it frees in a heap; return whether it does.

    Not where there is no glibc, or where its settings are given by the environment: those hold.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or any(name in os.environ for name in _OF_USERS):
        return False
    kept = set_option(_TRIM_THRESHOLD, KEPT_BYTES)
    return bool(kept and set_option(_MMAP_THRESHOLD, MAPPED_FROM_BYTES))
