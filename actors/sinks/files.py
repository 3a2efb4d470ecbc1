"""Results in files that are whole, however the run ends: parts, published one after the other.

```
write ──▶ part in the making (hidden) ──▶ full, or due ──▶ synced ──▶ manifest ──▶ its own name
                  │                                          └── an overwrite waits till all are
                  └─ killed, or failed: nobody sees it, the next run removes it
```
What is decided (where a part ends, what may be replaced, who may go on) is in `runtime/sinks/`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from slackwater.actors.sinks.file_settings import FileSettings
from slackwater.actors.sinks.lock import Lock, here_as
from slackwater.actors.sinks.output_path import OutputPath, make_folder
from slackwater.actors.sinks.parts import JsonLinesPart, ParquetPart, PartFile
from slackwater.actors.sinks.sink import SinkProgress
from slackwater.runtime import errors
from slackwater.runtime.errors import SinkError
from slackwater.runtime.model import Int64Array
from slackwater.runtime.sinks import HasEnded, SinkRun
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.open_decision import OpenDecision, open_decision
from slackwater.runtime.sinks.rolling import PART_ROWS, RollingPolicy

__all__ = ["FileSink"]

CHOOSE_ANOTHER = "choose a path that can be written on the node where the sink runs"


class FileSink:
    """A folder of parts, or one file. From one thread.

    Args:
        name: of the sink.
        settings: what it was given.
        path: where to.
        schema: of its rows.
        run: which writes.
        has_ended: see `HasEnded`.
        clock_ns: tells when a part is due; it must not run back.

    Raises:
        SinkError: another job writes there, what is there is in the way, or it cannot be written.
            Nothing there has been changed.
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
        self._columns = tuple((one.name, str(one.type)) for one in schema)
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
        self._infinite = 0  # values that its format has no number for
        self._has_begun = self._is_over = False
        self.progress = SinkProgress()
        with self._telling(way_out=CHOOSE_ANOTHER):
            make_folder(self._place.folder)
            note = self._lock.take()
        try:
            with self._telling(way_out=CHOOSE_ANOTHER):
                found = self._place.look()
                opening = open_decision(
                    found,
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
        self._take(found.manifest, opening)

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
        # Then nothing is missing, and its manifest stays until this run has seen the same rows.
        self._is_behind_done = (
            bool(opening.parts) and known is not None and known.run.state == "done"
        )
        self.progress.parts = len(opening.parts)
        if opening.parts and known is not None:
            self.progress.notes.append(
                f"goes on behind {opening.rows:,} rows that job {known.run.job!r} had committed"
            )

    # -- writing -------------------------------------------------------------------------------

    def begin(self) -> None:
        """It is ready."""

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Take rows, with their event times if the caller has them."""
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
                taken, is_full = self._cutter.take(len(rows) - start, self._clock_ns())
                if self._part is None:
                    self._part = self._new_part()
                self._infinite += self._part.write(rows.slice(start, taken))
                start += taken
                self.progress.waiting += taken
                if event_time_ns is not None:
                    self._part_ns = int(event_time_ns[start - 1])
                if is_full:
                    self._finish_part()

    @property
    def due_ns(self) -> int | None:
        """When rows must be published, by the sink's clock; None: when they are enough."""
        return self._cutter.due_ns

    def publish_due(self) -> None:
        """Publish rows that have waited for long enough."""
        if self._cutter.is_due(self._clock_ns()):
            with self._telling():
                self._finish_part()

    def close(self, state: str = "done") -> None:
        """Publish the rest: the stream has ended, or its user has stopped it. Safe to call twice.

        A flow with no results leaves one empty file. What was to be replaced by the whole, and is
        stopped before that, stays.

        Raises:
            SinkError: it was not possible; or an earlier run has committed more rows than there
                are now.
        """
        if state != "done" and not self._has_begun:
            self.leave()  # nothing came, so nothing is replaced
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
                self._finish_part()
            ended = self._manifest.ended(state, at_ns=time.time_ns())
            if self._staged or self._removing:
                self._commit(ended)
            elif state == "done" or not self._is_behind_done:
                self._lock.check()
                self._place.write_manifest(ended)
        self._is_over = True
        self._tell_infinite()
        self._lock.release()

    def _tell_infinite(self) -> None:
        if self._infinite:
            self.progress.notes.append(
                f"{self._infinite:,} infinite value(s) are null there, since JSON has no number "
                "for them; parquet_sink keeps them, and .cast('string') writes them as text"
            )

    def abort(self, error: str) -> None:
        """Leave what is published, and nothing else; the run has failed. Safe to call twice."""
        if not self._is_over:
            self._end_short("failed", error)

    def _give_up(self, state: str) -> None:
        assert self._known is not None, "what is replaced has a manifest"
        old = self._known.run
        self.progress.notes.append(
            f"what job {old.job!r} wrote stays, since this one was stopped before its output was "
            "whole, and overwrite=True replaces the old by the whole only; with every= or rows= "
            "it does as soon as a part is there"
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
        self._lock.release()

    def _forget(self, state: str, error: str | None) -> None:
        """Say how the run has ended; remove what it has not committed.

        A failure in the midst of committing may have come before or behind the commit, which is
        the renaming of the manifest: the one that lies there tells.
        """
        self._lock.check()
        there = self._place.read_manifest()
        is_ours = there is not None and there.run.token == self._place.token
        committed = [part.name for part in there.parts] if there is not None and is_ours else []
        for part in self._staged:
            if part.name not in committed:  # else the next run gives it its name
                with suppress(OSError):
                    self._place.hidden(part.name).unlink(missing_ok=True)
        ours = there if there is not None and is_ours else self._manifest
        short = None if error is None else error[:2_000]
        failed = ours.ended(state, at_ns=time.time_ns(), error=short)
        if there is not None and not is_ours:
            failed = replace(there, failed=failed.run)
        self._place.write_manifest(failed)

    def leave(self) -> None:
        """Give the place up before anything was written: the job never started."""
        if not self._has_begun:
            self._is_over = True
            self._lock.release()

    def _other_rows(self, gave: str) -> SinkError:
        self.abort("other rows than before")
        return SinkError(
            f"sink {self._name!r}: the flow gave {gave} rows, and "
            f"{self._place.path} has {self._skip:,} that an earlier run of the same flow "
            "committed: a function of it gives other results each time; pass overwrite=True"
        )

    # -- publishing ----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Tidy up behind the last run, and say that this one writes."""
        if self._has_begun:
            return
        self._has_begun = True
        self._lock.check()
        self.progress.notes += self._place.tidy(self._known)
        if self._known is not None and self._known.removing:
            self._known = replace(self._known, removing=())
        if not self._removing and not self._is_behind_done:
            self._place.write_manifest(self._manifest)

    def _new_part(self) -> PartFile:
        number = len(self._manifest.parts) + len(self._staged) + 1
        path = self._place.hidden(self._place.part_name(number))
        if self._settings.format == "parquet":
            return ParquetPart(path, self._schema)
        return JsonLinesPart(path)

    def _finish_part(self) -> None:
        part, rows = self._part, self._cutter.rows
        assert part is not None, "only a part that has begun can be full, or due"
        size = part.finish()
        number = len(self._manifest.parts) + len(self._staged) + 1
        name = self._place.part_name(number)
        self._staged.append(Part(name, rows, size, self._part_ns))
        self._part, self._part_ns = None, None
        self._cutter.cut()
        if not self._removing or self._settings.is_live:
            self._commit(self._manifest)

    def _commit(self, manifest: Manifest) -> None:
        self._lock.check()
        new, removing = tuple(self._staged), self._removing
        parts = (*self._manifest.parts, *new)
        self._place.commit(replace(manifest, parts=parts, removing=removing), new)
        self._manifest = replace(manifest, parts=parts)
        self._staged, self._removing = [], ()
        rows = sum(part.rows for part in new)
        self.progress.parts = len(parts)
        self.progress.published += rows
        self.progress.waiting -= rows

    @contextmanager
    def _telling(self, *, way_out: str | None = None) -> Iterator[None]:
        """Turn the system's refusals into errors that say what to do; nothing partial stays."""
        try:
            yield
        except OSError as problem:
            error = SinkError(self._refusal(problem, way_out))
            if way_out is None:
                self.abort(str(error))
            raise error from problem
        except SinkError as problem:
            if way_out is None:
                self.abort(str(problem))
            raise

    def _refusal(self, problem: OSError, way_out: str | None) -> str:
        path = self._place.path
        free = "its folder cannot be looked at"
        with suppress(OSError):
            usage = shutil.disk_usage(path if path.exists() else path.parent)
            free = f"{usage.free / 2**20:.1f} MiB free there"
        reason = os.strerror(problem.errno) if problem.errno else str(problem)
        if way_out is not None:
            way_out = errors.way_out(problem, way_out)
        else:
            mend = errors.way_out(problem, "make room or choose another path")
            told = self.progress
            way_out = (
                f"{told.parts} part(s) with {self._manifest.rows:,} rows are published and safe, "
                f"{told.waiting:,} rows behind them are not visible; {mend}, and submit again "
                "(resume=True goes on behind what is published)"
            )
        return f"sink {self._name!r} could not write {path}: {reason} ({free}); {way_out}"
