"""Write results to files that are always whole: parts, published one after the other.

```
write ──▶ part in the making (hidden) ──▶ full, or due ──▶ synced ──▶ final name ──▶ manifest
                  │                                          └── an overwrite waits for all
                  └─ killed, or failed: stays hidden, the next run removes it
```
`runtime/sinks/` decides: where a part ends, what may be replaced, which run may go on.
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

from slackwater.actors.sinks.csv_text import CsvText
from slackwater.actors.sinks.file_settings import FileSettings
from slackwater.actors.sinks.jsonl_text import JsonText
from slackwater.actors.sinks.lock import Lock, LockGone, here_as
from slackwater.actors.sinks.output_path import OutputPath, make_folder
from slackwater.actors.sinks.parts import LinesPart, ParquetPart, PartFile
from slackwater.actors.sinks.sink import SinkProgress
from slackwater.runtime.errors import SinkError
from slackwater.runtime.model import Int64Array
from slackwater.runtime.plurals import agreeing, count_of
from slackwater.runtime.shown import text_of
from slackwater.runtime.sinks import HasEnded, SinkRun
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.open_decision import OpenDecision, open_decision
from slackwater.runtime.sinks.remedies import PathFacts, free_there, remedy
from slackwater.runtime.sinks.rolling import PART_ROWS, RollingPolicy
from slackwater.runtime.sinks.way_on import missing_parts, way_on

__all__ = ["FileSink"]

CHOOSE_ANOTHER = "choose a path that can be written on the node where the sink runs"


class FileSink:
    """A folder of parts, or one file. Use it from one thread.

    Args:
        name: of the sink.
        settings: of the sink.
        path: of the output.
        schema: of the rows.
        run: the run that writes.
        has_ended: see `HasEnded`.
        clock_ns: clock for due parts; it must not run back.

    Raises:
        SinkError: another job writes there, earlier results are in the way, or the path cannot be
            written. Nothing there has been changed.
    """

    def __init__(
        self,
        name: str,
        settings: FileSettings,
        path: str,
        schema: pa.Schema,
        *,
        run: SinkRun,
        has_ended: HasEnded = lambda _: False,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._name, self._settings, self._schema = name, settings, schema
        self._run, self._clock_ns = run, clock_ns
        self._columns = tuple((field.name, str(field.type)) for field in schema)
        holder = here_as(name, run, since_ns=time.time_ns())
        self._place = OutputPath(
            name, Path(path), kind=settings.format, is_file=settings.is_file, token=holder.token
        )
        self._lock = Lock(self._place.lock_path, holder, has_ended=has_ended)
        most = None if settings.is_file else settings.rows or PART_ROWS
        self._cutter = RollingPolicy(most, settings.every_ns)
        self._part: PartFile | None = None
        self._part_ns: int | None = None  # event time of its last row
        self._staged: list[Part] = []  # whole, and still hidden
        self._infinite = 0  # values without a number in the format
        self._has_begun = self._is_over = False
        self.progress = SinkProgress()
        with self._telling(is_opening=True):
            make_folder(self._place.folder)
            note = self._lock.take()
        try:
            with self._telling(is_opening=True):
                existing = self._place.look()
                opening = open_decision(
                    existing,
                    run,
                    schema=self._columns,
                    kind=settings.format,
                    is_file=settings.is_file,
                    overwrite=settings.overwrite,
                    resume=settings.resume,
                )
        except BaseException:
            self._lock.release()
            raise
        if note is not None:
            self.progress.notes.append(note)
        self._take(existing.manifest, opening)

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
        self._is_behind_done = bool(opening.parts) and known is not None and known.is_whole
        self.progress.parts = self._earlier_parts = len(opening.parts)
        if opening.parts and known is not None:
            self.progress.notes.append(
                f"goes on after {opening.rows:,} rows that job {known.run.job!r} had committed"
            )

    # -- writing -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Do nothing: the sink is ready since its construction."""

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Write rows, with their event times if the caller has them."""
        self.publish_due()
        skipped = min(self._skip - self.progress.skipped, len(rows))
        if skipped:
            self.progress.skipped += skipped
        start = skipped
        if self._is_behind_done and start < len(rows):
            raise self._other_rows("more")
        with self._telling():
            self._begin()
            while start < len(rows):
                rows_taken, is_full = self._cutter.take(len(rows) - start, self._clock_ns())
                if self._part is None:
                    self._part = self._new_part()
                self._infinite += self._part.write(rows.slice(start, rows_taken))
                start += rows_taken
                self.progress.waiting += rows_taken
                if event_time_ns is not None:
                    self._part_ns = int(event_time_ns[start - 1])
                if is_full:
                    self._finish_part()

    @property
    def due_ns(self) -> int | None:
        """When rows must be published, by the sink's clock; None if no time limit runs."""
        return self._cutter.due_ns

    def publish_due(self) -> None:
        """Publish rows whose time limit has passed."""
        if self._cutter.is_due(self._clock_ns()):
            with self._telling():
                self._finish_part()

    def close(self, state: str = "done") -> None:
        """Publish the rest: the stream has ended, or its user has stopped it. Idempotent.

        A flow without results leaves one empty file. If an overwrite is stopped before its output
        is whole, the old output stays.

        Raises:
            SinkError: publishing failed; or an earlier run has committed more rows than there
                are now.
        """
        if state != "done" and not self._has_begun:
            self.leave()  # no rows came, so nothing is replaced
        if self._is_over:
            return
        if state != "done" and self._removing and not self._settings.is_live:
            self._give_up(state)
            return
        if state == "done" and self.progress.skipped < self._skip:
            raise self._other_rows(f"{self.progress.skipped:,}")
        with self._telling():
            self._begin()
            if self._part is not None or not (self._manifest.parts or self._staged):
                if self._part is None:
                    self._part = self._new_part()
                self._finish_part(is_last=state == "done")
            ended = self._manifest.ended(state, at_ns=time.time_ns())
            if self._staged or self._removing:
                self._commit(ended)
            elif state == "done" or not self._is_behind_done:
                self._lock.check()
                self._place.write_manifest(ended)
        self._is_over = True
        self._tell_missing()
        self._tell_infinite()
        self._lock.release()

    def _tell_infinite(self) -> None:
        if self._infinite:
            self.progress.notes.append(
                f"{count_of(self._infinite, 'infinite value')} "
                f"{agreeing(self._infinite, 'is', 'are')} null there, since JSON has no number; "
                "parquet_sink keeps them, and .cast('string') writes them as text"
            )

    def abort(self, error: str) -> None:
        """End after a failed run; published parts stay, all else goes. Idempotent."""
        if not self._is_over:
            self._end_short("failed", error)

    def _give_up(self, state: str) -> None:
        assert self._known is not None, "an output to replace has a manifest"
        old = self._known.run
        self.progress.notes.append(
            f"the output of job {old.job!r} stays: this job was stopped before its own was whole, "
            "and overwrite=True replaces the old output by a whole one only; with every= or "
            "rows= it does so as soon as one part is there"
        )
        self._end_short(state)

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
            seen = tuple(part for part in on_disk.parts if part.name not in existing.hidden)
            on_disk = replace(on_disk, parts=seen, pending=pending)
            self._count(seen[len(self._manifest.parts) :])
            self._manifest = on_disk
        for part in self._staged:
            if part.name not in committed:  # else the next run renames it
                with suppress(OSError):
                    self._place.hidden(part.name).unlink(missing_ok=True)
        ours = on_disk if on_disk is not None and is_ours else self._manifest
        short = None if error is None else error[:2_000]
        failed = ours.ended(state, at_ns=time.time_ns(), error=short)
        if on_disk is not None and not is_ours:
            failed = replace(on_disk, failed=failed.run)
        self._place.write_manifest(failed)

    def leave(self) -> None:
        """Release the path before any row was written: the job never started."""
        if not self._has_begun:
            self._is_over = True
            self._lock.release()

    def _other_rows(self, gave: str) -> SinkError:
        self.abort("other rows than before")
        return SinkError(
            f"sink {self._name!r}: the flow gave {gave} rows, and {self._place.path} has "
            f"{self._skip:,} that an earlier run of the same flow committed; a function of the "
            "flow gives other results each time; pass overwrite=True"
        )

    # -- publishing ----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Tidy up after the last run, and record that this run writes."""
        if self._has_begun:
            return
        self._has_begun = True
        self._lock.check()
        self.progress.notes += self._place.tidy(self._known)
        if self._known is not None and self._known.removing:
            self._known = replace(self._known, removing=())
        if not self._removing and not self._is_behind_done:
            self._place.write_manifest(self._manifest)

    @property
    def _next_name(self) -> str:
        return self._place.part_name(len(self._manifest.parts) + len(self._staged) + 1)

    def _new_part(self) -> PartFile:
        path = self._place.hidden(self._next_name)
        if self._settings.format == "parquet":
            return ParquetPart(path, self._schema)
        if self._settings.format == "csv":
            return LinesPart(path, CsvText(self._schema, self._settings.csv))
        return LinesPart(path, JsonText())

    def _finish_part(self, *, is_last: bool = False) -> None:
        part, rows = self._part, self._cutter.rows
        assert part is not None, "only a part that has begun can be full, or due"
        size = part.finish()
        self._staged.append(Part(self._next_name, rows, size, self._part_ns))
        self._part, self._part_ns = None, None
        self._cutter.cut()
        if not self._removing or self._settings.is_live:
            self._commit(replace(self._manifest, is_whole=is_last))

    def _commit(self, manifest: Manifest) -> None:
        self._lock.check()
        new, removing = tuple(self._staged), self._removing
        parts = (*self._manifest.parts, *new)
        self._place.commit(replace(manifest, parts=parts, removing=removing), new)
        self._manifest = replace(manifest, parts=parts)
        self._staged, self._removing = [], ()
        self._count(new)

    def _count(self, new: Sequence[Part]) -> None:
        rows = sum(part.rows for part in new)
        self.progress.parts += len(new)
        self.progress.published += rows
        self.progress.waiting -= rows

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
            waiting=self.progress.waiting,
            remedy=hint,
        )

    def _tell_missing(self) -> None:
        """Note published parts that another program has removed or changed."""
        try:
            shown = self._place.look(reads_manifest=False).shown
        except OSError as problem:
            self.progress.notes.append(f"its parts cannot be looked at ({text_of(problem)})")
            return
        note, lost = missing_parts(self._manifest.parts, shown)
        if note:
            ours = self._manifest.parts[self._earlier_parts :]
            self.progress.notes.append(note)
            self.progress.parts -= len(lost)
            self.progress.published -= sum(part.rows for part in ours if part.name in lost)
