"""Source machine: it hands over what has arrived, and promises what may come.

```
Reader ─▶ (EarlyRows) ─▶ BlockReader ─▶ Reordering ─▶ take() ─▶ Message
          ahead= only    times, promise,  out_of_order=   rows due by now,
                         verdict per row  holds, or not   promise attached
```

How rows were cut into blocks and takes shows in no row, no order and no verdict.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np

from slackwater.runtime.errors import OrderError
from slackwater.runtime.expressions.row_tests import FEW_ROWS
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Arrived,
    Batch,
    BoolArray,
    Int64Array,
    Message,
    Progress,
    concat_batches,
)
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.sources.few_rows import FewRows
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.state import SourceState


class SourceMachine(SourceState):
    """Machine of one source. `read` reads a block, `due_ns` says when to `take`.

    `rows_in = rows handed over + late_dropped + duplicates + bad_times + unreadable + diverted +
    held` at all times.

    Args:
        name: the source's name.
        spec: its settings.
        schema: inside schema of its input.
        writer_id: its rank in the plan, 0 <= writer_id < 32,768; the high bits of the ids
            of the writers within it.
        start_ns: wall clock at which the replay of a paced source begins.
        needed: the columns to carry; None: all.
        teller: what it tells of arrivals; None if they are not used.
        beginning_ns: arrival at which its replay begins; None: its first.

    Attributes:
        late_dropped: rows older than promised, or whose number had been given up, and dropped.
        late: the same, that were passed on.
        duplicates: rows whose number had come before; left out.
        given_up: numbers that did not come in time. They are no rows.
        diverted: rows that could not be used, and have been taken.
        renumbered: how often a writer's numbers began again.
        progress: of the last message.

    Raises:
        SchemaError: the settings name columns that are missing or of the wrong type.
    """

    @property
    def is_over(self) -> bool:
        """Whether nothing more is handed over: the end was, or the input is closed."""
        return self.is_ended or self._is_closed

    @property
    def is_paced(self) -> bool:
        """Whether arrivals are replayed by a clock."""
        return self._spec.speed is not None

    @property
    def is_unread(self) -> bool:
        """Whether it takes a `read` to know what is handed over next."""
        if self._ready is not None or self._is_exhausted or self.is_over:
            return False
        is_taken = self._block is None or self._position >= self._block.rows
        return is_taken and not self._blocks.diverted.is_full

    @property
    def due_ns(self) -> int | None:
        """When the next `take` gives something, of a paced source that is read.

        None if it is unread, or over. Rows that were released and not handed over are due since
        their stimulus, the end since that of the last row.
        """
        if self.is_ended or self._is_closed:
            return None
        if self._ready is not None:
            return self._ready.stimulus_time_ns.item(0)
        block, position = self._block, self._position
        if block is None or position >= block.rows:
            diverted_ns = self._diverted_due_ns
            if diverted_ns is not None and (self._is_exhausted or self._blocks.diverted.is_full):
                return diverted_ns
            return self.last_due_ns if self._is_exhausted else None
        if block.due_ns is None:
            return self.last_due_ns
        next_ns = block.due_ns[position]
        if self._teller is not None and (word_ns := self._teller.due_ns(next_ns)) is not None:
            next_ns = word_ns
        diverted_ns = self._diverted_due_ns
        return next_ns if diverted_ns is None or next_ns < diverted_ns else diverted_ns

    @property
    def _diverted_due_ns(self) -> int | None:
        """When the next diverted row of a paced source leaves; None: none waits."""
        diverted = self._blocks.diverted
        return diverted.first_due_ns(self._start_ns) if len(diverted) else None

    @property
    def last_due_ns(self) -> int:
        """Due time of the last row taken; START_NS if none, or not paced."""
        return START_NS if self._last_due_ns is None else self._last_due_ns

    @property
    def wait_ends_ns(self) -> int | None:
        """When something leaves by the clock though no row comes; None if nothing will."""
        ends_ns = self._blocks.wait_ends_ns if self._waits_by_clock else self._silent_from_ns
        diverted_ns = self._diverted_due_ns
        if ends_ns is None or diverted_ns is None:
            return diverted_ns if ends_ns is None else ends_ns
        return min(ends_ns, diverted_ns)

    @property
    def _silent_from_ns(self) -> int | None:
        """Wall clock at which rows that are held leave, as nothing has come; None: never."""
        idle_ns = self._spec.idle_ns
        if not self._leaves_in_silence or idle_ns is None or not self.held:
            return None
        return self._heard_ns + idle_ns

    @property
    def _next_row_ns(self) -> int | None:
        """Due time of the block's next row; None without one, or if not paced."""
        block = self._block
        if block is None or block.due_ns is None or self._position >= block.rows:
            return None
        return block.due_ns[self._position]

    def due_in_ns(self, now_ns: int) -> int | None:
        """Return the time until the next row of the history is due, > 0.

        None if one is due now, the source is not paced, or the next row is not read yet.
        """
        next_ns = self._closed_before_ns if self._is_closed else self._next_row_ns
        if next_ns is None or next_ns <= now_ns or self._ready is not None:
            return None
        return next_ns - now_ns

    def read(self, now_ns: int) -> bool:
        """Read the next block, if the last one has been taken; hand over nothing.

        Opens the input when it is called first.

        Args:
            now_ns: wall clock.

        Returns:
            Whether there are rows to be taken, or the end; False: the input has nothing right now,
            or nothing that can be used (`without_rows`).

        Raises:
            IngestError: as `take`.
            SchemaError: as `take`.
        """
        return self._current_block(now_ns) is not None or self._is_exhausted

    def take(self, now_ns: int, *, max_rows: int | None = None) -> Message | None:
        """Return rows that have arrived by now, with the source's promise.

        The message may have no rows (they are held, or were late) and the promise of the one
        before. The last message, and only it, promises END_NS.

        Args:
            now_ns: wall clock; the stimulus time of rows of a source that is not paced.
            max_rows: at most this many rows; never more than the settings allow.

        Returns:
            None when nothing is due: no row by now, or the end has been handed over.

        Raises:
            OrderError: a row is older than promised, and such are refused. The rows
                before it have been handed over.
            SchemaError: the rows are not what the schema says.
            IngestError: the input cannot be read.
        """
        self.left_out, self.is_tested = 0, False
        limit = self._spec.max_rows
        if max_rows is not None and max_rows < limit:
            limit = max_rows
        if limit < 1 or self.is_ended or self._is_closed:
            return None
        if self._ready is None:
            block = self._current_block(now_ns)
            if isinstance(block, FewRows):
                if block.rows <= limit:
                    return self._take_few(block, now_ns)
                block = block.block()
                self._begin(block)
            if block is not None:
                stop = self._due_until(block, now_ns, limit)
                if stop <= self._position:
                    return self._word(now_ns) or self.without_rows(now_ns)
                self.taken += block.rows_read(self._position, stop)
                self._consume(block, stop, now_ns)
            elif self._is_end_due(now_ns):
                self._finish(now_ns)
            elif self._is_silent(now_ns):
                # Its gate lets time go on by the clock soon; they would be late then.
                so_far = self._consumed
                self._reach(max(so_far.promise_ns, so_far.newest_ns), now_ns)
                self._release(self._order.rest(), self._arrived_ns)
            else:
                return self.without_rows(now_ns)
        return self._hand_over(limit, now_ns)

    def without_rows(self, now_ns: int) -> Message | None:
        """Return a message without rows if diverted rows are due; None if not.

        Or if the last read found only rows that cannot be used. The message lets diverted rows
        leave, and the slot do other work.
        """
        if not (self._blocks.goes_on or self._blocks.diverted.is_due(now_ns, self._start_ns)):
            return None
        return Message(None, self._tell(self.progress.promise_ns))

    def _tell(self, promise_ns: int, arrived: Arrived | None = None) -> Progress:
        """Note that the source promises this now; return how far it is."""
        so_far = self._consumed
        self.progress = Progress(promise_ns, so_far.stimulus_ns, so_far.newest_ns)
        return self.progress.with_arrived(arrived)

    def _reach(self, promise_ns: int, stimulus_ns: int, newest_ns: int | None = None) -> None:
        """Note what the rows consumed promise, and which is the newest."""
        newest_ns = self._consumed.newest_ns if newest_ns is None else newest_ns
        self._consumed = Progress(promise_ns, stimulus_ns, newest_ns)

    def _is_silent(self, now_ns: int) -> bool:
        if self._blocks.goes_on or self._is_exhausted:
            return False
        from_ns = self._silent_from_ns
        return from_ns is not None and from_ns <= now_ns

    def leave_out(self, now_ns: int, max_rows: int, *, below_ns: int) -> int:
        """Take the due rows, if the filter after it omits all; return how many.

        0: none is due, one of them passes, they are many, or have to be looked at; `take` does it.
        Otherwise all is as after `take`, whose message would have no rows.

        Args:
            now_ns: wall clock.
            max_rows: at most this many rows.
            below_ns: a promise of this much or more is to be handed over.
        """
        tests, block, start = self._tests, self._plain, self._position
        if tests is None or block is None or self._ready is not None:
            return 0
        limit = self._spec.max_rows
        end = start + (max_rows if max_rows < limit else limit)
        stop = block.due_until(start, end if end < block.rows else block.rows, now_ns)
        if not 0 < stop - start <= FEW_ROWS or tests.passing(start, stop):
            return 0
        if len(diverted := self._blocks.diverted) and diverted.is_due(now_ns, self._start_ns):
            return 0
        if self._consumed.promise_ns >= below_ns or (
            block.promised_ns is not None and block.promised_ns[stop - 1] >= below_ns
        ):
            return 0
        self._go_to(block, stop)
        return stop - start

    def take_diverted(self, now_ns: int) -> list[DivertedRow]:
        """Return the rows that leave by another stream by now, once.

        While rows are due and not taken, only those that arrived before them leave.
        """
        next_ns = self._next_row_ns
        until_ns = now_ns if next_ns is None or next_ns > now_ns else self.last_due_ns
        rows = self._blocks.diverted.take(until_ns, self._start_ns)
        self.diverted += len(rows)
        return rows

    def _go_to(self, block: JudgedBlock, stop: int) -> None:
        """Take rows up to `stop` out of a plain block."""
        due_ns, start = block.due_ns, self._position
        assert due_ns is not None, "the source is paced"
        self._position = stop
        self.taken += stop - start
        self._rows_out += stop - start
        self._last_due_ns = due_ns[stop - 1]
        self._reach_in(block, start, stop, None)
        self.progress = self._consumed

    def _take_few(self, few: FewRows, now_ns: int) -> Message:
        """Do as `take` with all of a live source's few rows."""
        rows = few.rows
        self.taken += rows
        self._rows_out += rows
        so_far = self._consumed
        if few.promised_ns > so_far.promise_ns:
            self._reach(few.promised_ns, now_ns, few.newest_ns)
        else:
            self._reach(so_far.promise_ns, so_far.stimulus_ns, few.newest_ns)
        self.progress = self._consumed
        self._block = None
        batch = few.passing(self.row_tests, now_ns)
        self.is_tested = few.is_tested
        self.left_out = rows if batch is None else rows - len(batch.event_time_ns)
        return Message(batch, self.progress)

    def _reach_in(self, block: JudgedBlock, start: int, stop: int, now_ns: int | None) -> None:
        """Promise what the last of these rows does: paced (`now_ns` is None), since the first."""
        promise_ns, stimulus_ns, *_ = self._consumed
        promised_ns, due_ns, last = block.promised_ns, block.due_ns, stop - 1
        if promised_ns is not None and promised_ns[last] > promise_ns:
            promise_ns = promised_ns[last]
            if due_ns is not None:
                first = start
                if last > start:
                    first = bisect_left(promised_ns, promise_ns, start, stop)
                stimulus_ns = due_ns[first]
            elif now_ns is not None:
                stimulus_ns = now_ns
        self._consumed = Progress(promise_ns, stimulus_ns, block.newest_ns[last])

    @property
    def close_problem(self) -> str | None:
        """Error of the input's `close`; None if it raised none."""
        return self._blocks.close_problem

    def close(self) -> None:
        """Close the input. Safe to call twice; nothing is handed over afterwards."""
        if not self._is_closed:
            self._closed_before_ns = self._next_row_ns
            block, at = self._block, self._position
            if isinstance(block, JudgedBlock) and at < block.rows:
                self.untaken += block.rows_read(at, block.rows)
            elif isinstance(block, FewRows):
                self.untaken += block.rows
            self.untaken += self._blocks.rows_left + len(self._blocks.diverted)
        self._is_closed = True
        self._begin(None)
        self._ready = None
        self._blocks.close()

    def _current_block(self, now_ns: int) -> JudgedBlock | FewRows | None:
        if self._block is not None and self._position >= self._block.rows:
            self._begin(None)
        if self._block is None and not self._blocks.diverted.is_full:
            self._position = 0
            block = self._blocks.next_block(start_ns=self._start_ns, now_ns=now_ns)
            if block is not None:
                self._begin(block)
            else:
                self._is_exhausted = self._blocks.has_ended
        return self._block

    def _due_until(self, block: JudgedBlock, now_ns: int, limit: int) -> int:
        """Return the position after the last row to consume now."""
        position = self._position
        stop = block.due_until(position, min(block.rows, position + limit), now_ns)
        if block.refused_row is not None and stop > block.refused_row:
            if position == block.refused_row:
                raise OrderError(block.refusal)
            stop = block.refused_row
        return stop

    def _consume(self, block: JudgedBlock, stop: int, now_ns: int) -> None:
        """Take rows up to `stop` out of the block."""
        start, self._position = self._position, stop
        if self._leaves_in_silence:
            self._heard_ns = now_ns
        rows = block.leaving(start, stop)
        if block.due_ns is None:
            stimulus_time_ns = np.full(len(rows), now_ns, dtype=np.int64)
            if block.leaves is not None:  # it may have waited
                np.minimum(stimulus_time_ns, rows.stimulus_time_ns, out=stimulus_time_ns)
            rows = rows.with_(stimulus_time_ns=stimulus_time_ns)
        else:
            self._last_due_ns = block.due_ns[stop - 1]
        self._reach_in(block, start, stop, now_ns)
        if block.arrived_ns is not None:
            self._arrived_ns = block.arrived_ns.item(stop - 1)
        rows = self._without_late(rows, block, start, stop)
        for word, more in block.counted(start, stop):
            setattr(self, word, getattr(self, word) + more)
        left = self._order.put(rows, self._consumed.promise_ns)
        if left is not None:
            self._release(left, block.released_ns(left, start, stop))

    def _without_late(self, rows: Batch, block: JudgedBlock, start: int, stop: int) -> Batch:
        """Return those that are to be put in order, of rows [start, stop)."""
        if block.late is None or not (late := int(np.count_nonzero(block.late[start:stop]))):
            return rows
        is_late = block.late[start:stop]
        if not self._spec.reorder.passes_late:
            self.late_dropped += late
            return rows.keep(~is_late)
        self.late += late
        assert block.promised_ns is not None, "late is older than a promise"
        left, rows = put_around_late(self._order, rows, is_late, block.promised_ns[start:stop])
        self._release(left, block.released_ns(left, start, stop))
        return rows

    def _is_end_due(self, now_ns: int) -> bool:
        """Whether the input has ended, and its last diverted rows leave by now."""
        if not self._is_exhausted:
            return False
        last_ns = self._blocks.diverted.last_due_ns(self._start_ns)
        return last_ns is None or last_ns <= now_ns

    def _finish(self, now_ns: int) -> None:
        """Nothing will follow: release what is held."""
        if (diverted_ns := self._blocks.diverted.last_due_ns(self._start_ns)) is not None:
            self._last_due_ns = max(self.last_due_ns, diverted_ns)
        self._reach(END_NS, now_ns if self._last_due_ns is None else self._last_due_ns)
        self._release(self._order.rest(), self._arrived_ns)

    def _release(self, rows: Batch | None, at_ns: Int64Array | int) -> None:
        """Let rows go, which happened by the arrivals not before `at_ns`: shape (rows,), or one."""
        if rows is None or len(rows.event_time_ns) == 0:
            return
        if self._teller is not None:
            before = self._rows_out + (0 if self._ready is None else len(self._ready))
            rows = self._teller.release(rows, at_ns, before=before)
        self._ready = rows if self._ready is None else concat_batches([self._ready, rows])

    def _word(self, now_ns: int) -> Message | None:
        """Return a message that only says how far arrivals have come; None: no further."""
        arrived = self._arrived(now_ns)
        if arrived is None:
            return None
        return Message(None, self._tell(self.progress.promise_ns, arrived))

    def _arrived(self, now_ns: int) -> Arrived | None:
        if self._teller is None:
            return None
        next_row = clock = None
        block = self._block
        if block is not None and self._position < block.rows:
            assert block.arrived_ns is not None, "the source tells arrivals"
            next_row = block.arrived_ns.item(self._position)
            if block.due_ns is not None and block.due_ns[self._position] > now_ns:
                clock = self._blocks.arrival_ns(now_ns, start_ns=self._start_ns)
        return self._teller.word(
            now_ns,
            consumed=self._arrived_ns,
            stimulus_ns=now_ns if self._last_due_ns is None else self._last_due_ns,
            next_row=next_row,
            clock=clock,
            ready=self._ready,
        )

    def _hand_over(self, limit: int, now_ns: int) -> Message:
        batch, rest = self._ready, None
        if batch is not None:
            rows = len(batch.event_time_ns)
            if rows > limit:
                batch, rest, rows = batch.slice(0, limit), batch.slice(limit, rows), limit
            self._rows_out += rows
        self._ready = rest
        promise_ns = self._consumed.promise_ns
        if rest is not None:  # released, so not older than the promise; yet it is still to come
            first_ns = min(int(rest.event_time_ns.min()), promise_ns, END_NS - 1)
            promise_ns = max(self.progress.promise_ns, first_ns)
        arrived = None if self._teller is None else self._arrived(now_ns)
        return Message(batch, self._tell(promise_ns, arrived))


def put_around_late(
    order: Reordering, rows: Batch, is_late: BoolArray, promised_ns: memoryview[int]
) -> tuple[Batch, Batch]:
    """Put the rows between late ones in order, and let the late ones leave.

    Args:
        order: takes what is not late.
        rows: some of them late.
        is_late: shape (rows,).
        promised_ns: shape (rows,), from each row on.

    Returns:
        (What leaves up to the last late row, that one included, or to the last run of them; what
        comes after it, still to be put.)
    """
    count = len(is_late)
    edges = [0, *(np.flatnonzero(is_late[1:] != is_late[:-1]) + 1).tolist(), count]
    left = []
    for first, behind in pairwise(edges):
        piece: Batch | None = rows.slice(first, behind)
        if piece is not None and not is_late[first]:
            if behind == count:
                break
            piece = order.put(piece, promised_ns[behind - 1])
        if piece is not None:
            left.append(piece)
    return concat_batches(left), rows.slice(count if is_late[-1] else edges[-2], count)
