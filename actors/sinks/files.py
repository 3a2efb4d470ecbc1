"""Write results to files that are always whole: parts, published one after the other.

```
write ──▶ part in the making (hidden) ── flush ──▶ synced ── commit ──▶ final name ──▶ manifest
                  └─ killed, or failed: stays hidden, the next run removes it
```
`runtime/` decides: where a part ends, what may be replaced, which run may go on.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from slackwater.actors.kernel.plain_files import make_folder, sync
from slackwater.actors.sinks.csv_text import CsvText
from slackwater.actors.sinks.file_settings import FileSettings
from slackwater.actors.sinks.journal import Journal
from slackwater.actors.sinks.lock import Lock, LockGone, here_as
from slackwater.actors.sinks.output_path import OutputPath
from slackwater.actors.sinks.parts import JsonText, LinesPart, ParquetPart, PartFile
from slackwater.runtime.errors import SinkError
from slackwater.runtime.plurals import agreeing, count_of
from slackwater.runtime.shown import text_of
from slackwater.runtime.sinks.lock import Holder
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.open_decision import ExistingOutput, OpenDecision, open_decision
from slackwater.runtime.sinks.output import OutputContext, Sink, SinkProgress
from slackwater.runtime.sinks.position import FilePosition, go_on, position_at_start
from slackwater.runtime.sinks.remedies import PathFacts, free_there, remedy
from slackwater.runtime.sinks.way_on import missing_parts, way_on

__all__ = ["FileSink"]

CHOOSE_ANOTHER = "choose a path that can be written on the node where the sink runs"


class FileSink(Sink):
    """A folder of parts, or one file. Use it from one thread.

    Args:
        settings: settings of the sink.
        path: path of the output.
        schema: schema of the rows.
        context: context in which the output is opened.
        joins: says whether a lock is of the same run, with which the output is shared.

    Raises:
        SinkError: another job writes there, earlier results are in the way, or the path cannot be
            written. Nothing there has been changed.
    """

    def __init__(
        self,
        settings: FileSettings,
        path: str,
        schema: pa.Schema,
        context: OutputContext,
        *,
        joins: Callable[[Holder], bool] | None = None,
    ) -> None:
        self._name, self._settings, self._schema = context.sink, settings, schema
        self._run, self._last_event_time_ns = context.run, context.last_event_time_ns
        self._keeps_positions, at = context.keeps_positions, context.at
        self._columns = tuple((field.name, str(field.type)) for field in schema)
        position = FilePosition.from_bytes(at, sink=self._name) if at else None
        holder = here_as(self._name, self._run, since_ns=time.time_ns())
        self._place = OutputPath(
            self._name,
            Path(path),
            kind=settings.format,
            is_file=settings.is_file,
            token=holder.token if position is None else position.token,
        )
        self._lock = Lock(
            self._place.lock_path,
            holder,
            has_ended=context.has_ended,
            joins=joins,
            goes_on=at is not None,
        )
        self._part: PartFile | None = None
        self._rows = 0  # of the part
        self._last_ns: int | None = None  # of its last row, before this sink was opened
        self._staged: list[Part] = []  # whole, and still hidden
        self._infinite = 0  # values without a number in the format
        self._has_begun = self._has_ended = self._is_over = False
        self._progress = SinkProgress()
        with self._telling(is_opening=True):
            make_folder(self._place.folder)
            note = self._lock.take()
            if position is None:
                self._place.token = self._lock.token
        if note is not None:
            self._progress.notes.append(note)
        try:
            with self._telling(is_opening=True):
                existing = self._place.look()
                if position is None and at is not None:
                    position = position_at_start(existing, self._run)
                if position is not None and position.is_of(existing):
                    self._go_on(existing, position)
                else:
                    self._take(existing.manifest, self._opening(existing))
        except BaseException:
            self._lock.release()
            raise

    def _opening(self, existing: ExistingOutput) -> OpenDecision:
        return open_decision(
            existing,
            self._run,
            schema=self._columns,
            kind=self._settings.format,
            is_file=self._settings.is_file,
            overwrite=self._settings.overwrite,
            resume=self._settings.resume,
        )

    def _go_on(self, existing: ExistingOutput, position: FilePosition) -> None:
        """Go on at a position in this job's own output, after a failure."""
        self._place.token = position.token
        decided = go_on(
            existing,
            position,
            making=self._place.making(position),
            replaces=self._settings.overwrite,
        )
        is_replacing = self._settings.overwrite and not decided.is_ours
        replaces = self._opening(existing).replaces if is_replacing else ()
        self._take(existing.manifest, OpenDecision(parts=decided.parts, replaces=replaces))
        self._skip, self._infinite = decided.rows, position.infinite
        self._staged, self._earlier_parts = list(decided.staged), position.earlier
        own = self._manifest.parts[position.earlier :]
        self._progress.published = sum(part.rows for part in own)
        self._progress.waiting = decided.rows - self._manifest.rows
        part = decided.part
        keeps = [self._place.hidden(whole.name) for whole in decided.staged]
        keeps += [self._place.journal(whole.name) for whole in decided.staged]
        if part is not None:
            keeps.append(self._place.cut_file(part.name))
        self._begin(keeps)
        if part is not None:
            self._part, self._rows = self._new_part(at=part.bytes), part.rows
            self._last_ns = part.last_event_time_ns
        if position.is_over:  # its slot has nothing more for it
            self._has_ended = self._is_over = True
            self._lock.release()

    def _take(self, known: Manifest | None, opening: OpenDecision) -> None:
        note = RunRecord(
            job=self._run.job,
            flow=self._run.flow,
            sink=self._name,
            token=self._place.token,
            began_ns=time.time_ns(),
        )
        self._known = known
        self._manifest = Manifest(
            kind=self._settings.format,
            schema=self._columns,
            run=note,
            parts=opening.parts,
            fingerprint=self._run.fingerprint,
            why_not=self._run.why_not,
        )
        self._removing = opening.replaces
        self._skip = opening.rows
        # Then no rows are missing, and the manifest stays until this run has seen the same rows.
        self._repeats_whole_run = bool(opening.parts) and known is not None and known.is_whole
        self._progress.parts = self._earlier_parts = len(opening.parts)
        if opening.parts and known is not None:
            self._progress.notes.append(
                f"goes on after {opening.rows:,} rows that job {known.run.job!r} had committed"
            )

    # -- writing -------------------------------------------------------------------------------

    def last_ordinal(self) -> int:  # noqa: D102 - see Sink
        return self._skip - 1

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:  # noqa: D102 - see Sink
        if self._repeats_whole_run:
            raise self._more_rows(first_ordinal + len(rows))
        with self._telling():
            self._begin()
            if self._part is None:
                self._part = self._new_part()
            self._infinite += self._part.write(rows)
            self._rows += len(rows)
            self._progress.waiting += len(rows)

    def position(self) -> bytes:
        """Sync the part in the making; return how long it is, and what is published."""
        part = None
        with self._telling():
            if self._part is not None:
                size = self._part.position()
                part = Part(self._next_name, self._rows, size, self._event_time_ns)
                sync(self._place.folder)
        return FilePosition(
            token=self._place.token,
            has_begun=self._has_begun,
            published=len(self._manifest.parts),
            earlier=self._earlier_parts,
            staged=tuple(self._staged),
            part=part,
            rows=self._manifest.rows + sum(each.rows for each in self._staged) + self._rows,
            infinite=self._infinite,
            is_over=self._is_over and self._has_ended,
        ).to_bytes()

    @property
    def _event_time_ns(self) -> int | None:
        """Event time of the last row of the part, as far as it is known."""
        last_ns = self._last_event_time_ns() if self._rows else None
        return self._last_ns if last_ns is None else last_ns

    def end(self) -> None:  # noqa: D102 - see Sink
        self._has_ended = True

    def flush(self) -> None:
        """End the part and sync it; a flow without results leaves an empty one."""
        with self._telling():
            is_empty = self._part is None and not (self._staged or self._manifest.parts)
            if self._has_ended and is_empty:
                self._begin()
                self._part = self._new_part()
            if self._part is None:
                return
            size = self._part.finish()
            self._staged.append(Part(self._next_name, self._rows, size, self._event_time_ns))
            self._part, self._rows, self._last_ns = None, 0, None

    def commit(self) -> None:
        """Give parts their names; an output that is replaced goes first."""
        if self._staged:
            with self._telling():
                self._commit(replace(self._manifest, is_whole=self._has_ended))

    def close(self) -> None:
        """Record the end, and release the lock. Idempotent.

        If an overwrite is stopped before its output is whole, the old output stays.

        Raises:
            SinkError: the end could not be recorded.
        """
        if self._is_over:
            return
        if not (self._has_ended or self._has_begun):
            self._end_short("stopped")  # no rows came, so nothing is replaced
            return
        if not self._has_ended and self._removing:
            self._give_up()
            return
        with self._telling():
            self._begin()
            if self._has_ended or not self._repeats_whole_run:
                ended = self._manifest.ended(self._state, at_ns=time.time_ns())
                self._lock.check()
                self._place.write_manifest(ended)
        self._is_over = True
        self._tell_missing()
        self._tell_infinite()
        self._lock.release()

    @property
    def _state(self) -> str:
        return "done" if self._has_ended else "stopped"

    def progress(self) -> SinkProgress:  # noqa: D102 - see Sink
        return self._progress

    def _tell_infinite(self) -> None:
        if self._infinite:
            self._progress.notes.append(
                f"{count_of(self._infinite, 'infinite value')} "
                f"{agreeing(self._infinite, 'is', 'are')} null there, since JSON has no number; "
                "parquet_sink keeps them, and .cast('string') writes them as text"
            )

    def abort(self, error: str) -> None:
        """End after a failed run; published parts stay, all else goes. Idempotent."""
        if not self._is_over:
            self._end_short("failed", error)

    def _give_up(self) -> None:
        assert self._known is not None, "an output to replace has a manifest"
        old = self._known.run
        self._progress.notes.append(
            f"the output of job {old.job!r} stays: this job was stopped before its own was whole, "
            "and overwrite=True replaces the old output by a whole one only; with every= or "
            "rows= it does so as soon as one part is there"
        )
        self._end_short("stopped")

    def _end_short(self, state: str, error: str | None = None) -> None:
        self._is_over = True
        self._tell_infinite()
        if self._part is not None:
            self._part.discard()
        if self._has_begun:
            with suppress(OSError, SinkError):
                self._forget(state, error)
            self._tell_missing()
        self._lock.release()

    def _forget(self, state: str, error: str | None) -> None:
        """Record how the run ended; remove what it has not committed.

        A failure during a commit may have come before or after its decisive step: the manifest on
        disk tells which parts were pending, and their files which of them are whole.
        """
        self._lock.check()
        existing = self._place.look()
        on_disk = existing.manifest
        is_ours = on_disk is not None and on_disk.run.token == self._place.token
        committed = [part.name for part in on_disk.parts] if on_disk is not None and is_ours else []
        if on_disk is not None and is_ours:
            pending = tuple(part for part in on_disk.parts if part.name in existing.hidden)
            visible = tuple(part for part in on_disk.parts if part.name not in existing.hidden)
            on_disk = replace(on_disk, parts=visible, pending=pending)
            self._count(visible[len(self._manifest.parts) :])
            self._manifest = on_disk
        for part in () if self._keeps_positions else self._staged:
            if part.name not in committed:  # else the next run renames it
                with suppress(OSError):
                    self._place.hidden(part.name).unlink(missing_ok=True)
        ours = on_disk if on_disk is not None and is_ours else self._manifest
        short = None if error is None else error[:2_000]
        failed = ours.ended(state, at_ns=time.time_ns(), error=short)
        if on_disk is not None and not is_ours:
            failed = replace(on_disk, failed=failed.run)
        self._place.write_manifest(failed)

    def _more_rows(self, rows: int) -> SinkError:
        self.abort("other rows than before")
        return SinkError(
            f"sink {self._name!r}: the flow gave {rows:,} rows or more, and {self._place.path} has "
            f"{self._skip:,}, all that an earlier run of the same flow had; a function of the flow "
            "gives other results each time; pass overwrite=True"
        )

    # -- publishing ----------------------------------------------------------------------------

    def _begin(self, keeps: Sequence[Path] = ()) -> None:
        """Tidy up after the last run, and record that this run writes."""
        if self._has_begun:
            return
        self._has_begun = True
        self._lock.check()
        self._progress.notes += self._place.tidy(self._known, keeps)
        if self._known is not None and self._known.removing:
            self._known = replace(self._known, removing=())
        if not self._removing and not self._repeats_whole_run:
            self._place.write_manifest(self._manifest)

    @property
    def _next_name(self) -> str:
        return self._place.part_name(len(self._manifest.parts) + len(self._staged) + 1)

    def _new_part(self, *, at: int | None = None) -> PartFile:
        name = self._next_name
        path = self._place.hidden(name)
        if self._settings.format == "parquet":
            journal = Journal(self._place.journal(name), at) if self._keeps_positions else None
            return ParquetPart(path, self._schema, journal)
        if self._settings.format == "csv":
            return LinesPart(path, CsvText(self._schema, self._settings.csv), at)
        return LinesPart(path, JsonText(), at)

    def _commit(self, manifest: Manifest) -> None:
        self._lock.check()
        new, removing = tuple(self._staged), self._removing
        parts = (*self._manifest.parts, *new)
        self._place.commit(replace(manifest, parts=parts, removing=removing), new)
        self._manifest = replace(manifest, parts=parts)
        self._staged, self._removing = [], ()
        self._count(new)
        for part in new if self._keeps_positions else ():
            self._place.journal(part.name).unlink(missing_ok=True)

    def _count(self, new: Sequence[Part]) -> None:
        rows = sum(part.rows for part in new)
        self._progress.parts += len(new)
        self._progress.published += rows
        self._progress.waiting -= rows

    @contextmanager
    def _telling(self, *, is_opening: bool = False) -> Iterator[None]:
        """Turn the system's refusals into errors with a hint; no partial file stays."""
        try:
            yield
        except OSError as problem:
            facts = self._place.facts(had_folder=not is_opening)
            fact = self._refusal(problem, facts)
            if is_opening:
                way_out = remedy(problem.errno, facts, otherwise=CHOOSE_ANOTHER)
            else:
                self.abort(fact)
                way_out = self._way_on(remedy(problem.errno, facts))
            raise SinkError(f"{fact}; {way_out}") from problem
        except SinkError as problem:
            if not is_opening:
                self.abort(str(problem))
            raise

    def _refusal(self, problem: OSError, facts: PathFacts) -> str:
        reason = os.strerror(problem.errno) if problem.errno else text_of(problem)
        if isinstance(problem, LockGone) and not facts.is_folder_gone:
            reason = str(problem.strerror)
        odd = facts.odd_manifest or facts.odd_lock if problem.errno == errno.EISDIR else None
        free = free_there(problem.errno, facts)
        return f"sink {self._name!r} could not write {odd or self._place.path}: {reason}{free}"

    def _way_on(self, hint: str) -> str:
        existing = None
        with suppress(OSError):
            try:
                existing = self._place.look()
            except (OSError, SinkError):  # a manifest that cannot be read is none to go on from
                existing = self._place.look(reads_manifest=False)
        return way_on(
            existing,
            self._run,
            schema=self._columns,
            kind=self._settings.format,
            is_file=self._settings.is_file,
            parts=self._manifest.parts,
            waiting=self._progress.waiting,
            remedy=hint,
        )

    @property
    def _parts_to_check(self) -> tuple[Part, ...]:
        return self._manifest.parts

    def _tell_missing(self) -> None:
        """Note published parts that another program has removed or changed."""
        try:
            shown = self._place.look(reads_manifest=False).shown
        except OSError as problem:
            self._progress.notes.append(f"its parts cannot be looked at ({text_of(problem)})")
            return
        parts = self._parts_to_check
        note, lost = missing_parts(parts, shown)
        if note:
            ours = parts[self._earlier_parts :]
            self._progress.notes.append(note)
            self._progress.parts -= len(lost)
            self._progress.published -= sum(part.rows for part in ours if part.name in lost)
