"""The block reader gives rows of input blocks a time, a promise and a verdict.

Everything that can be decided for a whole block is decided here, at once, row by row in
the order of the input; `source_node.py` only chooses how many of the rows to hand over when.

```
event time   3   5   4   9   6        out_of_order="late", disorder_ns=2
newest       3   5   5   9   9
promised     1   3   3   7   7        from this row on nothing older
late?        -   -   -   -   late     6 < 7; while 4 >= 3 came as promised
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OrderError, SlackwaterError
from slackwater.runtime.model import START_NS, Batch, Columns, Int64Array
from slackwater.runtime.model.diverted import MOST_REPORTED, DivertedRow
from slackwater.runtime.model.json_text import bad_rows_as_json
from slackwater.runtime.model.schema import is_sound, is_time, time_unit
from slackwater.runtime.model.state import Fields, save
from slackwater.runtime.order.newest import NewestByRow, running_max
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.sources.arrivals import ArrivalTeller
from slackwater.runtime.sources.bad_times import (
    bad_time_text,
    known_times_ns,
    refuse_bad_times,
    rows_with_times,
)
from slackwater.runtime.sources.clock import SourceClock
from slackwater.runtime.sources.column_reader import ColumnReader
from slackwater.runtime.sources.columns import (
    check_source_columns,
    near_time_ns,
    refuse_another_unit,
    refuse_far_times,
    schema_to_read,
    time_ns,
)
from slackwater.runtime.sources.computed_time import computed_time_of
from slackwater.runtime.sources.diverted_rows import DivertedRows
from slackwater.runtime.sources.early import MOST_ROWS, EarlyRows, Rows, early_rows
from slackwater.runtime.sources.few_rows import FewRows, few_reader
from slackwater.runtime.sources.idle_writers import IdleWriters
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.named_reader import placed
from slackwater.runtime.sources.numbered import NumberedBlocks
from slackwater.runtime.sources.pacing import Pace
from slackwater.runtime.sources.partition_reader import PartitionReader
from slackwater.runtime.sources.partition_set import PartitionSet
from slackwater.runtime.sources.promises import PromiseLine, spoken_promise_ns
from slackwater.runtime.sources.refusals import all_are_early, older_than_promised
from slackwater.runtime.sources.spec import BadRows, EndOfInput, SourceSpec
from slackwater.runtime.sources.writers import WriterTable

_PIECE_ROWS = 65_536
"""At most this many rows are worked on at once: about a millisecond, and it fits the cache."""
_BAD_ROWS = 8_192
"""At most this many rows that the input could not read are kept at once: each costs more."""
_FIRST_ROWS = 1_024
"""At most this many rows are worked on at once where only the first arrival is needed."""

_MOST_WAITS = 100_000
"""An input that had nothing so often has no first row to be known before a run."""


class BlockReader:
    """Opens the input on first use and makes blocks of it, one at a time.

    Args:
        source: name of the source.
        spec: settings of the source.
        schema: inside schema of its input.
        order: puts its rows in order; says what they promise.
        rank: its rank in the plan.
        needed: the columns to carry; None if all.
        teller: gives each row its arrival; None if arrivals are not used.
        beginning_ns: arrival at which its replay begins; its first if None.

    Attributes:
        has_ended: whether the input has said that nothing will follow.
        bad_times: rows that were omitted, having no time that can be.
        unreadable: rows that the input could not read, and that were omitted.
        diverted: rows of both kinds that leave by another stream, until they do.
        first_bad: the first of all these, for reports.
        clock: facts about the clocks of its writers.
        goes_on: whether the last `next_block` read only rows that cannot be used; the next one
            may return others at once.
        close_problem: error of the input's `close`; None if it raised none.

    Raises:
        SchemaError: the settings name columns that are missing or of the wrong type.
    """

    STATE = Fields(
        "_partition",
        "has_ended",
        "bad_times",
        "unreadable",
        "first_bad",
        "_newest_ns",
        "_before_ns",
        "_has_times",
        "_promises",
        "_pace",
        "diverted",
        "_idle_writers",
        "_early",
        "_writers",
        "clock",
        "_numbered",
    )

    def __init__(
        self,
        source: str,
        spec: SourceSpec,
        schema: pa.Schema,
        *,
        order: Reordering,
        rank: int,
        needed: frozenset[str] | None,
        teller: ArrivalTeller | None = None,
        beginning_ns: int | None = None,
    ) -> None:
        check_source_columns(source, spec, schema, sorted(needed or ()))
        if spec.promise is not None:
            spec = replace(spec, promise=spec.promise.bound(schema))
        self.has_ended = self.goes_on = False
        self.bad_times = self.unreadable = 0
        self.first_bad: list[str] = []
        self.close_problem: str | None = None
        self._source = source
        self._spec, self._reorder = spec, spec.reorder
        self._carried = [name for name in schema.names if needed is None or name in needed]
        self._teller = teller
        self._uses_arrival = spec.uses_arrival or teller is not None
        arrival = spec.arrival if self._uses_arrival else None
        roles = spec.roles(uses_arrival=self._uses_arrival)
        self._schema = schema_to_read(spec, schema, {*self._carried, *roles})
        self._times = [spec.time_column] if arrival is None else [spec.time_column, arrival]
        refuses = spec.on_bad == "error"
        self._computed = computed_time_of(source, spec, schema, refuses=refuses)
        self._columns, self._roles = ColumnReader(source, self._schema, roles), roles
        self._few = few_reader(
            spec, self._schema, self._columns, self._carried, tells_arrivals=teller is not None
        )
        self._pace: Pace | None = None
        if spec.speed is not None:
            self._pace = Pace(spec.speed, beginning_ns=beginning_ns)
        self.diverted = DivertedRows(self._pace)
        self._promises = PromiseLine(spec, order)
        self._numbered: NumberedBlocks | None = None
        if spec.numbered is not None and spec.sequence is not None:
            self._numbered = NumberedBlocks(source, spec.numbered, spec.sequence, spec)
        self._idle_writers: IdleWriters | None = None
        if spec.waits_for_each_writer and spec.idle_ns is not None:
            self._idle_writers = IdleWriters(spec.idle_ns)
        self._early = early_rows(spec)
        self._writers: WriterTable | None = None
        if spec.has_writers:
            self._writers = WriterTable(source, rank, are_partitions=spec.writer is None)
        self.clock = SourceClock(source, spec)
        self._reads_again = spec.traits.replay == "exact" and not (
            spec.has_writers
            or spec.diverts
            or spec.uses_arrival
            or teller is not None
            or spec.clock is not None
            or spec.on_bad != "error"
        )
        self._newest_ns = START_NS
        self._before_ns = START_NS  # newest time of the rows read, if rows are diverted
        self._has_times = False
        self._partition: PartitionReader | PartitionSet = PartitionReader(source, spec)
        if spec.traits.has_partitions:
            named = spec.event_time
            columns = [named] if isinstance(named, str) else sorted(named.columns())
            self._partition = PartitionSet(source, spec, self._first_time_ns, columns)
        self._rest: pa.RecordBatch | None = None
        self._bad_rest: pa.RecordBatch | None = None  # rows that could not be read, not kept yet

    def at_row(self, block: JudgedBlock, position: int) -> Any:
        """Return its state at a row, from which the rest is read again.

        None if that is not the same: the rows must follow from the input, and what a row changes
        here be known of each row.
        """
        left, partition = block.rows - position, self._partition
        if not (self._reads_again and position) or isinstance(partition, PartitionSet):
            return None
        if self._rest is not None or not block.is_as_read or partition.since != block.rows:
            return None  # a part of a block that was read, which would be cut otherwise
        state = save(self)
        state["newest_ns"] = block.newest_ns[position - 1]
        if block.promised_ns is not None:
            state["promises"]["reached_ns"] = block.promised_ns[position - 1]
        state["partition"] |= partition.before(left)
        return state

    def holder(self) -> str | None:
        """Return the writer whose silence the source waits out, if it waits for each writer."""
        number = None if self._idle_writers is None else self._idle_writers.holder()
        if number is None or self._writers is None:
            return None
        return str(self._writers.name(number))

    def next_block(self, *, start_ns: int, now_ns: int) -> JudgedBlock | FewRows | None:
        """Return the next rows; None if none are there now, or none will be (`has_ended`).

        None, too, after a piece of the input whose rows cannot be used (`goes_on`): its slot has
        other work.

        Args:
            start_ns: wall clock at which the replay of a paced source begins.
            now_ns: wall clock; when rows arrive for which nothing else says so.

        Raises:
            OrderError: too many rows are ahead of their arrivals.
            IngestError: the input cannot be read, or its rows are not what its schema says.
        """
        self.goes_on = False
        while self._has_more(now_ns):
            rest = self._rest
            if rest is None:
                if self._numbered is None or self.goes_on:
                    return None
                return self._numbered.waited(now_ns)
            if self._early is not None and self._early.rows > MOST_ROWS:
                raise OrderError(all_are_early(self._source, self._spec, self._early))
            block = self._few_rows(rest) or self._block_of(rest, start_ns=start_ns, now_ns=now_ns)
            if block is not None or self.goes_on:
                return block
        return self._last_block(start_ns)

    def _block_of(self, rest: pa.RecordBatch, *, start_ns: int, now_ns: int) -> JudgedBlock | None:
        """Return the next piece's block; None if its rows are bad or early."""
        rows = self._next_rows(rest, now_ns, most=_PIECE_ROWS)
        if rows is None:
            self.goes_on = True
            return None
        if self._early is not None and self._pace is not None:
            self._pace.begin(int(rows.arrival_ns[0]))  # even if it is held
        rows = rows if self._early is None else self._early.admit(rows)
        if self._numbered is not None:
            return self._put_in_order(rows, self._numbered, start_ns=start_ns, now_ns=now_ns)
        return self._judged(rows, start_ns=start_ns) if len(rows) else None

    def _last_block(self, start_ns: int) -> JudgedBlock | None:
        """Return what was held, nothing following; None if nothing was."""
        if self._numbered is not None:
            return self._numbered.rest(self._pace, start_ns=start_ns)
        last = None if self._early is None else self._early.rest()
        return None if last is None else self._judged(last, start_ns=start_ns, is_rest=True)

    def first_arrival_ns(self) -> int | None:
        """Read up to the first row with a time; return its arrival, or None.

        An input that has nothing now is polled again, for as long as `_MOST_WAITS` allows.

        Raises:
            SchemaError, IngestError: as `next_block`.
        """
        first = next(self.first_rows(_FIRST_ROWS), None)
        return None if first is None else int(first.arrival_ns[0])

    def first_rows(self, most: int) -> Iterator[Rows]:
        """Yield the rows that have times, at most so many at once.

        None is judged or held. So a reader whose rows are looked at makes no blocks.

        Raises:
            SchemaError, IngestError: as `next_block`.
        """
        waits = 0
        while self._has_more(START_NS) and waits < _MOST_WAITS:
            waits += self._rest is None and not self.goes_on
            self.goes_on = False
            self.diverted.clear()
            if (rest := self._rest) is None:
                continue
            if (rows := self._next_rows(rest, START_NS, most=most)) is not None:
                yield rows

    def _next_rows(self, rest: pa.RecordBatch, now_ns: int, *, most: int) -> Rows | None:
        """Return the block's next rows that have times; None if none has."""
        piece = rest.slice(0, most)
        with placed(self._partition.reader, self._partition.name):
            rows = self._rows(piece, now_ns)
        self._partition.count_rows(len(piece))
        self._rest = rest.slice(len(piece)) if len(piece) < len(rest) else None
        return rows

    @property
    def rows_left(self) -> int:
        """Rows of the input that are in no block yet."""
        return sum(0 if rest is None else len(rest) for rest in (self._rest, self._bad_rest))

    @property
    def wait_ends_ns(self) -> int | None:
        """Time by the clock when something leaves though nothing comes; None if nothing will."""
        return None if self._numbered is None else self._numbered.wait_ends_ns

    @property
    def retry_at_ns(self) -> int | None:
        """When an input that raised is opened again; None if none did."""
        return self._partition.retry_at_ns

    @property
    def positions(self) -> dict[str, bytes]:
        """Where the input would be opened again, {partition: position}."""
        return self._partition.positions

    def ack(self, positions: Mapping[str, bytes]) -> None:
        """Tell the input that no restore asks for rows before these positions.

        Raises:
            IngestError: the user's code raised.
        """
        self._partition.ack(positions)

    @property
    def promised_ns(self) -> int:
        """Promise of the rows read so far."""
        return self._promises.reached_ns

    def counts(self) -> dict[str, int]:
        """Return counts of its partitions for a report: {what: how many}, without zeros."""
        partitions = self._partition
        counts = {"retries": partitions.retries}
        if isinstance(partitions, PartitionSet):
            counts |= {"partitions": partitions.count, "partitions_appeared": partitions.appeared}
        return {what: count for what, count in counts.items() if count}

    @property
    def to_pass_over(self) -> int:
        """Rows that are still to come again, before new ones."""
        return self._partition.to_pass_over

    @property
    def early(self) -> EarlyRows | None:
        """Rows that cannot have happened yet; None if they are not looked for."""
        return self._early

    def clock_facts(self) -> dict[str, int]:
        """Return what is known of its clocks, and a reader's counts of them."""
        return self.clock.counts() | self._partition.clock_counts

    def close(self) -> None:
        """Close the input; safe to call twice.

        An error of it is kept as a note, since its rows are read.
        """
        self._rest = self._bad_rest = None
        self.diverted.clear()
        try:
            self._partition.close()
        except SlackwaterError as problem:
            self.close_problem = str(problem)

    def arrival_ns(self, now_ns: int, *, start_ns: int) -> int | None:
        """Return the arrival that a paced source replays now; None if not paced."""
        return None if self._pace is None else self._pace.arrival_ns(now_ns, start_ns=start_ns)

    def _has_more(self, now_ns: int) -> bool:
        """Poll until there are rows, or none right now; return False at the end.

        Rows that the input could not read end it, too, once some are kept (`goes_on`).
        """
        while self._rest is None and not self.has_ended:
            if self._bad_rest is not None:
                self._keep_unreadable(self._bad_rest)
                return True
            polled = self._partition.poll(now_ns)
            if polled is None:
                return True
            if isinstance(polled, EndOfInput):
                self.has_ended = True
            elif isinstance(polled, BadRows):
                self._bad_rest = polled.rows
            else:
                self._rest = polled
        return self._rest is not None

    def _keep_unreadable(self, bad: pa.RecordBatch) -> None:
        """Count a piece of unreadable rows, or keep it for its stream."""
        piece = bad.slice(0, _BAD_ROWS)
        self._bad_rest = bad.slice(len(piece)) if len(piece) < len(bad) else None
        self._partition.count_bad(len(piece))
        self.goes_on = True
        is_diverted = self._spec.diverts_unreadable
        self.unreadable += 0 if is_diverted else len(piece)
        time_ns = _known_ns(self._before_ns)
        named = piece if is_diverted else piece.slice(0, MOST_REPORTED - len(self.first_bad))
        rows = [
            DivertedRow(record["reason"], record["text"], record["file"], record["line"], time_ns)
            for record in named.to_pylist()
        ]
        self._tell(rows)
        if is_diverted:
            self.diverted.read(bad=rows)

    def _tell(self, bad: list[DivertedRow]) -> None:
        self.first_bad += [str(text) for text in bad[: MOST_REPORTED - len(self.first_bad)]]

    def _few_rows(self, rest: pa.RecordBatch) -> FewRows | None:
        """Return the rest as few rows; None if something is unusual."""
        if self._few is None or not self._partition.rows:  # the first show which unit times are of
            return None
        few = self._few.read(rest, self._newest_ns, promised_ns=self._promises.reached_ns)
        if few is not None:
            self._rest = None
            self._partition.count_rows(few.rows)
            self._newest_ns, self._promises.reached_ns = few.newest_ns, few.promised_ns
            if self._spec.diverts:
                self._before_ns = max(self._before_ns, few.newest_ns)
        return few

    def _rows(self, arrow: pa.RecordBatch, now_ns: int) -> Rows | None:
        """Return the rows that have times, all unless told; None if none has."""
        if self._computed is not None:
            arrow = self._computed.added(arrow, row=self._partition.rows)
        good, on_bad = None, self._spec.on_bad
        if on_bad != "error":
            good = rows_with_times(arrow, self._times, unit=self._spec.time_unit or "ns")
        if good is None:
            read = self._read(arrow, now_ns)
            if self._spec.diverts:
                self._before_ns = self._newest_before(read).item(-1)
                self.diverted.read(read.arrival_ns)
            return read
        usable = self._columns.usable(arrow, good, row=self._partition.rows)
        rows = self._read(usable, now_ns) if len(usable) else None
        is_diverted = on_bad == "divert"
        self.bad_times += 0 if is_diverted else len(arrow) - len(usable)
        bad = np.flatnonzero(~good)
        named = bad if is_diverted else bad[: MOST_REPORTED - len(self.first_bad)]
        before_ns = self._newest_before(rows)
        good_before = named - np.arange(len(named))
        self._before_ns = before_ns.item(-1)
        without = self._without_times(arrow, named, before_ns[good_before])
        self._tell(without)
        if is_diverted:
            arrival_ns = () if rows is None else rows.arrival_ns
            own_ns = self._own_arrivals(arrow, bad)
            self.diverted.read(np.array(arrival_ns, np.int64), without, own_ns, good_before)
        return None if rows is None else replace(rows, row=self._partition.rows + good.nonzero()[0])

    def _first_time_ns(self, row: pa.RecordBatch) -> int | None:
        """Return the event time of a partition's first row; None if unknown."""
        if self._spec.clock is not None:
            return None
        if self._computed is not None:
            row = self._computed.added(row, row=0)
        times = row.column(self._spec.time_column)
        time_ns = int(known_times_ns(times, self._spec.time_unit or "ns")[0])
        return None if time_ns == START_NS else time_ns

    def _newest_before(self, rows: Rows | None) -> Int64Array:
        """Return the newest times before each row, shape (rows + 1,).

        The last is that after all rows. None is older than what the source promises there: a row
        counts by its event time, or by what it promises.
        """
        if rows is None:
            return np.array([self._before_ns])
        times_ns = rows.event_time_ns
        if self._early is not None:
            times_ns = self._early.known_ns(rows)
        elif rows.spoken_ns is not None:
            times_ns = np.maximum(times_ns, rows.spoken_ns)
        return running_max(np.append(self._before_ns, times_ns), START_NS)

    def _own_arrivals(self, arrow: pa.RecordBatch, bad: Int64Array) -> Int64Array | int:
        """Return the arrivals of rows that cannot be used; START_NS: not known, or not needed."""
        name = self._spec.arrival
        if self._pace is None or name is None:
            return START_NS
        return known_times_ns(arrow.column(name).take(pa.array(bad)), self._spec.time_unit or "ns")

    def _without_times(
        self, arrow: pa.RecordBatch, bad: Int64Array, times_ns: Int64Array
    ) -> list[DivertedRow]:
        """Return rows without a time that can be, with all columns that are not damaged.

        Args:
            arrow: rows without usable times.
            bad: places of such rows.
            times_ns: their event times, those of the rows before them.
        """
        file = self._partition.file
        columns = {
            name: column.take(pa.array(bad))
            for name, column in zip(arrow.schema.names, arrow.columns, strict=True)
            if is_sound(column) and (self._computed is None or name != self._spec.time_column)
        }
        texts = bad_rows_as_json(pa.record_batch(columns)) if columns else ["{}"] * len(bad)
        error = bad_time_text(self._times)
        return [
            DivertedRow(error, text, file, event_time_ns=_known_ns(time_ns))
            for text, time_ns in zip(texts, times_ns.tolist(), strict=True)
        ]

    def _read(self, arrow: pa.RecordBatch, now_ns: int) -> Rows:
        """Convert what is needed. All that can be refused is refused here, before any change."""
        source, spec, row = self._source, self._spec, self._partition.rows
        arrival = spec.arrival if self._uses_arrival else None
        columns = self._columns.read(arrow, row=row)
        event_time_ns = self._time_ns(arrow, columns, spec.time_column)
        if not self._has_times and spec.time_unit is None:  # the first that have times
            is_whole = pa.types.is_integer(self._schema.field(spec.time_column).type)
            refuse_another_unit(source, spec.time_column, event_time_ns, is_whole=is_whole)
        self._has_times = True
        arrival_ns = None if arrival is None else self._time_ns(arrow, columns, arrival)
        if spec.ahead_ns is not None and spec.arrives_by_clock:
            arrival_ns = np.full(len(arrow), now_ns, dtype=np.int64)
        spoken_ns = spoken_promise_ns(source, spec, columns, event_time_ns, row=row)
        right = self.clock.correct(columns, event_time_ns, spoken_ns, row=row)
        writers = None
        if self._writers is not None and spec.writer is not None:
            writers = self._writers.number(columns[spec.writer])
        elif self._writers is not None and isinstance(self._partition, PartitionSet):
            names = pa.array([self._partition.at_hand.name])
            writers = self._writers.number(names).repeat(len(arrow))
        self.clock.keep(right, writers)
        return Rows(
            columns,
            right.event_time_ns,
            right.event_time_ns if arrival_ns is None else arrival_ns,
            right.spoken_ns,
            writers,
            range(row, row + len(arrow)),
        )

    def _judged(self, rows: Rows, *, start_ns: int, is_rest: bool = False) -> JudgedBlock:
        """Say when each row is due, what it promises, and whether it is late.

        The rest of the input is in order, so each of its rows promises its own event time: else
        a gate with a slack would let all others go first, as older than these by far.
        """
        event_time_ns = rows.event_time_ns
        newest = NewestByRow(event_time_ns, self._newest_ns)
        ids, own_ns, least_ns = None, None, None
        if self._writers is not None and rows.writers is not None:
            ids = self._writers.ids(rows.writers)
            if not self._reorder.sorts:  # which puts the events of each writer in order
                own_ns = self._writers.newest_before(rows.writers, event_time_ns)
                if isinstance(self._partition, PartitionSet):
                    own_ns = np.maximum(own_ns, self._partition.at_hand.first_ns)
            least_ns = self._least_ns(rows, rows.writers, own_ns)
        made_ns = event_time_ns if is_rest else least_ns
        promised = self._promises.extend(rows.spoken_ns, event_time_ns, newest, made_ns)
        self._newest_ns = newest.last
        promised_ns, floor_ns = promised if promised is not None else (None, None)
        if own_ns is not None:
            if disorder_ns := self._reorder.longest_ns:  # a writer's own rows may be out, too
                own_ns = np.maximum(own_ns, START_NS + disorder_ns) - disorder_ns
            # A writer that was idle, or is new, may be older than the promise: late at the gate.
            if floor_ns is None or least_ns is not None:
                floor_ns = own_ns
            else:
                floor_ns = np.maximum(floor_ns, own_ns)
        late, refused_row, refusal = None, None, ""
        if floor_ns is not None:
            late = event_time_ns < floor_ns
            if not late.any():
                late = None
            elif self._reorder.refuses:
                refused_row, writer, partitions = int(late.argmax()), None, self._partition
                if self._writers is not None and rows.writers is not None:
                    writer = self._writers.name(int(rows.writers[refused_row]))
                refusal = older_than_promised(
                    self._source,
                    row=int(rows.row[refused_row]),
                    writer=writer,
                    partition=partitions.name if isinstance(partitions, PartitionSet) else None,
                    got_ns=int(event_time_ns[refused_row]),
                    floor_ns=int(floor_ns[refused_row]),
                )
        due_ns = None
        if self._pace is not None:
            due_ns = self._pace.due_ns(rows.arrival_ns, start_ns=start_ns)
        arrived_ns = None if self._teller is None else self._teller.of_rows(rows.arrival_ns)
        return JudgedBlock(
            self._batch(rows, event_time_ns if due_ns is None else due_ns, ids, arrived_ns),
            len(event_time_ns),
            None if due_ns is None else due_ns.data,
            self._in_form(newest),
            None if promised_ns is None else self._in_form(promised_ns),
            late,
            refused_row,
            refusal,
            arrived_ns=arrived_ns,
            sorts=self._reorder.sorts,
        )

    def _in_form(self, times_ns: Int64Array | NewestByRow) -> memoryview[int] | NewestByRow:
        """Return times in a form for questions on each row, or on some."""
        if isinstance(times_ns, NewestByRow):
            if self._pace is None and self._teller is None:
                return times_ns
            times_ns = times_ns.all()
        return times_ns.data

    def _least_ns(
        self, rows: Rows, writers: Int64Array, own_ns: Int64Array | None
    ) -> Int64Array | None:
        """Return the least newest event time over writers from each row on; None if unknown."""
        event_time_ns, of_partitions_ns = rows.event_time_ns, None
        if isinstance(self._partition, PartitionSet):
            of_partitions_ns = self._least_of_partitions_ns(self._partition, event_time_ns)
        if self._idle_writers is not None and own_ns is not None:
            newest_ns = np.maximum(own_ns, event_time_ns)
            return self._idle_writers.extend(writers, newest_ns, rows.arrival_ns)
        return None if self._spec.promises_nothing else of_partitions_ns

    def _least_of_partitions_ns(
        self, partitions: PartitionSet, event_time_ns: Int64Array
    ) -> Int64Array:
        """Return the least newest event time over partitions from each row on.

        Less the disorder, which each may have.
        """
        at_hand, disorder_ns = partitions.at_hand, self._reorder.longest_ns or 0
        newest_ns = running_max(event_time_ns, at_hand.newest_ns)
        at_hand.newest_ns = int(newest_ns[-1])
        least_ns = np.minimum(newest_ns, partitions.others_ns)
        return np.maximum(least_ns, START_NS + disorder_ns) - disorder_ns

    def _batch(
        self,
        rows: Rows,
        stimulus_time_ns: Int64Array,
        writers: Int64Array | None,
        arrived_ns: Int64Array | None,
    ) -> Batch:
        """Return rows as they travel, with all fields that the source gives them.

        Args:
            rows: rows, at least one.
            stimulus_time_ns: stimulus time of each row.
            writers: id of each row's writer; None if there is one.
            arrived_ns: when each arrived in effect, as yet without a place; None if unused.
        """
        arrivals = None
        if arrived_ns is not None:
            arrivals = np.column_stack((arrived_ns, np.zeros_like(arrived_ns)))
        return Batch(
            event_time_ns=rows.event_time_ns,
            stimulus_time_ns=stimulus_time_ns,
            columns={name: rows.columns[name] for name in self._carried},
            writers=writers,
            arrivals=arrivals,
        )

    def _put_in_order(
        self, rows: Rows, numbered: NumberedBlocks, *, start_ns: int, now_ns: int
    ) -> JudgedBlock:
        ids, writers = None, self._writers
        if writers is not None and rows.writers is not None:
            ids = writers.ids(rows.writers)
            before_ns = writers.newest_before(rows.writers, rows.event_time_ns)
        else:
            before_ns = np.append(
                self._newest_ns, running_max(rows.event_time_ns, self._newest_ns)[:-1]
            )
        self._newest_ns = max(self._newest_ns, int(rows.event_time_ns.max()))
        arrived_ns = None if self._teller is None else self._teller.of_rows(rows.arrival_ns)
        batch = self._batch(rows, rows.event_time_ns, ids, arrived_ns)
        return numbered.block(
            rows, batch, before_ns, pace=self._pace, start_ns=start_ns, now_ns=now_ns
        )

    def _time_ns(self, arrow: pa.RecordBatch, columns: Columns, name: str) -> Int64Array:
        kind = self._schema.field(name).type
        unit = time_unit(kind) if is_time(kind) else self._spec.time_unit or "ns"
        times_ns = near_time_ns(columns[name], unit=unit)
        if times_ns is None:
            source, row = self._source, self._partition.rows
            refuse_bad_times(source, arrow, name, role=self._roles[name], row=row)
            times_ns = time_ns(source, name, columns[name], unit=unit, row=row)
            refuse_far_times(source, name, times_ns, row=row)
        return times_ns


def _known_ns(time_ns: int) -> int:
    """Return a row's time by those before it; without one 1970."""
    return 0 if time_ns == START_NS else time_ns
