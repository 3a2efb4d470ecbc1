"""Order of all numbered writers of one source: rows in, steps out.

```
rows by writer ─▶ Numbering each ─▶ what leaves when ─▶ steps ─▶ what is promised ─▶ (merged)
   runs of numbers     gaps            in time order    Silence: the least over writers
```

The result depends on rows and arrivals alone, never on how they are cut into calls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import newest_before, running_max
from slackwater.runtime.order.sequence import BySequence
from slackwater.runtime.order.sequence_fates import Fates, Piece
from slackwater.runtime.order.sequence_pool import Leaving, Pool
from slackwater.runtime.order.sequence_silence import Ends, Silence
from slackwater.runtime.order.sequence_writer import Numbering
from slackwater.runtime.order.step_line import StepLine
from slackwater.runtime.order.steps import (
    DUPLICATE,
    GIVEN_UP,
    LATE,
    LATE_DROPPED,
    RENUMBERED,
    Steps,
    StepTally,
)
from slackwater.runtime.progress.frontier_of_rows import by_writer


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Rows of the input as they came; every array has shape (rows,).

    Attributes:
        batch: the rows.
        writers: numbers of the writers, from 0; None if there is one.
        number: the number of each in its writer's sequence.
        clock_ns: the newest arrival up to each.
        before_ns: the newest event time of its writer before each.
    """

    batch: Batch
    writers: Int64Array | None
    number: Int64Array
    clock_ns: Int64Array
    before_ns: Int64Array


class SequenceOrder:
    """Order of the rows of each writer by their numbers.

    Source: [thesis] §3.2.1 for each writer, §3.2.2 for all of them. Differs: rows of several
    writers leave in the order of each writer, and the next gate merges writers, unless `merge`
    does it here.

    Args:
        policy: settings of the order.
        has_writers: whether there may be several.
    """

    STATE = Fields(
        "_writers",
        "_next_id",
        "_pool",
        "_promised_ns",
        "_newest_ns",
        "_silence",
        "_merge",
        elements={"_writers": "_new_numbering"},
    )

    def __init__(self, policy: BySequence, *, has_writers: bool) -> None:
        self._policy = policy
        self._writers: list[Numbering] = []
        self._has_gap: set[int] = set()
        self._next_id = 0
        self._pool = Pool()
        self._promised_ns = START_NS
        self._silence = Silence(policy.silent_ns or policy.timeout_ns) if has_writers else None
        self._newest_ns = np.full(1, START_NS, dtype=np.int64)  # released, by writer
        self._merge = SequenceMerge(passes_late=policy.passes_late) if policy.merge else None

    def extend(self, rows: NumberedRows | Batch, *, until_ns: int, is_end: bool = False) -> Steps:
        """Take rows; return the rows that leave as arrivals come up to `until_ns`.

        Args:
            rows: rows after all earlier ones; or an empty batch, if time has passed and no row
                came.
            until_ns: the newest arrival; waits that end before it have ended.
            is_end: whether no row will follow: then all rows held leave.
        """
        if isinstance(rows, Batch):
            none = np.empty(0, dtype=np.int64)
            has_writers = self._silence is not None
            rows = NumberedRows(rows, none if has_writers else None, none, none, none)
        piece, writers, runs = self._pieces(rows)
        fates = Fates()
        if self._silence is not None:
            self._silence.make_room(len(self._writers))
            fates.silent_ns = np.zeros(len(rows.number), dtype=np.int64)
        for writer, number, start, stop in runs:
            numbering = self._writers[writer]
            numbering.take(number, start, stop, piece, fates)
            if numbering.due_ns is not None:
                self._has_gap.add(writer)
        for writer in sorted(self._has_gap):
            self._writers[writer].pass_time(until_ns, fates)
        if is_end:
            at = fates.moment(until_ns, _NO_WRITER)
            for writer in sorted(self._has_gap):
                self._writers[writer].finish(at, fates)
        self._has_gap = {n for n in self._has_gap if self._writers[n].due_ns is not None}
        ends = None
        if self._silence is not None and fates.silent_ns is not None:
            silent_ns = fates.silent_ns[piece.rows]
            ends = self._silence.ends(writers, piece.clock_ns, silent_ns, until_ns)
        silences = None if ends is None else (ends.ended_ns, ends.writers)
        line = StepLine(rows.clock_ns, fates.moments, silences)
        spoken = (writers, line.of_row[piece.rows])
        return self._steps(rows, fates, line, spoken, ends, is_end=is_end)

    def due_ns(self) -> int | None:
        """Return the last arrival at which no wait has ended; None if no wait ends."""
        dues_ns = [self._writers[writer].due_ns for writer in self._has_gap]
        silent_ns = None if self._silence is None else self._silence.next_ns()
        return min([due_ns for due_ns in (*dues_ns, silent_ns) if due_ns is not None], default=None)

    @property
    def rows_held(self) -> int:
        """Rows that wait for a number, or for other writers."""
        return self._pool.rows + (0 if self._merge is None else self._merge.rows)

    def derive(self) -> None:
        """Find the writers with a gap."""
        self._has_gap = {n for n, writer in enumerate(self._writers) if writer.due_ns is not None}

    def _new_numbering(self, writer: int) -> Numbering:
        return Numbering(writer, self._policy)

    # -- rows in ------------------------------------------------------------------------

    def _pieces(
        self, rows: NumberedRows
    ) -> tuple[Piece, Int64Array, list[tuple[int, int, int, int]]]:
        """Return the rows by writer, each row's writer, and runs of consecutive numbers.

        A run is (writer, its first number as in the column, start, stop).
        """
        count = len(rows.number)
        ids = np.arange(self._next_id, self._next_id + count)
        self._next_id += count
        writers, order = np.zeros(count, dtype=np.int64), np.arange(count)
        number, clock_ns, before_ns = rows.number, rows.clock_ns, rows.before_ns
        event_ns = rows.batch.event_time_ns
        if rows.writers is not None:
            most = int(rows.writers.max(initial=-1)) + 1
            order = by_writer(rows.writers, most)
            writers, number, clock_ns = rows.writers[order], number[order], clock_ns[order]
            event_ns, before_ns, ids = event_ns[order], before_ns[order], ids[order]
        else:
            most = min(count, 1)
        while len(self._writers) < most:
            self._writers.append(self._new_numbering(len(self._writers)))
        moved = np.where(event_ns > before_ns, np.arange(count), -1)
        newest_at = np.maximum.accumulate(moved).data
        piece = Piece(order, ids, clock_ns, event_ns, before_ns, newest_at, clock_ns.tolist())
        if not count:
            return piece, writers, []
        is_first = np.append(True, writers[1:] != writers[:-1])
        is_run = is_first.copy()
        following = number[:-1] + 1
        if self._policy.wraps is not None:
            following &= self._policy.numbers - 1
        is_run[1:] |= number[1:] != following
        starts = is_run.nonzero()[0]
        stops = np.append(starts[1:], count)
        columns = (writers[starts], number[starts], starts, stops)
        return piece, writers, list(zip(*(column.tolist() for column in columns), strict=True))

    # -- rows out -----------------------------------------------------------------------

    def _steps(
        self,
        rows: NumberedRows,
        fates: Fates,
        line: StepLine,
        spoken: tuple[Int64Array, Int64Array],
        ends: Ends | None,
        *,
        is_end: bool,
    ) -> Steps:
        tally = StepTally(len(line.time_ns))
        tally.add(DUPLICATE, line.of_row[fates.duplicates] if fates.duplicates else [])
        tally.add(RENUMBERED, line.of_row[fates.renumbered] if fates.renumbered else [])
        tally.add(LATE_DROPPED, line.of_row[fates.unknown] if fates.unknown else [])
        if fates.given_up:
            places, numbers = zip(*fates.given_up, strict=True)
            tally.add(GIVEN_UP, line.steps(np.array(places)), numbers)
        if fates.late:
            late_at = line.of_row[[at for at, _ in fates.late]]
            tally.add(LATE if self._policy.passes_late else LATE_DROPPED, late_at)
            if self._policy.passes_late:
                fates.released += [(np.array([row]), at) for at, row in fates.late]
        first_id = self._next_id - len(rows.number)
        leaving = self._pool.take(rows.batch, rows.writers, first_id, fates, line)
        if self._policy.passes_late and fates.late:
            leaving.is_late = np.isin(leaving.ids, [row for _, row in fates.late])
        newest_ns = self._keep_in_time(leaving, tally)
        if self._silence is None or ends is None:
            last = leaving.at.searchsorted(np.arange(len(line.time_ns)), side="right")
            promised_ns = np.append(self._promised_ns, newest_ns)[last]
        else:
            left = (leaving.writers, leaving.at, newest_ns)
            promised_ns = self._silence.least_ns(spoken, left, ends, line)
        before_ns = self._promised_ns
        promised_ns = running_max(np.minimum(promised_ns, END_NS - 1), before_ns)
        if len(promised_ns):
            self._promised_ns = int(promised_ns[-1])
        if self._merge is not None:
            leaving = self._merge.merged(leaving, promised_ns, before_ns, tally, is_end=is_end)
        leaves = leaving.at.searchsorted(np.arange(len(line.time_ns) + 1))
        return Steps(leaving.batch, line.time_ns, line.row_of, leaves, promised_ns, tally.totals())

    def _keep_in_time(self, leaving: Leaving, tally: StepTally) -> Int64Array:
        """Drop, or count, rows older than those of their writer that have left.

        Returns:
            Shape (rows,), the newest event time of its writer that has left, with each row.
        """
        new = len(self._writers) - len(self._newest_ns)
        if new > 0:
            self._newest_ns = np.append(self._newest_ns, np.full(new, START_NS, dtype=np.int64))
        before_ns = newest_before(leaving.writers, leaving.batch.event_time_ns, self._newest_ns)
        leaving.count_late(
            leaving.batch.event_time_ns < before_ns, tally, passes=self._policy.passes_late
        )
        if len(leaving.at) < len(before_ns):
            before_ns = before_ns[leaving.kept]
        return np.maximum(before_ns, leaving.batch.event_time_ns)


_NO_WRITER = -1


class SequenceMerge:
    """Merge of writers that holds rows until older ones are promised away.

    ```
    promised   5    9    9    12
    came       5    11   9    10      9 is as old as may be, 10 was promised away: late no, yes
    leaves     5         9    11 …    once no older row can come
    ```

    Source: the synchronizing component of [thesis] §3.2.2. Differs: it waits for all writers that
    are not silent at once, by their promises, rather than for one after the other.

    Args:
        passes_late: whether rows older than the promise leave at once; else they are dropped. Both
            are counted.
    """

    STATE = Fields("_held", "_writers")

    def __init__(self, *, passes_late: bool) -> None:
        self._passes_late = passes_late
        self._held: Batch | None = None  # in the order in which rows came
        self._writers = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return len(self._writers)

    def merged(
        self,
        leaving: Leaving,
        promised_ns: Int64Array,
        before_ns: int,
        tally: StepTally,
        *,
        is_end: bool,
    ) -> Leaving:
        """Return the rows that may leave by now, each at the step that releases it.

        Args:
            leaving: rows in the order of each writer.
            promised_ns: shape (steps,), the promise from each step on.
            before_ns: promise before the rows.
            tally: the counts, for late rows.
            is_end: whether no row will follow: then all leave.
        """
        floor_ns = np.append(before_ns, promised_ns)[leaving.at]
        leaving.count_late(leaving.batch.event_time_ns < floor_ns, tally, passes=self._passes_late)
        batch, at, writers = leaving.batch, leaving.at, leaving.writers
        is_late = np.zeros(len(at), dtype=np.bool_) if leaving.is_late is None else leaving.is_late
        if self._held is not None:
            held = self.rows
            batch = concat_batches([self._held, batch]) if len(batch) else self._held
            at = np.append(np.zeros(held, dtype=np.int64), at)
            is_late = np.append(np.zeros(held, dtype=np.bool_), is_late)
            writers = np.append(self._writers, writers)
        until = promised_ns.searchsorted(batch.event_time_ns, side="left")
        leaves_at = np.where(is_late, at, np.maximum(at, until))
        steps = len(promised_ns)
        if is_end:
            leaves_at = np.minimum(leaves_at, steps - 1)
        order = np.lexsort((batch.event_time_ns, leaves_at))  # stable: ties in order of arrival
        gone = order[: leaves_at[order].searchsorted(steps)]
        stays = np.ones(len(at), dtype=np.bool_)
        stays[gone] = False
        rest = stays.nonzero()[0]
        self._held = batch.take(rest) if len(rest) else None
        self._writers = writers[rest]
        none = np.empty(0, dtype=np.int64)
        return Leaving(batch.take(gone), none, writers[gone], leaves_at[gone])
