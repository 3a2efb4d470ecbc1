"""Arrivals that a source tells: each row's, and how far all have come.

```
arrival       5   8   7   9  ·  ·  ·  14      ·  nothing comes, and a paced source says so:
in effect     5   8   8   9           14      words at 10, 11, 12: no row arrived before that
told after    5   8   8   9  10 11 12
```

An arrival that runs back counts as the newest before it. A row that its source has held, to put
rows in order, arrived when it was released: with the row, or the end of the wait, that released
it. So rows arrive in the order in which they leave. A source that is not paced tells what its
rows say, and no more: when the next one comes is unknown. Before its first row a source tells
nothing, however late that is, so that what closes in time waits for it.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import PLACE_BITS, START_NS, Arrived, Batch, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max

MOST_WORDS_NS = 1_000_000
"""Words without rows are at least so far apart by the clock: 1 ms."""


class ArrivalTeller:
    """How far the arrivals of one source have come.

    Args:
        every_ns: distance that arrivals may go on without a word; None if it tells nothing, its
            rows only have their places.
        rank: rank of the source in the plan; the high bits of its rows' places.
        speed: speed at which it is replayed; None if it is not paced.
    """

    STATE = Fields("_newest_ns", "_since_ns", "_told", "_word_due_ns")

    def __init__(self, every_ns: int | None, *, rank: int, speed: float | None) -> None:
        self._tells = every_ns is not None
        self._rank = rank
        self._gap_ns: int | None = None  # of words, by the clock
        if every_ns is not None and speed is not None:
            self._gap_ns = max(int(every_ns / speed), MOST_WORDS_NS)
        self._newest_ns = START_NS  # of the rows read
        self._since_ns = START_NS  # the arrival, in effect, of the first row
        self._told = START_NS
        self._word_due_ns: int | None = None

    def of_rows(self, arrival_ns: Int64Array) -> Int64Array:
        """Return when the next rows of the input arrived in effect, shape (rows,).

        Args:
            arrival_ns: shape (rows,), rows > 0.
        """
        in_effect_ns = running_max(arrival_ns, self._newest_ns)
        self._newest_ns = int(in_effect_ns[-1])
        return in_effect_ns

    def release(self, rows: Batch, at_ns: Int64Array | int, *, before: int) -> Batch:
        """Return rows that leave, with when they arrived in effect, and their places.

        Args:
            rows: rows in the order of leaving; `arrivals` has when each came.
            at_ns: shape (rows,), or one for all: not before then was each released.
            before: how many rows of the source left before them.
        """
        assert rows.arrivals is not None, "their source tells arrivals"
        own_ns = np.maximum(np.maximum(rows.arrivals[:, 0], at_ns), self._told)
        if not before and self._since_ns == START_NS:
            self._since_ns = own_ns.item(0)
        places = np.arange(before, before + len(rows)) + (self._rank << PLACE_BITS)
        return rows.with_(arrivals=np.column_stack((own_ns, places)))

    def due_ns(self, next_due_ns: int | None) -> int | None:
        """Return when a word is due before the next row; None if none is.

        Args:
            next_due_ns: when the next row is due by the clock; None if it is not known.
        """
        due_ns = self._word_due_ns
        if due_ns is None or next_due_ns is None or due_ns >= next_due_ns:
            return None
        return due_ns

    def word(
        self,
        now_ns: int,
        *,
        consumed: int,
        stimulus_ns: int,
        next_row: int | None,
        clock: int | None,
        ready: Batch | None,
    ) -> Arrived | None:
        """Return how far arrivals have come, if that is further than was told.

        Args:
            now_ns: time by the clock.
            consumed: the newest arrival, in effect, of the rows taken from the input.
            stimulus_ns: when the last of them was due.
            next_row: arrival of the next row; None if it is not known.
            clock: the arrival that is replayed now; None if it is not known that all rows that are
                due have been taken.
            ready: rows that were released, and have not been handed over.
        """
        if not self._tells or self._since_ns == START_NS:
            return None
        reached = consumed if next_row is None else next_row
        if clock is not None:
            reached = min(reached, max(consumed, clock))
        if ready is not None and ready.arrivals is not None:
            reached = min(reached, ready.arrivals.item(0, 0))
        self._word_due_ns = None
        if self._gap_ns is not None and reached != next_row:
            self._word_due_ns = now_ns + self._gap_ns
        if reached <= self._told:
            return None
        self._told = reached
        return Arrived(reached, stimulus_ns if reached <= consumed else now_ns, self._since_ns)
