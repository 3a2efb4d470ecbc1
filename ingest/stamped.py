"""Stamp rows with the time at which they are read: processing time, as a column.

```
input ─▶ rows ─▶ rows, read_at     one time for each block, never before that of the last one
                    │
                    └─▶ spool      in jobs with checkpoints: a restore has the same times
```

The position of a block is the last stamp, the position of the input, and how many rows have been
read since. So an input goes on after what was spooled, and stamps never run back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct
from typing import ClassVar, NamedTuple, Self

import pyarrow as pa

from slackwater.ingest.adding_input import AddingInput, with_columns
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.spec import (
    BadRows,
    Block,
    EndOfInput,
    Input,
    InputTraits,
    Polled,
    missing_methods,
    opened_at,
    traits_of,
)

__all__ = ["StampedInput", "stamped"]

TICK_NS = 10**6
"""Time from a block to the next in a simulation."""


@checked_call
def stamped(input: Input, *, column: str = "read_at") -> StampedInput:  # noqa: A002 - as in SourceSpec
    """Return an input that adds to each row the time at which it was read.

    As `event_time=` it makes windows and joins follow the clock: processing time. Times never run
    back, and rows that are read together have one time.

    Args:
        input: input of the rows, in one order.
        column: name of the new column, a timestamp in UTC.

    Raises:
        SettingError: no input, or one with partitions.
    """
    if isinstance(input, type) or missing_methods(input):
        raise SettingError(
            f"stamped: {shown(input, 60)} is not an input; write sw.csv('…'), say, or an object "
            "of a class with describe, schema and open"
        )
    if traits_of(input).has_partitions:
        raise SettingError(
            f"stamped: {input.describe()} has partitions, and rows are stamped in one order; omit "
            "partitions=, or merge a source for each partition"
        )
    return StampedInput(input, column)


@dataclass(frozen=True, eq=False)
class StampedInput(AddingInput):
    """An input whose rows get the time at which they are read; `stamped` makes it.

    Attributes:
        column: name of the column of times.
        clock_ns: clock that is read once, when the input is opened, nanoseconds since 1970; None if
            each block is a tick later than the one before.
        steady_ns: clock by which times advance, which cannot be set.
    """

    column: str
    clock_ns: Callable[[], int] | None = time.time_ns
    steady_ns: Callable[[], int] = time.monotonic_ns

    word: ClassVar[str] = "stamped"

    @property
    def added(self) -> list[pa.Field]:
        """Column of the times."""
        return [pa.field(self.column, pa.timestamp("ns", "UTC"))]

    @property
    def traits(self) -> InputTraits:
        """Traits of the input; its times come once, so its rows are spooled."""
        return replace(super().traits, is_history=False, replay="none", skips_spooled=True)

    def simulated(self) -> Self:
        """Return the input as a simulation reads it, so that runs are the same."""
        return replace(self, clock_ns=None)

    def describe(self) -> str:
        """Return the input, and that its rows are stamped."""
        return f"{self.inner.describe()}, stamped when read"

    def open(self, name: str = "", at: bytes | None = None) -> StampedReader:
        """Open the input, after the last block that was spooled."""
        del name
        return StampedReader(self, at)


class _Place(NamedTuple):
    """Place after a block.

    Attributes:
        stamp_ns: time of the block.
        rows: rows read since the position of the input.
        bad_rows: records since then that the input could not read.
        at: position of the input; None if it is its start.
    """

    stamp_ns: int = 0
    rows: int = 0
    bad_rows: int = 0
    at: bytes | None = None

    def to_bytes(self) -> bytes:
        """Return the place as a position."""
        head = _HEAD.pack(self.stamp_ns, self.rows, self.bad_rows, self.at is not None)
        return head + (self.at or b"")

    @classmethod
    def of(cls, position: bytes | None) -> _Place:
        """Return the place of a position; None or empty bytes: before the first block."""
        if not position:
            return cls()
        stamp_ns, rows, bad_rows, has_at = _HEAD.unpack_from(position)
        return cls(stamp_ns, rows, bad_rows, position[_HEAD.size :] if has_at else None)


_HEAD = Struct("<qqq?")


class StampedReader:
    """Reads an input, and stamps its rows.

    Args:
        of: the input and its settings.
        position: position of the last block that was spooled; empty before the first, None if
            rows are not spooled.
    """

    def __init__(self, of: StampedInput, position: bytes | None) -> None:
        self._of, self._added = of, of.added
        place, traits = _Place.of(position), traits_of(of.inner)
        at, self._to_skip, self._bad_to_skip = place.at, place.rows, place.bad_rows
        if traits.replay == "none":  # it does not give them again
            self._to_skip = self._bad_to_skip = 0
            at = None if position is None else at or b""
        self._place = place._replace(rows=0, bad_rows=0)
        self._reader = opened_at(of.inner, "", at)
        self._ahead_ns = 0 if of.clock_ns is None else of.clock_ns() - of.steady_ns()
        can_ack = traits.has_positions and position is not None
        self._ack = getattr(self._reader, "ack", None) if can_ack else None

    def poll(self) -> Polled:
        """Return what the input has now, rows with their time.

        Raises:
            IngestError: an error of the input.
        """
        if self._ack is not None and self._place.at is not None:  # the last block is on disk
            self._ack(self._place.at)
        while True:
            polled = self._reader.poll()
            if polled is None or isinstance(polled, EndOfInput):
                return polled
            rows = self._counted(*(polled if isinstance(polled, Block) else (polled, None)))
            if isinstance(rows, BadRows):
                if len(rows.rows):
                    return Block(rows, self._place.to_bytes())
            elif len(rows):
                stamp_ns = max(self._place.stamp_ns, self._now_ns())
                self._place = self._place._replace(stamp_ns=stamp_ns)
                return Block(with_columns(rows, self._added, [stamp_ns]), self._place.to_bytes())

    def _counted(
        self, rows: pa.RecordBatch | BadRows, at: bytes | None
    ) -> pa.RecordBatch | BadRows:
        """Count rows of the input; return them without those that were spooled."""
        place = self._place
        if at is not None:
            place = place._replace(at=at, rows=0, bad_rows=0)
        if isinstance(rows, BadRows):
            skipped = min(self._bad_to_skip, len(rows.rows))
            self._bad_to_skip -= skipped
            self._place = place._replace(bad_rows=place.bad_rows + len(rows.rows))
            return BadRows(rows.rows.slice(skipped))
        skipped = min(self._to_skip, len(rows))
        self._to_skip -= skipped
        self._place = place._replace(rows=place.rows + len(rows))
        return rows.slice(skipped)

    def _now_ns(self) -> int:
        if self._of.clock_ns is None:
            return self._place.stamp_ns + TICK_NS
        return self._ahead_ns + self._of.steady_ns()

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of an input that compares clocks; see `NamedReader`."""
        return dict(getattr(self._reader, "clock_counts", {}))

    def close(self) -> None:
        """Close the input. Idempotent."""
        self._reader.close()
