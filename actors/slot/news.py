"""Tell whether a slot has worked since its last report.

```
the loop: at work ── None ──▶ sleeps ── time of its last work ──▶ at work ── None ──▶ …
a call that waits checks once a second: is this time the one told last?
```

So a caller that wants a slot's news leaves one call with it: a Ray call costs the slot's process a
millisecond, a check 50 µs, and the loop's note next to nothing.
"""

from __future__ import annotations

import threading
import time

__all__ = ["News"]

LOOK_S = 1.0
"""Greatest age of news when told. A killed worker leaves no more than this."""


class News:
    """The loop's note of its last work, and the one thread that waits for it.

    Attributes:
        quiet_since_ns: set by the loop: while it sleeps, when it last had work; None if it
            works, also within a slice that hangs.
    """

    def __init__(self) -> None:
        self.quiet_since_ns: int | None = None
        self._reported_ns = -1

    def wait(self, within_s: float, *, over: threading.Event) -> None:
        """Return when there is news, the slot is over, or `within_s` has passed."""
        until_s = time.monotonic() + within_s
        while (
            self.quiet_since_ns == self._reported_ns and (left_s := until_s - time.monotonic()) > 0
        ):
            if over.wait(min(left_s, LOOK_S)):
                break
        quiet_ns = self.quiet_since_ns
        self._reported_ns = -1 if quiet_ns is None else quiet_ns
