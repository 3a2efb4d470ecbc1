"""Spool rows of an input that is read once, so that a restore has them.

```
input ──poll──▶ append to the spool ──▶ its slot          live
                spool, from a position ─▶ its slot        after a restore, then live again
```
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from slackwater.actors.checkpoints.spool import Spool, SpoolName
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import IngestError
from slackwater.runtime.model.arrow_streams import stream_of
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.shown import in_words
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.named_reader import NamedReader
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    InputTraits,
)
from slackwater.runtime.sources.spool_records import DamagedSpool, Kind, Place

__all__ = ["SpoolReader", "SpooledInput", "spooled"]

FILES = 16
"""A full spool has about this many files: the oldest goes as a whole."""


def spooled(stage: Stage, plan: SlotPlan) -> Stage:
    """Return a stage with its input spooled, if rows of that are to be.

    They are where the input is read once, and the job has checkpoints.
    """
    step, folder = stage.step, plan.spools_to
    if folder is None or not isinstance(step, SourceStep) or step.source.traits.replay != "none":
        return stage
    name = SpoolName(Path(folder), plan.flow, stage.name)
    own = SpooledInput(name, step.source.input, plan.limits)
    return replace(stage, step=replace(step, source=replace(step.source, input=own)))


@dataclass(eq=False)
class SpooledInput(InputAround):
    """Input with positions, around one that is read once."""

    name: SpoolName
    inner: Input
    limits: Limits
    reader: SpoolReader | None = None
    """The reader that was opened last; None before the first."""

    @property
    def traits(self) -> InputTraits:
        """Traits of the input, which has positions here."""
        return replace(
            super().traits,
            replay="retained",
            skips_spooled=False,
            blocks_stay=True,
        )

    def open(self, name: str = "", at: bytes | None = None) -> SpoolReader:
        """Open the spool at a position of it.

        The input is opened once the spooled rows are read.

        Raises:
            IngestError: the spool cannot be read, or its rows from there on are gone.
        """
        del name  # there is one
        self.reader = SpoolReader(self.name, self.inner, self.limits, at)
        return self.reader

    def sync(self) -> None:
        """Have the system write the rows so far to its disk.

        Any thread may call it.

        Raises:
            OSError: it could not.
        """
        if self.reader is not None:
            self.reader.sync()


class SpoolReader:
    """Reads the rows of a spool, then spools and returns those of its input.

    Args:
        name: name of the spool.
        inner: input that is read once, which is opened at its first poll.
        limits: bounds of the spool's size, and of the time that it may be full.
        at: position in the spool; None if it is its start.
        now_ns: clock for that time.

    Raises:
        IngestError: the spool cannot be read, or its rows from there on are gone.
    """

    def __init__(
        self,
        name: SpoolName,
        inner: Input,
        limits: Limits,
        at: bytes | None,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._name, self._inner, self._limits, self._now_ns = name, inner, limits, now_ns
        self._reader: NamedReader | None = None
        self._unwritten: tuple[Kind, Block] | None = None  # rows for which there was no room
        self._full_since_ns: int | None = None
        try:
            self._spool = Spool(name, file_bytes=max(limits.spool_bytes // FILES, 1))
            self._place: Place | None = self._spool.begins_at(at)  # None once all are read
        except (DamagedSpool, OSError) as problem:
            raise self._unreadable(problem) from problem

    def poll(self) -> Block | EndOfInput | None:
        """Return spooled rows; then those of the input, which are spooled by then.

        Raises:
            IngestError: the spool was full for too long, or cannot be read or written.
        """
        while self._place is not None:
            try:
                read = self._spool.read(self._place)
            except (DamagedSpool, OSError) as problem:
                raise self._unreadable(problem) from problem
            if read is None:
                self._place = None
                break
            place, record = read
            polled = record.polled()
            if isinstance(polled, EndOfInput):
                return polled
            self._place = Place(place.file, record.end)
            if _has_rows(polled):
                return Block(polled, place.to_bytes())
        return self._next()

    def _next(self) -> Block | EndOfInput | None:
        """Spool what the input has, and return it."""
        if self._unwritten is None:
            if self._spool.total_bytes >= self._limits.spool_bytes:
                self._wait("no complete checkpoint has let older rows go")
                return None
            self._full_since_ns = None
            if self._reader is None:  # an input that skips passes over what is spooled
                self._reader = NamedReader(self._name.source, self._inner, self._spool.last)
            polled = self._reader.poll()
            if polled is None:
                return None
            if isinstance(polled, EndOfInput):
                self._unwritten = Kind.END, Block(_NO_ROWS)
            else:
                is_bad = isinstance(polled.rows, BadRows)
                self._unwritten = Kind.BAD_ROWS if is_bad else Kind.ROWS, polled
        return self._written(*self._unwritten)

    def _written(self, kind: Kind, block: Block) -> Block | EndOfInput | None:
        rows = block.rows.rows if isinstance(block.rows, BadRows) else block.rows
        body = b"" if kind is Kind.END else memoryview(stream_of(rows))
        try:
            place = self._spool.append(kind, block.at or b"", body)
        except OSError as problem:
            self._wait(f"they cannot be written: {in_words(problem)}", problem)
            return None
        self._unwritten = self._full_since_ns = None
        if block.at:
            self._sync()
        if kind is Kind.END:
            return END_OF_INPUT
        return Block(block.rows, place.to_bytes()) if _has_rows(block.rows) else None

    def _sync(self) -> None:
        """Have the block on disk: the next poll tells its origin, which then forgets it."""
        try:
            self._spool.sync()
        except OSError as problem:
            raise IngestError(
                f"source {self._name.source!r}: the spool of its rows in {self._name.folder} "
                f"cannot be synced: {in_words(problem)}; see to its disk"
            ) from problem

    def _wait(self, why: str, problem: OSError | None = None) -> None:
        """Let the input wait, unless it has waited for too long."""
        now_ns, limits = self._now_ns(), self._limits
        if self._full_since_ns is None:
            self._full_since_ns = now_ns
        waits_ns = now_ns - self._full_since_ns
        if waits_ns < limits.spool_wait_ns:
            return
        is_full = problem is not None and problem.errno in (errno.ENOSPC, errno.EDQUOT)
        raise IngestError(
            f"source {self._name.source!r}: its input is read once, and was not read for "
            f"{waits_ns / 1e9:.0f} s: the spool of its rows in {self._name.folder} has "
            f"{self._spool.total_bytes:,} bytes of {limits.spool_bytes:,}, and {why}; "
            f"{'make room there' if is_full else 'see why checkpoints fail'}, or give a larger "
            "Limits(spool_bytes=…); the flow goes on from its newest checkpoint"
        ) from problem

    def _unreadable(self, problem: Exception) -> IngestError:
        return IngestError(
            f"source {self._name.source!r}: its input is read once, and the spool of its rows in "
            f"{self._name.folder} cannot be read: {in_words(problem)}; put its files back, or give "
            "another checkpoint folder, to begin without these rows"
        )

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of an input that compares clocks; see `NamedReader`."""
        return {} if self._reader is None else self._reader.clock_counts

    def ack(self, at: bytes) -> None:
        """Drop files with rows before a position only.

        Raises:
            OSError: the system refuses.
        """
        self._spool.drop(Place.of(at))

    def sync(self) -> None:
        """Have the system write the rows so far to its disk.

        Any thread may call it.

        Raises:
            OSError: it could not.
        """
        self._spool.sync()

    def close(self) -> None:
        """Close the spool and the input. Idempotent."""
        self._spool.close()
        if self._reader is not None:
            reader, self._reader = self._reader, None
            reader.close()


_NO_ROWS = pa.record_batch({"none": pa.nulls(0)})


def _has_rows(rows: pa.RecordBatch | BadRows) -> bool:
    return len(rows.rows if isinstance(rows, BadRows) else rows) > 0
