"""The frontier of some writers: the least promise of those that may still speak.

```
a   promises 9        frontier = (8, b): everything before time 8 is complete, and of time 8
b   promises 8        what comes before b in the tie order a < b < c, and b's own
c   promises 8        (b may repeat time 8, but a can no longer send it)
```

Ties break by writer, so the frontier is a pair: with the time alone (`event_time ≤ merge_ts`,
[ssg] Def. 2.1) an event of time 8 from a could be released before or after b's next one,
as the network likes, and two runs would differ.

Times are of any one kind: event times at a gate, arrivals where windows close by these. This form
takes promises one at a time; `frontier_of_rows.py` has the same rule for all rows of a block.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.state import Fields

_FEW = 16  # up to here a Python list is faster than an array


class Frontier:
    """The promises of all writers. Writers are numbered in tie order.

    The frontier does not wait for a writer marked idle until it speaks again.
    Source: [ssg] merge_ts and max_ts of Def. 2.1 and 3.1; maxWriterTs of Algorithm 1.
    """

    STATE = Fields("promises_ns", "newest_ns", "clock_ns", "_idle")

    def __init__(self, writers: int) -> None:
        self.promises_ns = [START_NS] * writers
        self.newest_ns = START_NS
        """max_ts: the newest time that any writer has sent."""
        self.clock_ns = START_NS
        """Time by a clock, which counts while every writer is idle or has ended."""
        self._idle: set[int] = set()
        # For many writers: the promises as an array, idle ones at END_NS.
        self._array = np.full(writers, START_NS, dtype=np.int64) if writers > _FEW else None

    def advance(self, writer: int, promise_ns: int) -> None:
        """Take a writer's promise; an older one than before changes nothing."""
        if promise_ns > self.promises_ns[writer]:
            self.promises_ns[writer] = promise_ns
        elif not self._idle:
            return
        self._idle.discard(writer)
        if self._array is not None:
            self._array[writer] = self.promises_ns[writer]

    def mark_idle(self, writer: int) -> None:
        """Leave a silent writer out until it speaks again, unless it has ended."""
        if self.promises_ns[writer] == END_NS:
            return
        self._idle.add(writer)
        if self._array is not None:
            self._array[writer] = END_NS

    def wait_for_all_but(self, idle: Collection[int]) -> None:
        """Leave just these writers out, and wait for all others again."""
        for writer in self._idle.difference(idle):
            self.advance(writer, START_NS)
        for writer in idle:
            self.mark_idle(writer)

    @property
    def idle(self) -> frozenset[int]:
        """The writers that are idle."""
        return frozenset(self._idle)

    @property
    def silent(self) -> int:
        """How many writers are idle, or have ended."""
        return len(self._idle) + self.promises_ns.count(END_NS)

    def minimum(self) -> tuple[int, int]:
        """Return the smallest promise and the first writer, in tie order, that made it.

        With every writer idle, or ended while one is idle (which may still wake up), it is the
        newest time seen, or that by the clock, with a writer number past the last.
        """
        promises = self.promises_ns
        if self._array is not None:
            writer = int(self._array.argmin())
            promise = self._array.item(writer)
        elif self._idle:
            active = [w for w in range(len(promises)) if w not in self._idle]
            writer = min(active, key=promises.__getitem__, default=0)
            promise = promises[writer] if active else END_NS
        else:
            promise = min(promises)
            return promise, promises.index(promise)
        if promise == END_NS and self._idle:
            return max(self.newest_ns, self.clock_ns), len(promises)
        return promise, writer

    def holders(self) -> list[int]:
        """Return the writers whose promise the frontier waits for; none at the end."""
        promise, _ = self.minimum()
        if promise == END_NS:
            return []
        return [
            writer
            for writer, own in enumerate(self.promises_ns)
            if own <= promise and writer not in self._idle
        ]

    def derive(self) -> None:
        """Fill the array."""
        if self._array is not None:
            self._array[:] = self.promises_ns
            self._array[list(self._idle)] = END_NS
