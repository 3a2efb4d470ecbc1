"""Open partition: its reader, and the place from which a new reader would go on.

```
at   ─▶ [block][block][blo      the position of a block, and the rows read since
         ── rows since ──▶      a new reader is opened at the first, and omits the second
```

Blocks may be joined or cut on their way: the first position and a number of rows name each row.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import IngestError
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.sources.named_reader import CountingReader, open_named
from slackwater.runtime.sources.spec import BadRows, Block, EndOfInput, SourceSpec

__all__ = ["PartitionReader"]


class PartitionReader:
    """Reads a partition of a source's input, which it opens on first use.

    Args:
        source: name of the source.
        spec: settings of the source.
        name: name of the partition.

    Attributes:
        name: name of the partition.
        rows: good rows that were taken, in all.
        newest_ns: newest event time of these, as far as it is noted.
        has_ended: whether nothing follows, as far as it is noted.
        reader: the open input; None if it was not polled yet.
    """

    STATE = Fields("rows", "newest_ns", "has_ended", "_place")

    def __init__(self, source: str, spec: SourceSpec, name: str = "") -> None:
        self.name, self.rows = name, 0
        self.newest_ns, self.has_ended = START_NS, False
        self.reader: CountingReader | None = None
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
    def since(self) -> int:
        """Good rows that were taken since the last position."""
        return self._since

    def before(self, left: int) -> dict[str, Any]:
        """Return its saved fields as they were before the last rows were taken."""
        place = self._at, self._since - left, self._bad_since
        return {"rows": self.rows - left, "place": place}

    def poll(self) -> pa.RecordBatch | BadRows | EndOfInput | None:
        """Return the next rows, at least one; None now, or the end.

        All rows that were returned before must have been counted (`count_rows`).

        Raises:
            IngestError: the input cannot be read, or read again.
        """
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
        """Counts of a reader that compares clocks; see `NamedReader`."""
        return {} if self.reader is None else self.reader.clock_counts

    def close(self) -> None:
        """Close the input."""
        if self.reader is not None:
            self.reader.close()

    def _opened(self) -> CountingReader:
        replay, given = self._spec.traits.replay, self._spec.input
        if replay == "none" and (self._to_skip or self._bad_to_skip):
            raise IngestError(
                f"source {self._source!r}: its input ({given.describe()}) is read once, and "
                f"{self.rows} rows had been read before the restart; start from the beginning"
            )
        return open_named(self._source, given, self._at, self.name)

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
