"""Whether a slot has something to tell that it has not told yet.

```
the loop: at work ── None ──▶ sleeps ── when it last worked ──▶ at work ── None ──▶ …
a call that waits looks once a second: is it what was told last?
```

So who wants to know how a slot goes on leaves one call with it: a call of Ray's costs the slot's
process a millisecond, a look 50 µs, and what the loop notes down next to nothing.
"""

from __future__ import annotations

import threading
import time

__all__ = ["News"]

LOOK_S = 1.0
"""How old news may be when it is told. It is what is known of a worker that is killed."""


class News:
    """What the loop notes down, and who waits for it: one thread.

    Attributes:
        quiet_since_ns: set by the loop: when it last had work, while it sleeps; None while it is at
            work, so also within a slice that hangs.
    """

    def __init__(self) -> None:
        self.quiet_since_ns: int | None = None
        self._told_ns = -1

    def wait(self, within_s: float, *, over: threading.Event) -> None:
        """Return when there is news, when all is over, or after so long."""
        until_s = time.monotonic() + within_s
        while self.quiet_since_ns == self._told_ns and (left_s := until_s - time.monotonic()) > 0:
            if over.wait(min(left_s, LOOK_S)):
                break
        quiet_ns = self.quiet_since_ns
        self._told_ns = -1 if quiet_ns is None else quiet_ns
