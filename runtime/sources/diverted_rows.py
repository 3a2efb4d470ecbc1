"""Rows that a source diverts, from their reading to their leaving.

```
read      good   bad   good   bad   good   bad   good        of a paced source
arrival    1.0   1.4    1.5    -     2.0   9.0    2.5
leaves     1.0   1.4    1.5   1.5    2.0   2.5    2.5
```

A diverted row of a paced source leaves when its own arrival is due: one that runs back with the row
before it, one that is not known too. It leaves no later than the next row that can be used: this
one may promise more than its event time. So how the input is cut into blocks changes no moment. A
row of a source that is not paced leaves at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Int64Array
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max
from slackwater.runtime.sources.pacing import Pace

__all__ = ["DivertedRows"]

_NOTHING = np.zeros(0, np.int64)
_MOST_WAITING = 65_536
"""While so many rows wait for their arrivals, no more are read: they would fill the memory."""


class DivertedRows:
    """Diverted rows of a source that have not left, in the order of the input.

    Args:
        pace: says when arrivals are due; None if all are at once.
    """

    STATE = Fields("_plain", "_arrival_ns", "_newest_ns")

    def __init__(self, pace: Pace | None) -> None:
        self._pace = pace
        self._rows: list[DivertedRow] = []
        self._arrival_ns = _NOTHING  # of each row, in effect, in order; empty if not paced
        self._newest_ns = START_NS  # arrival of the rows read that can be used

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether so many rows wait for their arrivals that no more are to be read."""
        return self._pace is not None and len(self._rows) >= _MOST_WAITING

    def read(
        self,
        arrival_ns: Int64Array = _NOTHING,
        bad: Sequence[DivertedRow] = (),
        own_ns: Int64Array | int = START_NS,
        good_before: Int64Array | int = 0,
    ) -> None:
        """Note the next piece of the input, and keep its bad rows.

        Args:
            arrival_ns: arrivals of its good rows, shape (good rows,).
            bad: bad rows of the block.
            own_ns: their arrivals, shape (bad rows,), or one for all; START_NS: not known.
            good_before: how many good rows of the piece come before each; shapes as above.
        """
        self._rows += bad
        if self._pace is None:
            return
        newest_ns = running_max(np.append(self._newest_ns, arrival_ns), START_NS)
        self._newest_ns = newest_ns.item(-1)
        if len(self._arrival_ns) and len(arrival_ns):
            self._arrival_ns = np.minimum(self._arrival_ns, newest_ns[1])
        if not bad:
            return
        before = np.broadcast_to(good_before, len(bad))
        next_ns = np.append(newest_ns[1:], END_NS)[before]
        in_effect_ns = np.clip(own_ns, newest_ns[before], next_ns)
        last_ns = self._arrival_ns.item(-1) if len(self._arrival_ns) else START_NS
        self._arrival_ns = np.append(self._arrival_ns, running_max(in_effect_ns, last_ns))

    def first_due_ns(self, start_ns: int) -> int | None:
        """Return when the first row leaves; None if it has none, or is not paced.

        Args:
            start_ns: wall clock at which the replay begins.
        """
        return self._due_ns(self._arrival_ns[:1], start_ns).item() if self._waits else None

    def last_due_ns(self, start_ns: int) -> int | None:
        """Return when the last row leaves; otherwise as `first_due_ns`."""
        return self._due_ns(self._arrival_ns[-1:], start_ns).item() if self._waits else None

    def is_due(self, now_ns: int, start_ns: int) -> bool:
        """Whether a row leaves by now."""
        due_ns = self.first_due_ns(start_ns)
        return bool(self._rows) if due_ns is None else due_ns <= now_ns

    def take(self, until_ns: int, start_ns: int) -> list[DivertedRow]:
        """Return the rows that are due by then, once."""
        count = len(self._rows)
        if self._waits:
            due_ns = self._due_ns(self._arrival_ns, start_ns)
            count = int(due_ns.searchsorted(until_ns, side="right"))
            self._arrival_ns = self._arrival_ns[count:]
        rows, self._rows = self._rows[:count], self._rows[count:]
        return rows

    def clear(self) -> None:
        """Forget all rows."""
        self._rows, self._arrival_ns = [], _NOTHING

    @property
    def _waits(self) -> bool:
        return bool(self._rows) and self._pace is not None

    def _due_ns(self, arrival_ns: Int64Array, start_ns: int) -> Int64Array:
        assert self._pace is not None, "the source is paced"
        if not self._pace.has_begun:  # no row came that can be used
            return np.full(len(arrival_ns), start_ns)
        return self._pace.at_ns(arrival_ns, start_ns=start_ns)

    @property
    def _plain(self) -> list[list[Any]]:
        return [list(row) for row in self._rows]

    @_plain.setter
    def _plain(self, rows: list[list[Any]]) -> None:
        self._rows = [DivertedRow(*row) for row in rows]
