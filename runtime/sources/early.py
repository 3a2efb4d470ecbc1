"""Events of a clock that runs ahead: held back until they can have happened.

```
arrival      10   11   12   13   14   15   16   17     ahead_ns=2
event time   10   16   11   13   13   15   15   17
leaves       10   -    11   13   13   15   15   16,17  16 is 5 ahead at 11; 17 has passed it
```

It leaves where it belongs: before the first event that is not early and has its time. Sooner it
would make those look old that are right, its own writer's too. Where no such event comes, as from
a feed that is ahead for good, it leaves by the arrivals, with as much lag as the source has had.

One such event would make all others look old: `newest` would be an hour ahead, so that every gate
with a slack lets the others go as slack-ready, and a promise made by it would be broken by each.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.model import START_NS, Batch, BoolArray, Columns, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max
from slackwater.runtime.order.sorting import SortBuffer
from slackwater.runtime.sources.spec import SourceSpec


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows converted, not yet judged; every array has shape (rows,).

    Attributes:
        columns: columns as kept inside.
        event_time_ns: when each happened, by its own clock.
        arrival_ns: when each arrived.
        spoken_ns: promise of each row; None if no row promises.
        writers: numbers of WriterTable; None if there is one writer.
        row: place of each in the input, from 0.
    """

    columns: Columns
    event_time_ns: Int64Array
    arrival_ns: Int64Array
    spoken_ns: Int64Array | None
    writers: Int64Array | None
    row: Int64Array | range

    def __len__(self) -> int:
        return len(self.event_time_ns)


MOST_ROWS = 1_048_576
"""More than these are not held: so many do not come of a clock that runs ahead, but a wrong time
zone or unit, and would fill the memory."""


class EarlyRows:
    """Puts rows in the order in which they happened, as arrivals tell.

    Beyond [ssg], whose sources have right clocks. Whoever admits rows looks at `rows` before.

    Args:
        ahead_ns: how far an event time may be ahead of the newest arrival, >= 0.
        tells: whether rows tell their arrivals; otherwise these are what `BelievedTimes` makes of
            their event times.

    Attributes:
        rows: number of rows held now.
        counted: number of rows held at some time.
    """

    STATE = Fields(
        "_believed",
        "rows",
        "counted",
        "_held",
        "_clock_ns",
        "_newest_ns",
        "_lag_ns",
        "_reached_ns",
    )

    def __init__(self, ahead_ns: int, *, tells: bool = True) -> None:
        self._believed = None if tells else BelievedTimes(ahead_ns)
        self.rows = 0
        self.counted = 0
        self._ahead_ns = ahead_ns
        self._held = SortBuffer()
        self._clock_ns = START_NS  # the newest arrival
        self._newest_ns = START_NS  # the newest event that was not early
        self._lag_ns = 0  # its greatest lag after the newest arrival
        self._reached_ns = START_NS  # no event up to here is held

    def admit(self, rows: Rows) -> Rows:
        """Return those that may leave, each before the row that sets it free.

        An arrival that runs back is the newest before it, be that of a row that is held. What
        leaves later has the arrival that set it free.

        Args:
            rows: the next of the input.
        """
        if len(rows) == 0:
            return rows
        rows, is_early = self._judged(rows)
        clock_ns = rows.arrival_ns
        reached_ns = self._reach(rows, clock_ns, is_early)
        if not is_early.any() and not self.rows:
            return rows
        plain = _as_batch(rows)
        early, others = plain.keep(is_early), (~is_early).nonzero()[0]
        self.rows += len(early)
        self.counted += len(early)
        self._held.add(early)
        freed = self._held.release(self._reached_ns)
        if freed is None:
            return rows if len(others) == len(rows) else _as_rows(plain.take(others))
        self.rows -= len(freed)
        by = reached_ns.searchsorted(freed.event_time_ns)
        freed = freed.with_(stimulus_time_ns=clock_ns[by])
        order = np.argsort(np.concatenate((2 * by, 2 * others + 1)), kind="stable")
        return _as_rows(concat_batches([freed, plain.take(others)]).take(order))

    def known_ns(self, rows: Rows) -> Int64Array:
        """Return the newest time after each row without early ones, shape (rows,).

        Nothing that leaves by then is newer, or promises more. Admits nothing.

        Args:
            rows: the next of the input.
        """
        trial = copy(self)
        trial._believed = deepcopy(self._believed)
        rows, is_early = trial._judged(rows)
        newest_ns = running_max(np.where(is_early, START_NS, rows.event_time_ns), self._newest_ns)
        known_ns = np.maximum(newest_ns, trial._reach(rows, rows.arrival_ns, is_early))
        if rows.spoken_ns is None:
            return known_ns
        return np.maximum(known_ns, np.where(is_early, START_NS, rows.spoken_ns))

    def _judged(self, rows: Rows) -> tuple[Rows, BoolArray]:
        """Return rows with the newest arrivals so far, and which are early."""
        arrival_ns = rows.arrival_ns
        if self._believed is not None:
            arrival_ns = self._believed.extend(rows.event_time_ns, rows.writers)
        clock_ns = running_max(arrival_ns, self._clock_ns)
        self._clock_ns = int(clock_ns[-1])
        is_early = _less(rows.event_time_ns, self._ahead_ns) > clock_ns
        return replace(rows, arrival_ns=clock_ns), is_early

    @property
    def first_by_ns(self) -> int:
        """Lead of the first row held over the newest arrival; 0 if none is held."""
        first_ns = self._held.first_ns
        return 0 if first_ns is None else first_ns - self._clock_ns

    def rest(self) -> Rows | None:
        """Return rows held at the end, by event time; None if none are."""
        held = self._held.release()
        self.rows = 0
        if held is None:
            return None
        arrival_ns = np.full(len(held), self._clock_ns, dtype=np.int64)
        return _as_rows(held.with_(stimulus_time_ns=arrival_ns))

    def _reach(self, rows: Rows, clock_ns: Int64Array, is_early: BoolArray) -> Int64Array:
        """Return, by row, up to which event time nothing is held any more, shape (rows,)."""
        on_time_ns = np.where(is_early, START_NS, rows.event_time_ns)
        newest_ns = running_max(on_time_ns, self._newest_ns)
        delay_ns = np.where(is_early, 0, clock_ns - np.maximum(newest_ns, _less(clock_ns, _MOST)))
        lag_ns = running_max(delay_ns, self._lag_ns)
        self._newest_ns, self._lag_ns = int(newest_ns[-1]), int(lag_ns[-1])
        # Of several writers one may be ahead, as far as is allowed, and the others right.
        passed_ns = newest_ns if rows.writers is None else np.minimum(newest_ns, clock_ns)
        reached_ns = running_max(np.maximum(passed_ns, _less(clock_ns, lag_ns)), self._reached_ns)
        self._reached_ns = int(reached_ns[-1])
        return reached_ns


def early_rows(spec: SourceSpec) -> EarlyRows | None:
    """Return what holds a source's early rows; None if its clocks are trusted."""
    if spec.ahead_ns is None:
        return None
    return EarlyRows(spec.ahead_ns, tells=spec.arrival is not None or spec.arrives_by_clock)


_MOST = 2**62


def _less(times_ns: Int64Array, by: Int64Array | int) -> Int64Array:
    """Return times so much earlier, by >= 0, and none before the start of time."""
    by_ns: Int64Array = np.asarray(by, dtype=np.int64)
    earlier_ns: Int64Array = np.maximum(times_ns, START_NS + by_ns) - by_ns
    return earlier_ns


# What is sorted is a batch: its stimulus time is the arrival, and what is not a column gets a name
# that no column has.
_ROW, _SPOKEN = "\0row", "\0spoken"


def _as_batch(rows: Rows) -> Batch:
    row = rows.row
    columns = {
        **rows.columns,
        _ROW: np.arange(row.start, row.stop) if isinstance(row, range) else row,
    }
    if rows.spoken_ns is not None:
        columns[_SPOKEN] = rows.spoken_ns
    return Batch(
        event_time_ns=rows.event_time_ns,
        stimulus_time_ns=rows.arrival_ns,
        columns=columns,
        writers=rows.writers,
    )


def _as_rows(batch: Batch) -> Rows:
    columns = dict(batch.columns)
    row = np.asarray(columns.pop(_ROW))
    spoken_ns = np.asarray(columns.pop(_SPOKEN)) if _SPOKEN in columns else None
    return Rows(columns, batch.event_time_ns, batch.stimulus_time_ns, spoken_ns, batch.writers, row)


__all__ = ["BelievedTimes"]


class BelievedTimes:
    """Newest event time so far, without rows that are alone far ahead.

    ```
    event time   10   11   99   12   13   70   71   14        ahead_ns=5
    believed     10   11   11   12   13   13   71   71
                           99 is alone, and waits   70 and 71 bear each other out: a pause has ended
    ```

    So one row whose clock is far ahead does not make those after it look old, and a pause is not an
    error. Of a source with several writers a row of another writer has to bear it out. The first
    row is believed.

    Args:
        ahead_ns: distance ahead of it up to which a row is believed at once, >= 0.
    """

    STATE = Fields("_newest_ns", "_alone")

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns
        self._newest_ns = START_NS
        self._alone: tuple[int, int | None] | None = None  # (time, writer) of the last far row

    def extend(self, event_time_ns: Int64Array, writers: Int64Array | None) -> Int64Array:
        """Return what is believed with each row, shape (rows,).

        Args:
            event_time_ns: shape (rows,), the next of the input.
            writers: shape (rows,), numbers of the rows' writers; None if there is one.
        """
        if not len(event_time_ns):
            return event_time_ns
        newest_ns, alone, ahead_ns = self._newest_ns, self._alone, self._ahead_ns
        if newest_ns == START_NS:
            newest_ns = event_time_ns.item(0)
        believed_ns = running_max(event_time_ns, newest_ns)
        before_ns = np.append(newest_ns, believed_ns[:-1])
        is_near = event_time_ns - ahead_ns <= before_ns
        if not is_near.all():
            numbers = [None] * len(event_time_ns) if writers is None else writers.tolist()
            for row, (time_ns, writer) in enumerate(
                zip(event_time_ns.tolist(), numbers, strict=True)
            ):
                if time_ns - ahead_ns <= newest_ns or _bears_out(time_ns, writer, alone, ahead_ns):
                    newest_ns = max(newest_ns, time_ns)
                else:
                    alone = (time_ns, writer)
                believed_ns[row] = newest_ns
        self._newest_ns, self._alone = int(believed_ns[-1]), alone
        return believed_ns


def _bears_out(
    time_ns: int, writer: int | None, alone: tuple[int, int | None] | None, ahead_ns: int
) -> bool:
    """Whether two far rows in a row are near each other, of two writers."""
    if alone is None or (writer is not None and writer == alone[1]):
        return False
    return abs(time_ns - alone[0]) <= ahead_ns
