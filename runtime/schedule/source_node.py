"""Node of a source: it reads blocks, and hands over rows and promises.

```
Reader ─▶ (EarlyRows) ─▶ BlockReader ─▶ Reordering ─▶ work() ─▶ Handed
          ahead= only    times, promise,  out_of_order=   rows due by now,
                         verdict per row  holds, or not   promise attached
```

How rows were cut into blocks and slices shows in no row, no order and no verdict.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OrderError
from slackwater.runtime.expressions.row_tests import FEW_ROWS, RowTests, RowTestsOver
from slackwater.runtime.measure.outcomes import BAD_TIME, DUPLICATE, GIVEN_UP, UNREADABLE
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import (
    END_NS,
    NO_PROGRESS,
    START_NS,
    Arrived,
    Batch,
    Int64Array,
    Progress,
    concat_batches,
)
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.state import Fields, restore, save
from slackwater.runtime.order.reorder import put_around_late
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.arrivals import teller_of
from slackwater.runtime.schedule.node import Handed, Node
from slackwater.runtime.schedule.polls import Looks, Polls
from slackwater.runtime.sources.arrivals import ArrivalTeller
from slackwater.runtime.sources.blocks import BlockReader
from slackwater.runtime.sources.few_rows import FewRows
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["SourceNode", "source_of"]

_PACED_NS: Final = START_NS + 1
"""Promise by which paced sources are ranked, all alike."""
NOTHING: Final = Handed(has_read=True)
"""Result of a slice that read or polled the input, and hands nothing over."""


class SourceNode(Node):
    """Node of a source: it reads blocks, and takes due rows out of them.

    Both are work, and what they cost is the source's. A paced source reads as soon as its last
    block has been taken: its next row may be due already.

    `rows_in = rows handed over + late_dropped + duplicates + bad_times + unreadable + diverted +
    held` at all times.

    Of the input the number of rows read is saved; and rows that were read and not handed over, with
    all that was decided of them. After a restore the next slice that needs more rows
    opens the input and passes over those that were read before. They must be the same; how they are
    cut into blocks does not show.

    Args:
        name: name of the source.
        spec: settings of the source.
        schema: inside schema of its input.
        writer_id: its rank in the plan, 0 <= writer_id < 32,768; the high bits of the ids
            of the writers within it.
        start_ns: wall clock at which the replay of a paced source begins.
        needed: the columns to carry; None if all.
        teller: teller of arrivals; None if no step uses them.
        beginning_ns: arrival at which its replay begins; its first if None.

    Attributes:
        taken: rows taken out of blocks so far; early ones are in none.
        late_dropped: rows older than promised, or whose number had been given up, and dropped.
        late: rows as old as these that were passed on.
        duplicates: rows whose number had come before; left out.
        given_up: numbers that did not come in time. They are not rows.
        diverted: rows that could not be used, and have been taken.
        untaken: rows that were read, but not taken before the source was closed.
        renumbered: how often a writer's numbers began again.
        progress: progress of the last rows or promise handed over.
        row_tests: tests of the filter after it: few rows that fail are only counted.
        is_paced: whether arrivals are replayed by a clock.
        next_take_ns: time before which a paced source takes no rows.
        looks: looks of its slot; without them, a paced source takes rows whenever they are due.

    Raises:
        SchemaError: the settings name columns that are missing or of the wrong type.
    """

    STATE = Fields(
        "taken",
        "_rows_out",
        "late_dropped",
        "late",
        "duplicates",
        "given_up",
        "renumbered",
        "_start_ns",
        "progress",
        "_is_exhausted",
        "diverted",
        "_consumed",
        "_last_due_ns",
        "_heard_ns",
        "_reading",
        "_block_left",
        "_order",
        "_ready",
        "_arrived_ns",
        "_teller",
        "next_take_ns",
    )

    def __init__(
        self,
        name: str,
        spec: SourceSpec,
        schema: pa.Schema,
        *,
        writer_id: int,
        start_ns: int,
        needed: frozenset[str] | None = None,
        teller: ArrivalTeller | None = None,
        beginning_ns: int | None = None,
    ) -> None:
        self.name, self.is_paced = name, spec.speed is not None
        self.taken = 0
        self.late_dropped = self.late = 0
        self.duplicates = self.given_up = self.renumbered = 0
        self.progress = NO_PROGRESS
        self.row_tests: RowTests | None = None
        self.untaken = self.diverted = 0
        self.next_take_ns = start_ns
        self.looks = Looks(0)
        self._polls = Polls(spec, start_ns=start_ns)
        self._spec = spec
        self._start_ns = start_ns
        self._order = spec.reorder.begin()
        self._passes = teller is None and getattr(self._order, "holds_nothing", False)
        self._waits_by_clock, self._diverts = spec.goes_by_clock, spec.diverts
        self._blocks = BlockReader(
            name,
            spec,
            schema,
            order=self._order,
            rank=writer_id,
            needed=needed,
            teller=teller,
            beginning_ns=beginning_ns,
        )
        self._teller = teller
        self._arrived_ns = START_NS  # the newest arrival of the rows consumed
        self._block: JudgedBlock | FewRows | None = None
        self._tests: RowTestsOver | None = None  # of the filter after it, over that block
        self._plain: JudgedBlock | None = None  # the same, if its rows leave one by one when due
        self._position = 0  # rows of the block consumed
        self._is_exhausted = False  # the input has ended, and all its rows were in blocks
        self._ready: Batch | None = None  # released, not handed over: more than one take's worth
        self._rows_out = 0
        self._consumed = Progress(START_NS, start_ns)  # by the rows consumed
        self._last_due_ns: int | None = None
        self._heard_ns = start_ns  # wall clock of the last rows, if it releases rows in silence
        self._leaves_in_silence = spec.goes_on_in_silence and spec.reorder.sorts
        self._is_closed = False
        self._closed_before_ns: int | None = None  # when the next row would have been due

    # -- when it works ------------------------------------------------------------------

    def wakeup(self, rank_ns: int | None = None) -> Wakeup | None:
        """Return the next work; None if it is over.

        Paced sources are alike: of rows that are due together the first in rank goes first, as in
        the gate, where rows of one event time that come the other way round would be late.
        """
        del rank_ns
        polls, next_ns = self._polls, self.next_take_ns
        if self.is_paced:
            due_ns = self.due_ns
            if due_ns is not None and polls.nothing_ns is None:
                at_ns = due_ns if due_ns > next_ns else next_ns
                return Wakeup(at_ns, due_ns, _PACED_NS, due_ns)
            promise_ns, since_ns = _PACED_NS, END_NS if due_ns is None else due_ns
        else:
            promise_ns, since_ns = self.progress.promise_ns, polls.caught_up_ns
        if self.is_over:
            return None
        if polls.nothing_ns is not None:
            return self._after_nothing(promise_ns, since_ns)
        if self.is_paced:  # unread
            return Wakeup(START_NS, self.last_due_ns, promise_ns, since_ns)
        return Wakeup(next_ns, polls.turn_ns, promise_ns, since_ns)

    def _after_nothing(self, promise_ns: int, since_ns: int) -> Wakeup:
        """Return when to poll an input again that had nothing."""
        ends_ns, again_ns = self.wait_ends_ns, self._polls.again_ns
        if again_ns is None or (ends_ns is not None and ends_ns <= again_ns):
            return Wakeup(END_NS if ends_ns is None else ends_ns, None, promise_ns, since_ns)
        rank_ns = self.last_due_ns if self.is_paced else None
        return Wakeup(again_ns, rank_ns, promise_ns, since_ns, is_guess=True)

    def waited_ns(self, now_ns: int) -> int:
        """Return the wait of its input's rows."""
        wakeup = self.wakeup()
        if wakeup is None or wakeup.rows_since_ns is None:
            return 0
        return max(now_ns - wakeup.rows_since_ns, 0)

    def open(self, now_ns: int) -> None:
        """Open the input and read its first block, before the start."""
        if self.is_unread:  # nothing arrives before the start
            self.read(max(now_ns, self.next_take_ns))

    def woken(self, now_ns: int) -> None:
        """Note that the input may have something."""
        self._polls.woken(now_ns)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is handed over: the end was, or the input is closed."""
        return self.is_ended or self._is_closed

    @property
    def is_unread(self) -> bool:
        """Whether a block is to be read to know what is handed over next."""
        if self._ready is not None or self._is_exhausted or self.is_over:
            return False
        is_over = self._block is None or self._position >= self._block.rows
        return is_over and not self._blocks.diverted.is_full

    @property
    def due_ns(self) -> int | None:
        """When a paced source that is read hands something over next.

        None if it is unread, or over. Rows that were released and not handed over are due since
        their stimulus, the end since that of the last row.
        """
        if self.progress.promise_ns == END_NS or self._is_closed:
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
        """When the next diverted row of a paced source leaves; None if none waits."""
        if not self._diverts or not len(diverted := self._blocks.diverted):
            return None
        return diverted.first_due_ns(self._start_ns)

    @property
    def last_due_ns(self) -> int:
        """Due time of the last row taken; START_NS if none, or not paced."""
        return START_NS if self._last_due_ns is None else self._last_due_ns

    @property
    def wait_ends_ns(self) -> int | None:
        """When something leaves by the clock though no row comes; None if nothing will."""
        ends_ns = self._blocks.wait_ends_ns if self._waits_by_clock else self._silent_from_ns
        ends = (ends_ns, self._diverted_due_ns, self._blocks.retry_at_ns)
        return min((time_ns for time_ns in ends if time_ns is not None), default=None)

    @property
    def _silent_from_ns(self) -> int | None:
        """Time at which held rows leave, if nothing comes; None if never."""
        idle_ns = self._spec.idle_ns
        if not self._leaves_in_silence or idle_ns is None or not self.held:
            return None
        return self._heard_ns + idle_ns

    @property
    def _next_row_ns(self) -> int | None:
        """Due time of the block's next row; None if none, or not paced."""
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

    # -- its work -----------------------------------------------------------------------

    def work(self, now_ns: int, *, max_rows: int) -> Handed:
        """Read a block, or hand over what is due now, about `max_rows` rows at most.

        There may be no rows (they are held, or were late) with the promise of the slice before.
        The last progress that is handed over, and only it, promises END_NS.

        Args:
            now_ns: wall clock; the stimulus time of rows of a source that is not paced.
            max_rows: most rows; never more than the settings allow.

        Raises:
            OrderError: a row is older than promised, and such are refused. The rows
                before it have been handed over.
            SchemaError: the rows are not what the schema says.
            IngestError: the input cannot be read.
        """
        if not self.is_paced:
            handed = self._take(now_ns, max_rows)
            self._polls.note(now_ns, has_rows=handed.progress is not None)
        elif self.is_unread:
            has_rows = self.read(now_ns)
            handed = NOTHING if has_rows else self._without_rows(now_ns)
            self._polls.note(now_ns, has_rows=has_rows or handed.progress is not None)
        else:
            handed = self._take(now_ns, max_rows)
            self.next_take_ns = self.looks.look(now_ns)
        return handed

    def read(self, now_ns: int) -> bool:
        """Read the next block, if the last one has been taken; hand over nothing.

        Opens the input when it is called first.

        Args:
            now_ns: time by the clock.

        Returns:
            Whether there are rows to be taken, or the end; False: the input has nothing right now,
            or nothing that can be used (`leaves_without_rows`).

        Raises:
            IngestError: as `work`.
            SchemaError: as `work`.
        """
        return self._current_block(now_ns) is not None or self._is_exhausted

    def _take(self, now_ns: int, max_rows: int) -> Handed:
        """Hand over what has arrived by now."""
        limit, rows_read = min(self._spec.max_rows, max_rows), 0
        if limit < 1 or self._is_closed or self.progress.promise_ns == END_NS:
            return NOTHING
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
                    return self._word(now_ns)
                rows_read = block.rows_read(self._position, stop)
                self.taken += rows_read
                self._consume(block, stop, now_ns)
            elif self._is_end_due(now_ns):
                self._finish(now_ns)
            elif self._is_silent(now_ns):
                # Its gate lets time go on by the clock soon; they would be late then.
                so_far = self._consumed
                self._reach(max(so_far.promise_ns, so_far.newest_ns), now_ns)
                self._release(self._order.rest(), self._arrived_ns)
            else:
                return self._without_rows(now_ns)
        else:
            rows_read = self._fill(limit - len(self._ready), now_ns)
        return self._hand_over(limit, now_ns, rows_read)

    def _fill(self, limit: int, now_ns: int) -> int:
        """Take rows beside those that are ready; return the number of rows read.

        A slice that releases more rows than it may hand over leaves some. Alone they would be a
        short slice, each second time. Where steps close by arrivals these are told in between, so
        rows that are ready leave alone.
        """
        block = self._block
        if limit < 1 or self._teller is not None:
            return 0
        if not isinstance(block, JudgedBlock) or block.refused_row is not None:
            return 0
        start, stop = self._position, self._due_until(block, now_ns, limit)
        if stop <= start:
            return 0
        rows_read = block.rows_read(start, stop)
        self.taken += rows_read
        self._consume(block, stop, now_ns)
        return rows_read

    def leaves_without_rows(self, now_ns: int) -> bool:
        """Whether diverted rows are due, or the last read found none that can be used.

        Progress without rows lets diverted rows leave, and the slot do other work.
        """
        return self._blocks.goes_on or self._blocks.diverted.is_due(now_ns, self._start_ns)

    def _without_rows(self, now_ns: int) -> Handed:
        if not self.leaves_without_rows(now_ns):
            return NOTHING
        return self._handed(None, self._tell(self.progress.promise_ns), now_ns)

    def _handed(
        self, rows: Batch | None, progress: Progress, now_ns: int, rows_read: int = 0
    ) -> Handed:
        """Return rows and progress with the diverted rows that are due by now."""
        released = 0 if rows is None else len(rows.event_time_ns)
        diverted = self.take_diverted(now_ns) if self._diverts else ()
        rows_read = rows_read if rows_read > released else released
        return Handed(rows, progress, (), rows_read, released, True, diverted)

    def _tell(self, promise_ns: int, arrived: Arrived | None = None) -> Progress:
        """Note that the source promises this now; return how far it is."""
        so_far = self._consumed
        if promise_ns != so_far.promise_ns:
            so_far = Progress(promise_ns, so_far.stimulus_ns, so_far.newest_ns)
        if promise_ns == END_NS:
            so_far = so_far._replace(newest_ns=max(so_far.newest_ns, self._blocks.promised_ns))
        self.progress = so_far
        return so_far.with_arrived(arrived)

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
        """Take the due rows of a paced source, if the filter after it omits all.

        All is then as after `work`, which would hand no rows over.

        Args:
            now_ns: time by the clock.
            max_rows: most rows to leave out.
            below_ns: a promise of this much or more is to be handed over.

        Returns:
            Number of these rows. 0: none is due, one of them passes, they are many, or have to be
            looked at; `work` does it.
        """
        tests, block, start = self._tests, self._plain, self._position
        if tests is None or block is None or self._ready is not None:
            return 0
        limit = self._spec.max_rows
        end = start + (max_rows if max_rows < limit else limit)
        stop = block.due_until(start, end if end < block.rows else block.rows, now_ns)
        if not 0 < stop - start <= FEW_ROWS or tests.passing(start, stop):
            return 0
        if self._diverts and self._blocks.diverted.is_due(now_ns, self._start_ns):
            return 0
        if self._consumed.promise_ns >= below_ns or (
            block.promised_ns is not None and block.promised_ns[stop - 1] >= below_ns
        ):
            return 0
        self._go_to(block, stop)
        self.next_take_ns = self.looks.look(now_ns)
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

    def _take_few(self, few: FewRows, now_ns: int) -> Handed:
        """Hand over all of a live source's few rows that pass the filter after it."""
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
        batch, left_out = few.passing(self.row_tests, now_ns)
        diverted = self.take_diverted(now_ns) if self._diverts else ()
        return Handed(batch, self.progress, (), rows, rows, True, diverted, tested=left_out)

    def _reach_in(self, block: JudgedBlock, start: int, stop: int, now_ns: int | None) -> None:
        """Promise what the last of these rows does: paced (`now_ns` is None), since the first."""
        so_far = self._consumed
        promise_ns, stimulus_ns = so_far.promise_ns, so_far.stimulus_ns
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
    def positions(self) -> dict[str, bytes]:
        """Where the input would be opened again, {partition: position}."""
        return self._blocks.positions

    def ack(self, positions: dict[str, bytes]) -> None:
        """Tell the input that rows before these positions are safe; see `SourceReader`."""
        if not self._is_closed:
            self._blocks.ack(positions)

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

    def _begin(self, block: JudgedBlock | FewRows | None) -> None:
        """Go on with this block."""
        self._block = block
        self._plain = self._tests = None
        if isinstance(block, JudgedBlock) and block.is_plain and self._passes:
            self._plain = block
        if self._plain is not None and self.row_tests is not None:
            self._tests = self.row_tests.over(self._plain.batch)

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
        if block.counts:
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
        promised_ns = block.promises_ns(start, stop).data
        left, rows = put_around_late(self._order, rows, is_late, promised_ns)
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

    def _word(self, now_ns: int) -> Handed:
        """Hand over how far arrivals have come, if that is further, and no rows."""
        arrived = self._arrived(now_ns)
        if arrived is None:
            return self._without_rows(now_ns)
        return self._handed(None, self._tell(self.progress.promise_ns, arrived), now_ns)

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

    def _hand_over(self, limit: int, now_ns: int, rows_read: int) -> Handed:
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
        return self._handed(batch, self._tell(promise_ns, arrived), now_ns, rows_read)

    # -- what it says of itself ---------------------------------------------------------

    def count(self, report: StageReport, now_ns: int) -> None:  # noqa: D102 - see Node
        report.rows_in = self.rows_in
        report.late_dropped, report.counts[DUPLICATE] = self.late_dropped, self.duplicates
        # Counted when it is read, and handed over later.
        report.late = min(self.late, self.rows_out)
        report.ready = self.rows_out + self.diverted - report.late
        report.counts[GIVEN_UP] = self.given_up
        report.counts[BAD_TIME], report.counts[UNREADABLE] = self.bad_times, self.unreadable
        if self.first_bad:  # a later step of the stage may have told of its own
            report.first_bad = list(self.first_bad)
        if self.renumbered:
            report.counted["renumbered"] = self.renumbered
        report.counted |= self._blocks.counts()
        report.to_pass_over = self._blocks.to_pass_over
        report.in_flight = self.held
        report.early = self.early
        report.source_clock = self.clock_facts
        report.newest_ns = self.newest_ns
        report.frontier_ns = self.progress.promise_ns
        report.due_in_ns = self.due_in_ns(now_ns)
        holder = self.holder
        report.waiting_for = [] if holder is None else [holder]

    @property
    def is_ended(self) -> bool:
        """Whether the message with the end has been handed over."""
        return self.progress.is_end

    @property
    def newest_ns(self) -> int:
        """The newest event time of the rows consumed, which are not held as early."""
        return self._consumed.newest_ns

    @property
    def rows_in(self) -> int:
        """Rows taken from the input so far."""
        return self.taken + self.early_held + self.bad_times + self.unreadable + self.diverted

    @property
    def bad_times(self) -> int:
        """Rows left out for an impossible time; they may be read ahead."""
        return self._blocks.bad_times

    @property
    def unreadable(self) -> int:
        """Rows that the input could not read, and that were omitted."""
        return self._blocks.unreadable

    @property
    def first_bad(self) -> list[str]:
        """First rows that could not be used, with the reason."""
        return self._blocks.first_bad

    @property
    def early_held(self) -> int:
        """Rows read that have not happened yet by their arrivals; they may be read ahead."""
        return 0 if self._blocks.early is None else self._blocks.early.rows

    @property
    def early(self) -> int:
        """Rows that were held back so, ever."""
        return 0 if self._blocks.early is None else self._blocks.early.counted

    @property
    def clock_facts(self) -> dict[str, int]:
        """Counts of its writers' clocks for a report; empty if they are trusted."""
        return self._blocks.clock_facts()

    @property
    def held(self) -> int:
        """Rows held as early, for their order, or until they are handed over."""
        return self.taken + self.early_held - self.late_dropped - self.duplicates - self._rows_out

    @property
    def rows_out(self) -> int:
        """Rows handed over."""
        return self._rows_out

    @property
    def holder(self) -> str | None:
        """Writer whose silence is waited out; None if it is not known."""
        return None if self.is_ended else self._blocks.holder()

    # -- its state ----------------------------------------------------------------------

    @property
    def _reading(self) -> Any:
        """State of the block reader, at the row handed over if possible."""
        at_row = self._reading_at_row
        return save(self._blocks) if at_row is None else at_row

    @_reading.setter
    def _reading(self, state: Any) -> None:
        restore(self._blocks, state)

    @property
    def _reading_at_row(self) -> Any:
        """State of the block reader at that row; None if the rest is saved."""
        block = self._block
        if not (self._passes and isinstance(block, JudgedBlock)) or self._position >= block.rows:
            return None
        return self._blocks.at_row(block, self._position)

    @property
    def _block_left(self) -> dict[str, Any] | None:
        """Rest of a block that cannot be read again: rows, and the decisions on them."""
        block = self._block
        if block is None or self._position >= block.rows or self._reading_at_row is not None:
            return None
        return block.rest(self._position)

    @_block_left.setter
    def _block_left(self, rest: dict[str, Any] | None) -> None:
        self._begin(None if rest is None else JudgedBlock.of_rest(rest))


def source_of(stage: Stage, step: SourceStep, *, start_ns: int, looks: Looks) -> SourceNode:
    """Return the node of a source."""
    node = SourceNode(
        stage.name,
        step.source,
        step.schema,
        writer_id=stage.rank,
        start_ns=start_ns,
        needed=stage.needed,
        teller=teller_of(stage, step),
        beginning_ns=None if stage.beginning is None else stage.beginning.arrival_ns,
    )
    node.looks = looks
    return node
