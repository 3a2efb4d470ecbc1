"""Open partition: its reader, and the place from which a new reader would go on.

```
at   ─▶ [block][block][blo      the position of a block, and the rows read since
         ── rows since ──▶      a new reader is opened at the first, and omits the second
```

Blocks may be joined or cut on their way: the first position and a number of rows name each row. So
a reader can be closed at any time: for room, after it raised, or for a restore.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from slackwater.runtime.back_off import pause_ns
from slackwater.runtime.errors import (
    IngestError,
    RetentionError,
    RowsGone,
    SchemaError,
    SlackwaterError,
)
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.named_reader import CountingReader, open_named
from slackwater.runtime.sources.spec import (
    BadRows,
    Block,
    EndOfInput,
    Partition,
    SourceSpec,
)

__all__ = ["PartitionReader"]


class PartitionReader:
    """Reads a partition of a source's input, which it opens on first use.

    Args:
        source: name of the source.
        spec: settings of the source.
        partition: the partition; None if the input has one only.

    Attributes:
        name: name of the partition.
        first_ns: event time of its first row, as the input says; START_NS if it does not.
        rows: good rows that were taken, in all.
        newest_ns: newest event time of these, as far as it is noted.
        has_ended: whether nothing follows, as far as it is noted.
        reader: the open input; None if it is not open.
        retries: how often it was opened again after it raised.
        retry_at_ns: when it is opened again; None if it did not raise.
    """

    STATE = Fields("rows", "newest_ns", "has_ended", "_place")

    def __init__(self, source: str, spec: SourceSpec, partition: Partition | None = None) -> None:
        self._known = partition or Partition("")
        self.name, self.rows = self._known.name, 0
        first_ns = self._known.first_ns
        self.first_ns = self.newest_ns = START_NS if first_ns is None else first_ns
        self.has_ended = False
        self.reader: CountingReader | None = None
        self.retries = 0
        self.retry_at_ns: int | None = None
        self._raised = 0  # times since the last rows
        self._counts: dict[str, int] = {}  # of readers that were closed
        self._close_problem: SlackwaterError | None = None
        self._source, self._spec = source, spec
        self._at: bytes | None = None  # position of the last block that had one
        self._since = self._bad_since = 0  # rows taken from there on, good ones and others
        self._to_skip = self._bad_to_skip = 0  # rows that the reader has still to pass over

    @property
    def _place(self) -> tuple[bytes | None, int, int]:
        """Where a new reader begins: position, good and bad rows to omit."""
        return self._at, self._since + self._to_skip, self._bad_since + self._bad_to_skip

    @_place.setter
    def _place(self, place: tuple[bytes | None, int, int]) -> None:
        self._at, self._to_skip, self._bad_to_skip = place
        self._since = self._bad_since = 0

    @property
    def positions(self) -> dict[str, bytes]:
        """Where a new reader would begin, {partition: position}; empty if at the start."""
        return {} if self._at is None else {self.name: self._at}

    def ack(self, positions: Mapping[str, bytes]) -> None:
        """Tell the input, if it is open, that rows before a position are safe.

        Raises:
            IngestError: the user's code raised.
        """
        if self.reader is not None and self.name in positions:
            self.reader.ack(positions[self.name])

    @property
    def since(self) -> int:
        """Good rows that were taken since the last position."""
        return self._since

    @property
    def to_pass_over(self) -> int:
        """Good rows that are still to come again, and are omitted."""
        return self._to_skip

    def know(self, partition: Partition) -> None:
        """Take over what the input says of it in a later list.

        Raises:
            SchemaError: its number of rows has changed.
        """
        if self._known.rows not in (None, partition.rows):
            raise SchemaError(
                f"source {self._source!r}, partition {shown(self.name)}: partitions() said "
                f"rows={self._known.rows}, and says rows={partition.rows} now; omit rows= of a "
                "partition that grows"
            )
        self._known = partition
        if partition.first_ns is not None:
            self.first_ns = partition.first_ns

    def before(self, left: int) -> dict[str, Any]:
        """Return its saved fields as they were before the last rows were taken."""
        place = self._at, self._since - left, self._bad_since
        return {"rows": self.rows - left, "place": place}

    def poll(self, now_ns: int) -> pa.RecordBatch | BadRows | EndOfInput | None:
        """Return the next rows, at least one; None now, or the end.

        All rows that were returned before must have been counted (`count_rows`).

        Raises:
            IngestError: the input cannot be read, or read again.
        """
        if self.retry_at_ns is not None and now_ns < self.retry_at_ns:
            return None
        try:
            polled = self._polled()
        except RowsGone as problem:
            raise self._gone(problem) from problem
        except IngestError as problem:
            if self._raised >= self._spec.retry or now_ns == START_NS:
                raise self._named(problem) from problem.__cause__
            self.retry_at_ns = now_ns + pause_ns(self._raised)
            self._raised += 1
            self.retries += 1
            self.park()
            return None
        self.retry_at_ns = None
        if polled is not None:
            self._raised = 0
        return polled

    def _polled(self) -> pa.RecordBatch | BadRows | EndOfInput | None:
        if self.reader is None:
            self.reader = self._opened()
        while True:
            polled = self.reader.poll()
            if polled is None:
                return None
            if isinstance(polled, EndOfInput):
                self._check_end()
                return polled
            rows = self._left(polled)
            if rows is not None:
                return rows

    def count_rows(self, rows: int) -> None:
        """Note that so many rows were taken."""
        self.rows += rows
        self._since += rows

    def count_bad(self, rows: int) -> None:
        """Note that so many records were taken that the input could not read."""
        self._bad_since += rows

    @property
    def file(self) -> str | None:
        """File of the last block; None if the reader does not say."""
        return None if self.reader is None else self.reader.place or None

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of readers that compare clocks; see `NamedReader`."""
        counts = dict(self._counts)
        if self.reader is not None:
            for what, count in self.reader.clock_counts.items():
                counts[what] = counts.get(what, 0) + count
        return counts

    def park(self) -> None:
        """Free what the reader holds; the next poll opens another at the same place."""
        if self.reader is None:
            return
        self._counts = self.clock_counts
        reader, self.reader, self._place = self.reader, None, self._place
        try:
            reader.release()
        except SlackwaterError as problem:  # its rows were read: a note at the end
            self._close_problem = problem

    def close(self) -> None:
        """Close the input.

        Raises:
            SlackwaterError: it, or an earlier reader of it, could not be closed.
        """
        if self.reader is not None:
            self.reader.close()
        if self._close_problem is not None:
            raise self._close_problem

    def _opened(self) -> CountingReader:
        replay, given = self._spec.traits.replay, self._spec.input
        if replay == "none" and (self._to_skip or self._bad_to_skip):
            raise IngestError(
                f"source {self._source!r}: its input ({given.describe()}) is read once, and "
                f"{self.rows} rows had been read before the restart; start from the beginning"
            )
        rows = self._known.rows
        left = None if rows is None else rows - (self.rows - self._to_skip)
        return open_named(self._source, given, self._at, self.name, left)

    def _gone(self, problem: RowsGone) -> RetentionError:
        """Return the error of a partition whose origin has dropped what is needed."""
        place = "" if self._at is None else f" at position {shown(self._at)}"
        read = count_of(self.rows, "row")
        error = IngestError(
            f"source {self._source!r}: its input ({self._spec.input.describe()}) cannot be read "
            f"on{place}, after {read}: {problem}; let the origin keep rows for longer than an "
            "outage lasts, and put these back, or give another checkpoint folder: the flow then "
            "begins with the rows that are there"
        )
        return RetentionError(str(self._named(error)))

    def _named(self, problem: IngestError) -> IngestError:
        """Return an error with the partition, how far it was read, and retries."""
        where = f"source {self._source!r}"
        text = str(problem).removeprefix(f"{where}: ")
        if self.name:
            where += f", partition {shown(self.name)} after {self.rows:,} rows"
        if self._raised:
            where += f", opened again {count_of(self._raised, 'time')}"
        return IngestError(f"{where}: {text}") if self.name or self._raised else problem

    def _left(self, block: Block) -> pa.RecordBatch | BadRows | None:
        """Return a block without rows that were read before; None if all were."""
        if block.at is not None:
            self._at, self._since, self._bad_since = block.at, 0, 0
        rows = block.rows
        if isinstance(rows, BadRows):
            skipped = min(self._bad_to_skip, len(rows.rows))
            self._bad_to_skip -= skipped
            self._bad_since += skipped
            return BadRows(rows.rows.slice(skipped)) if skipped < len(rows.rows) else None
        if self._to_skip:
            skipped = min(self._to_skip, len(rows))
            self._to_skip -= skipped
            self._since += skipped
            rows = rows.slice(skipped)
        return rows if len(rows) else None

    def _check_end(self) -> None:
        if self._to_skip:
            raise IngestError(
                f"source {self._source!r}: its input ({self._spec.input.describe()}) ends after "
                f"{self.rows - self._to_skip} rows, and {self.rows} had been read "
                "before the restart; the input must not change while a job runs: put it back, or "
                "start from the beginning"
            )
