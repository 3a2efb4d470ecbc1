"""Write one output of files from several slots, with one manifest for all parts.

```
replica 1 ─▶ writer 1: part-1, part-3 ─┐  in turns, one at a time:
                                       ├─ read the manifest ─▶ publish ─▶ write the manifest
replica 2 ─▶ writer 2: part-2, part-4 ─┘
```

The writers are sinks of one job. They share the lock of the folder, and the token of its hidden
files. A small file beside the lock says which of them still write; the last one ends the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from slackwater.actors.kernel.plain_files import private, read_plain
from slackwater.actors.sinks.file_settings import FileSettings
from slackwater.actors.sinks.files import FileSink
from slackwater.runtime.errors import SinkError
from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.sinks.lock import Holder
from slackwater.runtime.sinks.manifest import Manifest, Part
from slackwater.runtime.sinks.output import OutputContext, OutputWriter

__all__ = ["SharedFileSink"]

_MOST_BYTES = 1 << 20
_WORST = ("failed", "stopped", "writing", "done")


@dataclass
class _Writers(JsonObject):
    """Writers of an output, as the file beside its lock says.

    Attributes:
        states: {number of a writer: writing, done, stopped or failed}.
        has_begun: whether one has tidied the folder and begun the manifest.
        error: the error that ended one of them.
    """

    states: dict[str, str] = field(default_factory=dict)
    has_begun: bool = False
    error: str | None = None

    @property
    def are_over(self) -> bool:
        """Whether none of them writes any more."""
        return "writing" not in self.states.values()

    @property
    def state(self) -> str:
        """State of all: the worst."""
        return next(state for state in _WORST if state in self.states.values())


class SharedFileSink(FileSink):
    """Writer of a folder of parts that other slots write, too.

    Args:
        settings: settings of the sink: a folder, not only replaced as a whole.
        path: path of the output, the same folder for all writers.
        schema: schema of the rows.
        context: context of the output; its sink is the step, whose name all writers share.
        writer: the writer that this is.

    Raises:
        SinkError: as for `FileSink`.
    """

    def __init__(
        self,
        settings: FileSettings,
        path: str,
        schema: pa.Schema,
        context: OutputContext,
        writer: OutputWriter,
    ) -> None:
        self._writer, self._own = writer, list[Part]()
        super().__init__(settings, path, schema, context, joins=self._may_join)
        with self._telling(is_opening=True), self._lock.alone():
            writers = self._read()
            writers.states[str(writer.number)] = "writing"
            self._write(writers)

    def _may_join(self, holder: Holder) -> bool:
        """Whether a lock is of the same run, which waits for this writer."""
        if not holder.job or (holder.job, holder.sink) != (self._run.job, self._name):
            return False
        return str(self._writer.number) not in self._read(holder.token).states

    def last_ordinal(self) -> int:
        """Return −1; all writers have opened the output by now.

        Raises:
            SinkError: some opened another folder of the same name.
        """
        with self._telling(), self._lock.alone():
            count, of = len(self._read().states), self._writer.of
            if count < of:
                raise SinkError(
                    f"sink {self._name!r}: {count} of its {of} writers see the folder "
                    f"{self._place.path}, as their nodes have other file systems; write to a "
                    "folder that all nodes share, or omit ordered=False"
                )
        return -1

    def flush(self) -> None:
        """End the part and sync it."""
        if self._part is not None:
            super().flush()

    def commit(self) -> None:
        """Publish parts after those of the other writers."""
        if self._staged:
            with self._telling(), self._lock.alone():
                self._publish()

    def close(self) -> None:
        """End this writer; the last one records the end, and releases the lock. Idempotent.

        Raises:
            SinkError: the end could not be recorded.
        """
        if self._is_over:
            return
        with self._telling():
            self._begin()
            with self._lock.alone():
                self._lock.check()
                is_last = self._leave(self._state)
        self._is_over = True
        self._tell_missing()
        self._tell_infinite()
        self._lock.release(is_last=is_last)

    # -- in turns ------------------------------------------------------------------------------

    def _begin(self, keeps: Sequence[Path] = ()) -> None:
        if self._has_begun:
            return
        with self._lock.alone():
            writers = self._read()
            if writers.has_begun:
                self._has_begun = True
                return
            super()._begin(keeps)
            self._write(replace(writers, has_begun=True))

    def _publish(self) -> None:
        """Publish the parts that are staged, in this writer's turn."""
        manifest = self._on_disk()
        if manifest is None:
            manifest = self._manifest
        else:
            self._removing = ()  # another writer has replaced the old output
        self._manifest = manifest
        own = tuple(self._staged)
        self._commit(manifest)
        self._own += own

    def _leave(self, state: str, error: str | None = None) -> bool:
        """Note the end of this writer, in its turn; return whether all have ended."""
        writers = self._read()
        writers.states[str(self._writer.number)] = state
        writers.error = writers.error or error
        if not writers.are_over:
            self._write(writers)
            return False
        if writers.has_begun:
            self._record(writers)
        with suppress(FileNotFoundError):
            self._writers_path().unlink()
        return True

    def _record(self, writers: _Writers) -> None:
        """Record how the run ended; without results it leaves an empty part."""
        manifest, state, error = self._on_disk(), writers.state, writers.error
        error = None if error is None else error[:2_000]
        if state == "done" and not (manifest or self._manifest).parts:
            self._part = self._new_part()
            super().flush()
            self._publish()
            manifest = self._on_disk()
        if manifest is not None:
            self._place.write_manifest(manifest.ended(state, at_ns=time.time_ns(), error=error))
        elif state == "failed" and (old := self._place.read_manifest()) is not None:
            failed = self._manifest.ended(state, at_ns=time.time_ns(), error=error)
            self._place.write_manifest(replace(old, failed=failed.run))

    def _end_short(self, state: str, error: str | None = None) -> None:
        self._is_over, is_last = True, False
        self._tell_infinite()
        if self._part is not None:
            self._part.discard()
        with suppress(OSError, SinkError), self._lock.alone():
            self._lock.check()
            self._discard_staged()
            is_last = self._leave(state, error)
        if self._has_begun:
            self._tell_missing()
        self._lock.release(is_last=is_last)

    def _discard_staged(self) -> None:
        """Remove parts that this writer has not published; count those that it has."""
        manifest = self._on_disk()
        names = frozenset(part.name for part in manifest.parts) if manifest else frozenset()
        published = [part for part in self._staged if part.name in names]
        self._own += published
        self._count(published)
        for part in self._staged:
            if part.name not in names:
                self._place.hidden(part.name).unlink(missing_ok=True)
        self._staged = []

    # -- what is there -------------------------------------------------------------------------

    @property
    def _next_name(self) -> str:
        number = (len(self._own) + len(self._staged)) * self._writer.of + self._writer.number + 1
        return self._place.part_name(number)

    @property
    def _parts_to_check(self) -> tuple[Part, ...]:
        return tuple(self._own)

    def _on_disk(self) -> Manifest | None:
        """Return this run's manifest; None if the run has none yet."""
        manifest = self._place.look().manifest
        is_ours = manifest is not None and manifest.run.token == self._place.token
        return replace(manifest, removing=()) if manifest is not None and is_ours else None

    def _writers_path(self, token: str | None = None) -> Path:
        return self._place.writers_path(token or self._place.token)

    def _read(self, token: str | None = None) -> _Writers:
        try:
            plain: Any = json.loads(read_plain(self._writers_path(token), most_bytes=_MOST_BYTES))
            return _Writers.from_json(plain)
        except FileNotFoundError:
            return _Writers()
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise SinkError(
                f"sink {self._name!r}: {self._writers_path(token)} cannot be read ({problem}); "
                "another program changed it; see which, and submit again"
            ) from problem

    def _write(self, writers: _Writers) -> None:
        path = self._writers_path()
        with open(path, "w", encoding="utf-8", opener=private) as file:
            json.dump(writers.to_json(), file)
