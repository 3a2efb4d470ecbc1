"""Events of a clock that runs ahead: held back until they can have happened.

```
arrival      10   11   12   13   14   15   16      ahead_ns=2
event time   10   16   11   13   13   15   15
leaves       10   -    11   13   16,13 15   15     16 is 5 ahead at 11: it leaves at 14
```

One such event would make all others look old: `newest` would be an hour ahead, so that every gate
with a slack lets the others go as slack-ready, and a promise made by it would be broken by each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runtime.model import END_NS, START_NS, Batch, Columns, Int64Array, concat_batches
from runtime.sources.pacing import running_max
from runtime.sources.sorting import SortBuffer


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows converted, not yet judged; every array has shape (rows,).

    Attributes:
        columns: as they are kept inside.
        event_time_ns: when each happened, by its own clock.
        arrival_ns: when each arrived.
        spoken_ns: what each promises; None: nothing.
        writers: numbers of WriterTable; None: there is one writer.
        row: place in the input, from 0.
    """

    columns: Columns
    event_time_ns: Int64Array
    arrival_ns: Int64Array
    spoken_ns: Int64Array | None
    writers: Int64Array | None
    row: Int64Array

    def __len__(self) -> int:
        return len(self.event_time_ns)


MOST_ROWS = 1_048_576
"""More than these are not held: so many are no clock that runs ahead, but a wrong time zone or
unit, and would fill the memory."""


class EarlyRows:
    """Puts rows in the order in which they have happened, as far as arrivals can tell.

    Beyond [ssg], whose sources have right clocks. Whoever admits rows looks at `rows` before.

    Args:
        ahead_ns: how far an event time may be ahead of the newest arrival, >= 0.

    Attributes:
        rows: how many are held now.
        counted: how many have been held, at some time.
    """

    def __init__(self, ahead_ns: int) -> None:
        self.rows = 0
        self.counted = 0
        self._ahead_ns = ahead_ns
        self._held = SortBuffer()
        self._clock_ns = START_NS  # the newest arrival

    def admit(self, rows: Rows) -> Rows:
        """Return those that may leave, each before the row whose arrival sets it free.

        Args:
            rows: the next of the input. What leaves later has the arrival that set it free.
        """
        if len(rows) == 0:
            return rows
        clock_ns = running_max(rows.arrival_ns, self._clock_ns)
        self._clock_ns = int(clock_ns[-1])
        is_early = self._free_from(rows.event_time_ns) > clock_ns
        if not is_early.any() and not self.rows:
            return rows
        plain = _as_batch(rows)
        early, others = plain.keep(is_early), (~is_early).nonzero()[0]
        self.rows += len(early)
        self.counted += len(early)
        self._held.add(early)
        freed = self._held.release(min(self._clock_ns, END_NS - self._ahead_ns) + self._ahead_ns)
        if freed is None:
            return rows if len(others) == len(rows) else _as_rows(plain.take(others))
        self.rows -= len(freed)
        by = clock_ns.searchsorted(self._free_from(freed.event_time_ns))
        freed = Batch(freed.event_time_ns, clock_ns[by], freed.columns, freed.writers)
        order = np.argsort(np.concatenate((2 * by, 2 * others + 1)), kind="stable")
        return _as_rows(concat_batches([freed, plain.take(others)]).take(order))

    @property
    def first_by_ns(self) -> int:
        """How far the first of those held is ahead of the newest arrival; 0: none is held."""
        first_ns = self._held.first_ns
        return 0 if first_ns is None else first_ns - self._clock_ns

    def rest(self) -> Rows | None:
        """Return what is held at the end of the input, by event time; None: nothing."""
        held = self._held.release()
        self.rows = 0
        if held is None:
            return None
        arrival_ns = np.full(len(held), self._clock_ns, dtype=np.int64)
        return _as_rows(Batch(held.event_time_ns, arrival_ns, held.columns, held.writers))

    def _free_from(self, event_time_ns: Int64Array) -> Int64Array:
        """Return the arrival from which each event can have happened."""
        free_ns: Int64Array = np.maximum(event_time_ns, START_NS + self._ahead_ns) - self._ahead_ns
        return free_ns


# What is sorted is a batch: its stimulus time is the arrival, and what is no column gets a name
# that no column has.
_ROW, _SPOKEN = "\0row", "\0spoken"


def _as_batch(rows: Rows) -> Batch:
    columns = {**rows.columns, _ROW: rows.row}
    if rows.spoken_ns is not None:
        columns[_SPOKEN] = rows.spoken_ns
    return Batch(rows.event_time_ns, rows.arrival_ns, columns, rows.writers)


def _as_rows(batch: Batch) -> Rows:
    columns = dict(batch.columns)
    row = np.asarray(columns.pop(_ROW))
    spoken_ns = np.asarray(columns.pop(_SPOKEN)) if _SPOKEN in columns else None
    return Rows(columns, batch.event_time_ns, batch.stimulus_time_ns, spoken_ns, batch.writers, row)
