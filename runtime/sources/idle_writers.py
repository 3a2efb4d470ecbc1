"""Promise of a source whose writers may fall silent: the least of the others.

```
arrival   0   0   10  10  20  20  30  30  40  40       idle_ns=15
writer    a   b   a   b   a   c   a   c   a   c
newest    1   2   11  12  21  19  31  29  41  39
promised  -   -   -   -   -   -   12  12  29  39       b, silent since 10, is waited for until 40,
                                                       when the arrivals up to 30 are complete
```

Rows of one arrival (a poll of a feed) came together, and until the next arrival more of them may
follow. So silence is measured on arrivals that are complete: a feed that pauses for a minute says
nothing of its writers. Of the writers not heard yet, all have been silent since the first arrival.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max
from slackwater.runtime.progress.frontier_of_rows import WriterEntries, frontier_of_rows


class IdleWriters:
    """Promises the least of the newest event times of writers not idle.

    Source: merge_ts of [ssg] Def. 2.1, each of the source's writers a stream of its own. Differs:
    a writer that has been silent for longer than `idle_ns` is left out until it speaks.

    Args:
        idle_ns: > 0, by the arrivals of the source.
    """

    STATE = Fields("_first_ns", "_clock_ns", "_complete_ns", "_newest_ns", "_spoke_ns")

    def __init__(self, idle_ns: int) -> None:
        self._idle_ns = min(idle_ns, END_NS)
        self._first_ns: int | None = None  # the first arrival
        self._clock_ns = START_NS  # the newest arrival
        self._complete_ns = START_NS  # the newest before that: all its rows have been seen
        self._newest_ns = np.empty(0, dtype=np.int64)  # by number of writer
        self._spoke_ns = np.empty(0, dtype=np.int64)  # by number: arrival of its last row

    def extend(
        self, writers: Int64Array, newest_ns: Int64Array, arrival_ns: Int64Array
    ) -> Int64Array:
        """Return what may be promised from each row on, shape (rows,); it can step back.

        Args:
            writers: shape (rows,), rows > 0, numbers of `WriterTable`.
            newest_ns: shape (rows,), the newest event time of the row's writer, its own included.
            arrival_ns: shape (rows,); where it runs backwards, the newest counts.
        """
        rows = len(writers)
        clock_ns = running_max(arrival_ns, self._clock_ns)
        if self._first_ns is None:
            self._first_ns = int(clock_ns[0])
        complete_ns = self._complete(clock_ns)
        self._make_room(int(writers.max()) + 1)

        known, before = np.arange(len(self._newest_ns)), np.zeros_like(self._newest_ns)
        idle_from = self._idle_from(complete_ns, np.append(self._spoke_ns, clock_ns))
        entries = WriterEntries(
            np.append(known, writers),
            np.append(before, np.arange(rows)),
            np.append(self._newest_ns, newest_ns),
            idle_from,
        )
        unknown_until = int(self._idle_from(complete_ns, np.array([self._first_ns]))[0])
        promised_ns, self._newest_ns = frontier_of_rows(
            entries, steps=rows, unknown_until=unknown_until
        )
        self._spoke_ns[writers] = clock_ns  # of several rows the last counts, which is the newest
        self._clock_ns, self._complete_ns = int(clock_ns[-1]), int(complete_ns[-1])
        return promised_ns

    def holder(self) -> int | None:
        """Return the writer that holds the promise back; None if not yet heard.

        As far as rows have been read, which may be a block more than has been handed over.
        """
        if self._first_ns is None or self._complete_ns <= self._first_ns + self._idle_ns:
            return None
        waited = (self._spoke_ns >= self._complete_ns - self._idle_ns).nonzero()[0]
        return int(waited[self._newest_ns[waited].argmin()]) if len(waited) else None

    def _complete(self, clock_ns: Int64Array) -> Int64Array:
        """Return for each row the newest arrival before its own, shape (rows,)."""
        before_ns = np.append(self._clock_ns, clock_ns[:-1])
        moved = np.where(clock_ns != before_ns, np.arange(len(clock_ns)), -1)
        at = np.maximum.accumulate(moved)
        return np.where(at >= 0, before_ns[at], self._complete_ns)

    def _idle_from(self, complete_ns: Int64Array, spoke_ns: Int64Array) -> Int64Array:
        """Return the row from which a writer that spoke then, and not again, is idle."""
        latest_ns = np.minimum(spoke_ns, END_NS - self._idle_ns) + self._idle_ns
        return complete_ns.searchsorted(latest_ns, side="right")

    def _make_room(self, writers: int) -> None:
        new = writers - len(self._newest_ns)
        if new > 0:
            # A new writer has no last row: it is idle from the start, and nothing waits for it.
            never = np.full(new, START_NS, dtype=np.int64)
            self._newest_ns = np.append(self._newest_ns, never)
            self._spoke_ns = np.append(self._spoke_ns, never)
