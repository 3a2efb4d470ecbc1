"""A sink's path on disk: its manifest, its lock, its hidden names, and how a part gets its own.

```
out/                                       a folder
  .slackwater.json                           the manifest
  .slackwater.lock                           while a job writes
  part-00000001.parquet                      published: never changed or removed by us
  .part-00000002.parquet.4f1c….incomplete    being written, by the run of that token
rows.jsonl                                 a file, when it is whole
.rows.jsonl.slackwater.json, .rows.jsonl.slackwater.lock, .rows.jsonl.4f1c….incomplete
```
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from slackwater.actors.kernel.plain_files import private, read_plain
from slackwater.runtime.errors import SinkError
from slackwater.runtime.sinks.manifest import Manifest, Part
from slackwater.runtime.sinks.open_decision import ExistingOutput

__all__ = ["OutputPath", "make_folder", "sync"]

NAME = "slackwater"
_LEFTOVER = re.compile(r"\.(?P<shown>.+)\.(?P<token>[0-9a-f]{16})\.incomplete")
_PART = re.compile(r"part-\d+\.(parquet|jsonl)")
_MOST_BYTES = 1 << 30


class OutputPath:
    """The files of one output.

    Args:
        sink: its name, for the errors.
        path: a folder, or one file.
        kind: "parquet" or "jsonl".
        is_file: which of the two the path is.
        token: of this run.
    """

    def __init__(self, sink: str, path: Path, *, kind: str, is_file: bool, token: str) -> None:
        self._sink, self.path, self._kind, self._is_file = sink, path, kind, is_file
        self.token = token
        self.folder = path.parent if is_file else path
        prefix = f".{path.name}.{NAME}" if is_file else f".{NAME}"
        self.manifest_path = self.folder / f"{prefix}.json"
        self.lock_path = self.folder / f"{prefix}.lock"

    def part_name(self, number: int) -> str:
        """Return the name of a part, numbered from 1."""
        return self.path.name if self._is_file else f"part-{number:08d}.{self._kind}"

    def hidden(self, name: str, *, token: str | None = None) -> Path:
        """Return where a part is while it is made."""
        return self.folder / f".{name}.{token or self.token}.incomplete"

    def look(self) -> ExistingOutput:
        """Return what is there.

        Raises:
            SinkError: the manifest cannot be understood.
            OSError: it cannot be read.
        """
        manifest = self.read_manifest()
        shown = {path.name: path.lstat().st_size for path in self._shown()}
        hidden = {}
        if manifest is not None:
            for part in manifest.parts:
                path = self.hidden(part.name, token=manifest.run.token)
                if path.exists():
                    hidden[part.name] = path.stat().st_size
        return ExistingOutput(
            sink=self._sink,
            path=str(self.path),
            manifest=manifest,
            shown=shown,
            hidden=hidden,
        )

    def read_manifest(self) -> Manifest | None:
        """Return what lies there; None: nothing.

        Raises:
            SinkError: it cannot be understood.
            OSError: it cannot be read.
        """
        try:
            data = read_plain(self.manifest_path, most_bytes=_MOST_BYTES)
            return Manifest.from_json(json.loads(data))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise SinkError(
                f"sink {self._sink!r}: {self.manifest_path} cannot be understood "
                f"({type(problem).__name__}: {problem}): another version wrote it, or it is "
                "damaged; choose another path, or move the folder away"
            ) from problem

    def tidy(self, known: Manifest | None) -> list[str]:
        """Finish what the last run had committed, and remove what it had not; say what.

        Only hidden files with our own names are removed.
        """
        notes = []
        if known is not None:
            named = [
                part
                for part in known.parts
                if self.hidden(part.name, token=known.run.token).exists()
            ]
            if named or known.removing:
                self._show(named, known.removing, known.parts, token=known.run.token)
                notes.append(
                    f"gave {len(named)} part(s) that job {known.run.job!r} had committed their name"
                )
                if known.removing:
                    self.write_manifest(replace(known, removing=()))
        left = list(self._leftovers())
        for path in left:
            path.unlink(missing_ok=True)
        if left:
            notes.append(f"removed {len(left)} unfinished file(s) of an earlier run")
        return notes

    def commit(self, manifest: Manifest, new: Sequence[Part]) -> None:
        """Make parts belong to the output, and show them. They are synced already.

        Raises:
            SinkError: a name is taken by a file that is not ours.
            OSError: it was not possible; what the manifest that lies there then names is committed.
        """
        for part in new:
            if part.name not in manifest.removing and os.path.lexists(self.folder / part.name):
                raise SinkError(
                    f"sink {self._sink!r}: {self.folder / part.name} has appeared meanwhile, and "
                    "no manifest of ours names it; nothing touches it: move it away, or choose "
                    "another path, and submit again"
                )
        self.write_manifest(manifest)
        self._show(new, manifest.removing, manifest.parts, token=self.token)
        if manifest.removing:
            self.write_manifest(replace(manifest, removing=()))

    def write_manifest(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the older one, at once."""
        aside = self.manifest_path.with_name(f"{self.manifest_path.name}.{self.token}")
        try:
            with open(aside, "w", encoding="utf-8", opener=private) as file:
                json.dump(manifest.to_json(), file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.manifest_path)
        finally:
            aside.unlink(missing_ok=True)
        sync(self.folder)

    def _show(
        self,
        new: Sequence[Part],
        removing: Collection[str],
        parts: Collection[Part],
        *,
        token: str,
    ) -> None:
        """Remove what is replaced, then give what is new its name: never a mixture of both."""
        waiting = {part.name for part in new}
        stays = {part.name for part in parts} - waiting  # of the new, shown already
        for name in removing:
            if name not in stays and not self._is_file:  # one file is replaced by the renaming
                (self.folder / name).unlink(missing_ok=True)
        if removing:
            sync(self.folder)
        for part in new:
            self.hidden(part.name, token=token).replace(self.folder / part.name)
        sync(self.folder)

    def _shown(self) -> Iterator[Path]:
        if self._is_file:
            if os.path.lexists(self.path):
                yield self.path
            return
        for path in self.folder.glob(f"*.{self._kind}"):
            if not path.name.startswith((".", "_")):
                yield path

    def _leftovers(self) -> Iterator[Path]:
        for path in self.folder.iterdir():
            match = _LEFTOVER.fullmatch(path.name)
            if match is not None and match["token"] != self.token:
                shown = match["shown"]
                if shown == self.path.name if self._is_file else _PART.fullmatch(shown):
                    yield path
            stem, _, token = path.name.rpartition(".")
            ours = (self.manifest_path.name, self.lock_path.name)
            if stem in ours and re.fullmatch(r"[0-9a-f]{16}", token) and token != self.token:
                yield path


def make_folder(path: Path) -> None:
    """Make a folder, and what of its parents is missing, for our user; have their names on disk.

    Else what is synced in it may be lost with it, when the host loses its power.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    for one in missing:
        with suppress(PermissionError):  # of a parent that may be written and not read
            sync(one.parent)


def sync(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to its disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
