"""Read custom sources in their own threads: a poll that waits delays no other stage.

```
thread of the source         queue, bounded          the slot's loop
open, poll, poll, … ──────▶ [block][block] ──────▶ poll: a block, or None at once
                 ◀── waits while full
```

Errors and the end come through after the blocks that were read before them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.actors.slot.spooled import SpooledInput, spooled
from slackwater.runtime.errors import IngestError
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.input_part import name_of_input
from slackwater.runtime.sources.named_reader import NamedReader
from slackwater.runtime.sources.spec import (
    BadRows,
    Block,
    EndOfInput,
    Input,
    InputTraits,
)

__all__ = ["BlockKind", "ReadAhead", "ReadAheadInput", "read_ahead"]

MOST_ROWS = 65_536
MOST_BYTES = 64 * 2**20
"""The thread waits while this much lies in the queue; one block more may be there."""
REST_S, LONGEST_REST_S = 0.001, 0.02
"""Rest after an empty poll: an eighth of the time since the last poll with rows, within these
bounds. So an input that answers at once costs a slot little while it has nothing, and its rows wait
for no longer than a fraction of the gaps between them."""
REST_SHARE = 1 / 8
WAITED = 5
"""A poll that took this many times its rest has waited itself, and needs no rest: rows come sooner,
and an idle source wakes its slot's process half as often."""
CLOSE_S = 1.0
"""How long the end of a job waits for a poll to return."""
STANDS_S = 30.0
"""A longer poll is named in the report."""


def read_ahead(
    stage: Stage, wake: Callable[[], None], plan: SlotPlan
) -> tuple[Stage, ReadAheadInput | None]:
    """Return the stage with its input, if custom, read in a thread; and that input.

    Args:
        stage: stage of any kind.
        wake: called from that thread when there is a block to poll.
        plan: plan of its slot, which says whether rows of inputs that are read once are spooled.
    """
    stage = spooled(stage, plan)
    if not isinstance(stage.step, SourceStep) or stage.step.source.traits.reads_inline:
        return stage, None
    own = stage.step.source
    threaded = ReadAheadInput(stage.name, own.input, wake)
    spec = replace(own, input=threaded)
    return replace(stage, step=replace(stage.step, source=spec)), threaded


@dataclass(eq=False)
class ReadAheadInput(InputAround):
    """Wraps an input, and reads it in its own thread; each partition in one."""

    source: str
    inner: Input
    wake: Callable[[], None]
    readers: list[ReadAhead] = field(default_factory=list)
    charged_ns: int = 0
    """CPU time of the thread that its source has been charged for."""
    cpu_before_ns: int = 0
    """CPU time of threads that are over."""
    untaken: int = 0
    """Rows that were polled, but not taken before the end."""

    @property
    def traits(self) -> InputTraits:
        """Traits of the input. The slot polls it after `wake`; its reader's errors name it."""
        return replace(super().traits, wakes=True, is_named=True)

    def open(self, name: str = "", at: bytes | None = None, left: int | None = None) -> ReadAhead:
        """Start the reading thread of a partition, at a position of it.

        Args:
            name: name of the partition.
            at: position of a block of it; None if at its start.
            left: number of rows from there on; None if unknown.
        """
        over = [reader for reader in self.readers if reader.is_over]
        self.cpu_before_ns += sum(reader.cpu_ns for reader in over)
        for reader in over:
            self.readers.remove(reader)
        place = at, name, left
        reader = ReadAhead(self.source, self.inner, self.wake, place, self.readers)
        self.readers.append(reader)
        return reader

    def sync(self) -> None:
        """Have the system write rows that were spooled to its disk.

        Any thread may call it.

        Raises:
            OSError: it could not.
        """
        if isinstance(self.inner, SpooledInput):
            self.inner.sync()

    @property
    def cpu_ns(self) -> int:
        """CPU time of its threads so far."""
        return self.cpu_before_ns + sum(reader.cpu_ns for reader in self.readers)

    def standstill(self, *, is_over: bool) -> str | None:
        """Return a note on a call that hangs, or on lost rows; None if none."""
        for reader in self.readers:
            if reader.close_problem is not None:
                return reader.close_problem
        if self.readers and (
            left := sum(reader.left_rows for reader in self.readers) + self.untaken
        ):
            return (
                f"source {self.source!r}: {left:,} rows of its input were read ahead, "
                "but not taken before the job ended"
            )
        waiting = [(reader.waits_since_s, reader) for reader in self.readers]
        since = [(since_s, reader) for since_s, reader in waiting if since_s is not None]
        if not since:
            return None
        since_s, reader = min(since, key=itemgetter(0))
        waits_s = time.monotonic() - since_s
        if waits_s < (CLOSE_S if is_over else STANDS_S):
            return None
        kind = name_of_input(
            self.inner.inner if isinstance(self.inner, SpooledInput) else self.inner
        )
        note = (
            f"source {self.source!r}: {kind}, a custom input, has "
            f"been in one call of {reader.call} for {waits_s:.0f} s"
        )
        so = "its origin may be silent; the other sources go on meanwhile"
        if reader.call == "close":
            so = "all its rows are read, so the job does not wait for it"
        elif is_over:
            so = "the job has ended without it, and its close was not called"
        return f"{note}; {so}"


BAD = b"bad"
"""Mark, in a block's metadata, of rows that the input could not read."""

_SMALL_BYTES = 16_384
"""A block may report up to this size even if it is a part of another object."""


class BlockKind(NamedTuple):
    """A kind of blocks: what follows from their columns, computed once."""

    schema: pa.Schema
    row_bits: int | None
    """Of each row; None if rows differ in size."""
    more_bytes: int
    """Of a block with such rows: parts of bytes of each column."""
    joins: bool
    """Whether blocks may be joined: two with dictionaries may not fit one index type."""
    is_bad: bool
    """Whether blocks have rows that the input could not read."""

    @classmethod
    def of(cls, schema: pa.Schema) -> BlockKind:
        """Return the kind of blocks with these columns."""
        return cls(
            schema,
            _row_bits(schema),
            2 * len(schema),
            joins=not any(map(_has_dictionary, schema.types)),
            is_bad=BAD in (schema.metadata or ()),
        )

    def bytes_of(self, block: pa.RecordBatch, rows: int) -> int:
        """Return about how many bytes a block has, and hardly fewer; faster than Arrow does."""
        if self.row_bits is not None:
            return rows * self.row_bits // 8 + self.more_bytes
        whole = int(block.get_total_buffer_size())  # also of a whole that it is part of
        return whole if whole <= _SMALL_BYTES else int(block.nbytes)


def _row_bits(schema: pa.Schema) -> int | None:
    bits = 0  # one bit for a null
    for kind in schema.types:
        if not pa.types.is_primitive(kind):
            return None
        bits += kind.bit_width + 1
    return bits


def _has_dictionary(kind: pa.DataType) -> bool:
    """Return whether a type has a dictionary, at any depth."""
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(n).type) for n in range(kind.num_fields))


_Read = tuple[pa.RecordBatch, int, int, BlockKind, bytes | None]
"""Block, its rows, its bytes, what it may be joined with, its position. Blocks of one kind share
that."""


class ReadAhead:
    """Reads one source in a thread, and queues its blocks.

    Args:
        source: name of the source.
        input: opened and read in the thread.
        wake: called from the thread when there is a block to poll again.
        place: place where it begins: position of a block of the input, name of its partition,
            number of rows from there on. See `NamedReader`.
        all_readers: readers of all partitions of the input, which are closed together.
    """

    def __init__(
        self,
        source: str,
        input: Input,  # noqa: A002 - as in SourceSpec
        wake: Callable[[], None],
        place: tuple[bytes | None, str, int | None] = (None, "", None),
        all_readers: Sequence[ReadAhead] = (),
    ) -> None:
        self.waits_since_s: float | None = None
        """Monotonic start of the user's call that has not returned; None if none is running."""
        self.call = "open or poll"
        """Name of that call."""
        self.close_problem: str | None = None
        """Error of the reader's close."""
        self.left_rows = 0
        """Rows that the input had handed over, but no poll took before the end."""
        self._source, self._input, self._wake = source, input, wake
        self._place = place
        self._all_readers = all_readers
        self._reader: NamedReader | None = None  # once open
        self._changed = threading.Condition()
        self._takes = threading.Lock()  # held while blocks are taken from the queue
        self._blocks: deque[_Read] = deque()
        # Each has one writing thread: `in` the reader's, `out` the loop.
        self._rows_in = self._bytes_in = self._rows_out = self._bytes_out = 0
        self._waits_for_room = False
        self._kind: BlockKind | None = None  # of the last block that was put
        self._end: EndOfInput | BaseException | None = None  # after the blocks
        self._is_closed = self._is_released = False
        self._acked: bytes | None = None  # position that the reader is yet to be told
        self._waits_until_s = 0.0  # monotonic end of the wait for the thread, once it is told
        self._cpu_clock: int | None = None  # of the thread, while it runs
        self._cpu_ns = 0  # of the thread, once it has ended
        self._thread = threading.Thread(target=self._main, name=f"source-{source}", daemon=True)
        self._thread.start()

    def poll(self) -> Block | EndOfInput | None:
        """Return the queued blocks as one, the end, or None; raise the input's error.

        A thread that adds a block then wakes us.
        """
        end = self._end  # read before the blocks, which it follows
        if self._blocks:
            with self._takes:
                block = self._next()
            if self._waits_for_room:
                with self._changed:
                    self._changed.notify_all()
            return block
        if isinstance(end, BaseException):
            raise end
        return end

    def _next(self) -> Block:
        """Take the next block, joined with following blocks of the same columns.

        Together they have `MOST_ROWS` rows at most, or a block more: the slot's fixed cost of a
        block is that of some hundred rows. Blocks with dictionaries stay apart, for two of them may
        not fit one index type. The position is that of the first: a source counts rows from it.
        """
        block, rows, size, kind, at = self._joined()
        self._rows_out += rows
        self._bytes_out += size
        return Block(BadRows(block) if kind.is_bad else block, at)

    def _joined(self) -> _Read:
        # Under `_takes`.
        blocks = self._blocks
        first, rows, size, kind, at = blocks.popleft()
        together = [first]
        while kind.joins and rows < MOST_ROWS and blocks and blocks[0][3] is kind:
            block, more_rows, more_bytes, *_ = blocks.popleft()
            together.append(block)
            rows += more_rows
            size += more_bytes
        return first if len(together) == 1 else pa.concat_batches(together), rows, size, kind, at

    @property
    def cpu_ns(self) -> int:
        """CPU time of the thread so far: the cost of reading for its source."""
        clock = self._cpu_clock
        if clock is not None:
            try:
                return time.clock_gettime_ns(clock)
            except OSError:  # the thread has just ended
                pass
        return self._cpu_ns

    @property
    def place(self) -> str:
        """Empty: the reader is some blocks ahead."""
        return ""

    where = place

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of a reader that compares clocks; see `NamedReader`."""
        return {} if self._reader is None else self._reader.clock_counts

    @property
    def is_over(self) -> bool:
        """Whether it was released, and has ended without a problem."""
        return self._is_released and not self._thread.is_alive() and self.close_problem is None

    def ack(self, at: bytes) -> None:
        """Let the thread tell its reader, before the next poll, that earlier rows are safe."""
        self._acked = at

    def release(self) -> None:
        """Let the thread end, without waiting for it: another one reads on."""
        self._is_released = True
        self._tell()

    def close(self) -> None:
        """Let the thread end; it closes the reader once its call has returned.

        Those of other partitions are told first, so that all are waited for once.
        """
        for reader in (*self._all_readers, self):
            reader._tell()
        if self._thread is not threading.current_thread():
            self._thread.join(max(0.0, self._waits_until_s - time.monotonic()))

    def _tell(self) -> None:
        with self._changed:
            if not self._is_closed:
                self._waits_until_s = time.monotonic() + CLOSE_S
            self._is_closed = True
            self._leave()
            self._changed.notify_all()

    def _main(self) -> None:
        end: Any = None
        self._cpu_clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            end = self._read()
        except BaseException as problem:  # also sys.exit() in the user's code
            end = problem
        with self._changed:
            self._end = end
        self._wake()  # before the close, which may hang, or take long
        self._close_reader()
        self._cpu_ns, self._cpu_clock = time.thread_time_ns(), None

    def _read(self) -> EndOfInput | None:
        self.waits_since_s = time.monotonic()
        reader = self._reader = NamedReader(self._source, self._input, *self._place)
        last_rows_s = time.monotonic()
        while not self._is_closed:
            self.waits_since_s = polled_s = time.monotonic()
            self._tell_acked(reader)
            polled = reader.poll()
            self.waits_since_s = None
            if isinstance(polled, EndOfInput):
                return polled
            if polled is None:
                self._rest(last_rows_s, polled_s)
            elif isinstance(polled.rows, BadRows):
                bad = polled.rows.rows.replace_schema_metadata({BAD: b""})
                self._put(bad, bad.num_rows, polled.at)
            elif rows := polled.rows.num_rows:
                self._put(polled.rows, rows, polled.at)
                last_rows_s = time.monotonic()
        return None

    def _tell_acked(self, reader: NamedReader) -> None:
        at, self._acked = self._acked, None
        if at is not None:
            reader.ack(at)

    def _close_reader(self) -> None:
        self.call = "close"
        if self._reader is not None:
            self.waits_since_s = time.monotonic()
            try:
                self._tell_acked(self._reader)
                self._reader.close()
            except IngestError as problem:  # all rows are there: a note, no failure
                self.close_problem = str(problem)
        self.waits_since_s = None

    def _rest(self, last_rows_s: float, polled_s: float) -> None:
        """Rest after an empty poll.

        Args:
            last_rows_s: monotonic time of the last poll with rows.
            polled_s: monotonic start of this poll.
        """
        now_s = time.monotonic()
        rest_s = min(max((now_s - last_rows_s) * REST_SHARE, REST_S), LONGEST_REST_S)
        if now_s - polled_s < rest_s * WAITED:
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(rest_s)

    def _put(self, block: pa.RecordBatch, rows: int, at: bytes | None) -> None:
        if not self._has_room:
            self._join_waiting()
            with self._changed:
                self._waits_for_room = True  # before it looks again: `poll` sees it
                self._changed.wait_for(lambda: self._is_closed or self._has_room)
                self._waits_for_room = False
        kind = self._kind
        if kind is None or not block.schema.equals(kind.schema, check_metadata=True):
            kind = self._kind = BlockKind.of(block.schema)
        size = kind.bytes_of(block, rows)
        self._rows_in += rows
        self._bytes_in += size
        self._blocks.append((block, rows, size, kind, at))
        if self._is_closed:
            with self._changed:
                self._leave()
        elif len(self._blocks) == 1:  # else an earlier block brings it
            self._wake()

    def _join_waiting(self) -> None:
        """Join the blocks that wait, in this thread: the slot works on earlier rows meanwhile."""
        with self._takes:
            if len(self._blocks) < 2:
                return
            self._blocks.appendleft(self._joined())
        self._wake()  # a poll in between has found no block

    def _leave(self) -> None:
        # Under `_changed`. No poll will take these blocks.
        with self._takes:
            while self._blocks:
                rows = self._blocks.popleft()[1]
                self.left_rows += 0 if self._is_released else rows  # which are read again

    @property
    def _has_room(self) -> bool:
        rows, size = self._rows_in - self._rows_out, self._bytes_in - self._bytes_out
        return rows < MOST_ROWS and size < MOST_BYTES
