"""Lay out a sink's path on disk: manifest, lock, hidden files and published parts.

```
out/                                       a folder
  .slackwater.json                           the manifest
  .slackwater.lock                           while a job writes
  .slackwater.writers.4f1c…                  who still writes, if several sinks of the job do
  part-00000001.parquet                      published: never changed or removed by us
  .part-00000002.parquet.4f1c….incomplete    being written by the run with that token
  .part-00000002.parquet.4f1c….rows          its rows, if the job has checkpoints (`journal.py`)
rows.jsonl                                 one file, once whole
.rows.jsonl.slackwater.json, .rows.jsonl.slackwater.lock, .rows.jsonl.4f1c….incomplete
```
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from slackwater.actors.kernel.plain_files import (
    free_room,
    no_folder_at,
    read_plain,
    sync,
    whole_file,
)
from slackwater.runtime.errors import SinkError
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import in_words
from slackwater.runtime.sinks.manifest import NO_FILE, Manifest, Part, is_part_name, part_name
from slackwater.runtime.sinks.open_decision import ExistingOutput
from slackwater.runtime.sinks.position import FilePosition
from slackwater.runtime.sinks.remedies import PathFacts

__all__ = ["OutputPath", "PartChanged"]

NAME = "slackwater"
_LEFTOVER = re.compile(r"\.(?P<shown>.+)\.(?P<token>[0-9a-f]{16})\.(incomplete|rows)")
_MOST_BYTES = 1 << 30


class PartChanged(OSError):
    """Another program removed or changed a part while it was written."""


class OutputPath:
    """Files of one output.

    Args:
        sink: name of the sink, for errors.
        path: a folder, or one file.
        kind: "parquet", "jsonl" or "csv".
        is_file: whether the path is one file.
        token: token of this run.
    """

    def __init__(self, sink: str, path: Path, *, kind: str, is_file: bool, token: str) -> None:
        self._sink, self.path, self._kind, self._is_file = sink, path, kind, is_file
        self.token = token
        self.folder = path.parent if is_file else path
        prefix = f".{path.name}.{NAME}" if is_file else f".{NAME}"
        self._writers_name = f"{prefix}.writers"
        self.manifest_path = self.folder / f"{prefix}.json"
        self.lock_path = self.folder / f"{prefix}.lock"

    def writers_path(self, token: str) -> Path:
        """Return the path of the file that names the writers of a run."""
        return self.folder / f"{self._writers_name}.{token}"

    def part_name(self, number: int) -> str:
        """Return the name of a part, numbered from 1."""
        return self.path.name if self._is_file else part_name(number, self._kind)

    def hidden(self, name: str, *, token: str | None = None) -> Path:
        """Return the hidden path of a part in the making."""
        return self.folder / f".{name}.{token or self.token}.incomplete"

    def journal(self, name: str) -> Path:
        """Return the path of the journal of a part in the making."""
        return self.folder / f".{name}.{self.token}.rows"

    def cut_file(self, name: str) -> Path:
        """Return the file of a part in the making that is cut at a position."""
        return self.journal(name) if self._kind == "parquet" else self.hidden(name)

    def look(self, *, reads_manifest: bool = True) -> ExistingOutput:
        """Return the output that exists at the path.

        Args:
            reads_manifest: whether to read the manifest; else it counts as missing.

        Raises:
            SinkError: the manifest is not valid.
            OSError: the manifest cannot be read, or a file cannot be looked at.
        """
        manifest = self.read_manifest() if reads_manifest else None
        shown = {
            path.name: size
            for path in self._shown()
            if (size := _size(path, follows=True)) is not None
        }
        hidden = {}
        if manifest is not None:
            hidden = self._hidden_sizes(manifest)
            manifest = manifest.settled(shown=shown, hidden=hidden)
        return ExistingOutput(
            sink=self._sink,
            path=str(self.path),
            manifest=manifest,
            shown=shown,
            hidden=hidden,
            around=self._around(),
        )

    def _around(self) -> Manifest | None:
        if not self._is_file:
            return None
        folder = OutputPath(
            self._sink, self.folder, kind=self._kind, is_file=False, token=self.token
        )
        with suppress(OSError, SinkError):  # then it is not an output of ours
            return folder.read_manifest()
        return None

    def facts(self, *, had_folder: bool) -> PathFacts:
        """Return facts of the path for a hint; unknown facts are omitted.

        Args:
            had_folder: whether its folder was there before.
        """
        free_bytes, has_inodes = None, True
        is_folder_gone = has_parts = False
        with suppress(OSError):
            is_folder_gone = had_folder and _size(self.folder) is None
        with suppress(OSError):
            has_parts = any(_size(path) is not None for path in self._shown())
        with suppress(OSError):
            free_bytes, has_inodes = free_room(self.folder)
        return PathFacts(
            path=str(self.path),
            is_file=self._is_file,
            is_folder_gone=is_folder_gone,
            no_folder=no_folder_at(self.folder),
            odd_manifest=_odd(self.manifest_path),
            odd_lock=_odd(self.lock_path),
            has_parts=has_parts,
            free_bytes=free_bytes,
            has_inodes=has_inodes,
        )

    def making(self, position: FilePosition) -> dict[str, int]:
        """Return {part: bytes} of the hidden files of a position that exist.

        Of a part in the making it is the file that is cut: its journal, or its lines.
        """
        paths = {part.name: self.hidden(part.name) for part in position.staged}
        if (part := position.part) is not None:
            paths[part.name] = self.cut_file(part.name)
        sizes = {name: _size(path) for name, path in paths.items()}
        return {name: size for name, size in sizes.items() if size is not None}

    def _hidden_sizes(self, manifest: Manifest) -> dict[str, int]:
        sizes = {
            part.name: _size(self.hidden(part.name, token=manifest.run.token))
            for part in (*manifest.parts, *manifest.pending)
        }
        return {name: size for name, size in sizes.items() if size is not None}

    def read_manifest(self) -> Manifest | None:
        """Return the manifest on disk; None if there is no file.

        Raises:
            SinkError: the manifest is not valid.
            OSError: the manifest cannot be read.
        """
        try:
            data = read_plain(self.manifest_path, most_bytes=_MOST_BYTES)
            return Manifest.from_json(json.loads(data))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise SinkError(
                f"sink {self._sink!r}: manifest {self.manifest_path} is not valid "
                f"({in_words(problem)}); another version wrote it, or it is "
                "damaged; choose another path, or move the folder away"
            ) from problem

    def tidy(self, known: Manifest | None, keeps: Collection[Path] = ()) -> list[str]:
        """Publish the last run's committed parts, remove its others; return notes.

        Only hidden files with our own names are removed.

        Args:
            known: manifest of the last run; None if it has none.
            keeps: hidden files of this run that stay.
        """
        notes = []
        if known is not None:
            named = [
                part
                for part in known.parts
                if self.hidden(part.name, token=known.run.token).exists()
            ]
            if named or known.removing:
                known = replace(known, pending=())
                self._show(named, known.removing, known.parts, token=known.run.token)
                if named:
                    notes.append(
                        f"published {count_of(len(named), 'part')} that job {known.run.job!r} had "
                        "committed"
                    )
                self.write_manifest(replace(known, removing=()))
        left = [path for path in self._leftovers() if path not in keeps]
        for path in left:
            path.unlink(missing_ok=True)
        if left:
            notes.append(f"removed {count_of(len(left), 'unfinished file')} of an earlier run")
        return notes

    def commit(self, manifest: Manifest, new: Sequence[Part]) -> None:
        """Publish synced parts, the last of a manifest, then write the manifest.

        Raises:
            SinkError: another program's file has the name.
            OSError: the commit failed, or another program changed a part (`PartChanged`);
                the parts that are visible, and whole, are committed.
        """
        before = manifest.parts[: len(manifest.parts) - len(new)]
        run = replace(manifest.run, state="writing", ended_ns=None)
        for part in new:
            self._check(self.hidden(part.name), part)
            if part.name not in manifest.removing and os.path.lexists(self.folder / part.name):
                raise SinkError(
                    f"sink {self._sink!r}: {self.folder / part.name} has appeared meanwhile; no "
                    "manifest of ours names it, and nothing touches it; move it away, or "
                    "choose another path, and submit again"
                )
        self.write_manifest(replace(manifest, run=run, parts=before, pending=tuple(new)))
        self._show(new, manifest.removing, manifest.parts, token=self.token)
        for part in new:  # another program may have changed it between the look and the renaming
            self._check(self.folder / part.name, part)
        self.write_manifest(replace(manifest, removing=()))

    def _check(self, path: Path, part: Part) -> None:
        size = _size(path)
        if size is None:
            raise PartChanged(f"{part.name} was removed by another program while it was written")
        if size != part.bytes:
            raise PartChanged(
                f"{part.name} was changed by another program: it {part.changed(size)}"
            )

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest by a new one, atomically."""
        aside = self.manifest_path.with_name(f"{self.manifest_path.name}.{self.token}")
        with whole_file(self.manifest_path, hidden=aside) as file:
            file.write(json.dumps(manifest.to_json()).encode())

    def _show(
        self,
        new: Sequence[Part],
        removing: Collection[str],
        parts: Collection[Part],
        *,
        token: str,
    ) -> None:
        """Remove replaced parts, then rename new ones: readers never see a mixture of both."""
        waiting = {part.name for part in new}
        stays = {part.name for part in parts} - waiting  # new parts with their final names
        for name in removing:
            if name not in stays and not self._is_file:  # the renaming replaces a single file
                (self.folder / name).unlink(missing_ok=True)
        if removing:
            sync(self.folder)
        for part in new:
            self.hidden(part.name, token=token).replace(self.folder / part.name)
        sync(self.folder)

    def _shown(self) -> Iterator[Path]:
        if self._is_file:
            yield self.path
            return
        names: list[str] = []
        with suppress(FileNotFoundError):  # unlike glob, it raises where it may not look
            names = os.listdir(self.folder)
        for path in map(self.folder.joinpath, names):
            if path.suffix == f".{self._kind}" and not path.name.startswith((".", "_")):
                yield path

    def _leftovers(self) -> Iterator[Path]:
        for path in self.folder.iterdir():
            match = _LEFTOVER.fullmatch(path.name)
            if match is not None:
                shown = match["shown"]
                if shown == self.path.name if self._is_file else is_part_name(shown):
                    yield path
            stem, _, token = path.name.rpartition(".")
            ours = (self.manifest_path.name, self.lock_path.name, self._writers_name)
            if stem in ours and re.fullmatch(r"[0-9a-f]{16}", token) and token != self.token:
                yield path


def _size(path: Path, *, follows: bool = False) -> int | None:
    """Return a file's bytes; None if nothing is there, `NO_FILE` if no file.

    Args:
        path: path of the file.
        follows: whether a link counts as the file that readers see there.

    Raises:
        OSError: it may be there, and cannot be looked at.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if follows and stat.S_ISLNK(status.st_mode):
        with suppress(FileNotFoundError, NotADirectoryError):  # else it leads nowhere
            status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else NO_FILE


def _odd(path: Path) -> str | None:
    """Return the path if it has something but a regular file; None if not."""
    try:
        return None if stat.S_ISREG(os.lstat(path).st_mode) else str(path)
    except OSError:
        return None
