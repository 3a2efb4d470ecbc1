"""Commit checkpoints in a folder, find the newest that can be used, remove older ones.

```
parts of all slots ──▶ commit: the manifest, by a rename ──▶ newest: sizes and hashes ──▶ read_part
```

One job writes to a folder (`take_lock`), its slots through the parts' own names. What no manifest
names has never been a checkpoint.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from slackwater.actors.checkpoints.file_names import (
    LOCK,
    OwnFile,
    hidden_path,
    manifest_name,
    own_files,
    spare_path,
)
from slackwater.actors.checkpoints.part_files import check_part
from slackwater.actors.checkpoints.refusals import refusals
from slackwater.actors.checkpoints.spool import remove_spools, rename_spools, spool_bytes
from slackwater.actors.kernel.plain_files import (
    make_folder,
    private,
    read_plain,
    sync,
    whole_file,
)
from slackwater.actors.sinks.lock import Lock, here_as
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.json_form import json_bytes
from slackwater.runtime.plan.division import UNDIVIDED, Division
from slackwater.runtime.recovery.manifest import (
    FORMAT,
    CheckpointFacts,
    CheckpointManifest,
    Newest,
    PartEntry,
    Refusal,
    other_format,
    refusal,
    superseded,
)
from slackwater.runtime.shown import in_words
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.output import HasEnded

__all__ = [
    "commit",
    "division_in",
    "keep_out_of_git",
    "newest",
    "next_number",
    "prune",
    "remove",
    "remove_newer",
    "size",
    "spool_size",
    "take_lock",
]

_MOST_BYTES = 1 << 28
_IGNORE, _IGNORES_ALL = ".gitignore", b"*\n"


def take_lock(folder: Path, *, job: str, flow: str, has_ended: HasEnded) -> tuple[Lock, str | None]:
    """Make and lock a folder; return the lock, and a note.

    The note is on its earlier holder; None if it was free.

    Args:
        folder: folder of the checkpoints.
        job: id of the job.
        flow: name of its flow.
        has_ended: returns whether the end of another holder's job is on record.

    Raises:
        CheckpointError: another job holds the lock, and may still write, or the system refuses.
    """
    holder = here_as("", SinkRun(job=job, flow=flow), since_ns=time.time_ns())
    lock = Lock(folder / LOCK, holder, has_ended=has_ended, error=CheckpointError)
    with refusals("checkpoints cannot be kept in", folder):
        make_folder(folder)
        return lock, lock.take()


def next_number(folder: Path) -> int:
    """Return a number above those of all checkpoints, complete or not; 1 if empty.

    Raises:
        CheckpointError: the system refuses to look.
    """
    with refusals("checkpoints could not be looked for in", folder):
        return max((file.number for file in _files(folder)), default=0) + 1


def commit(
    folder: Path, number: int, entries: Iterable[PartEntry], facts: CheckpointFacts
) -> CheckpointManifest:
    """Make a checkpoint complete: write its manifest, whole and synced, or not at all.

    Args:
        folder: folder of the checkpoints, where the parts are.
        number: number of the checkpoint.
        entries: entries of the parts of all slots.
        facts: facts of the job; their values are those of JSON.

    Raises:
        CheckpointError: there is a manifest of that number, a part is not there, or the system
            refuses.
    """
    parts = tuple(sorted(entries, key=lambda entry: entry.slot))
    manifest = CheckpointManifest(number=number, facts=facts, parts=parts)
    name = manifest_name(number)
    with refusals(f"checkpoint {number} could not be completed in", folder):
        for part in parts:
            if (problem := _problem(folder, part, reads=False)) is not None:
                raise CheckpointError(
                    f"checkpoint {number} cannot be completed: {problem[1]}; give a folder that "
                    "all nodes share, and that no other program changes"
                )
        if os.path.lexists(folder / name):
            raise CheckpointError(
                f"checkpoint {number} is in {folder} already; give another number (next_number)"
            )
        with whole_file(folder / name, hidden=hidden_path(folder, name)) as file:
            file.write(json_bytes(manifest.to_json()))
    return manifest


def newest(
    folder: Path,
    facts: CheckpointFacts,
    *,
    version: int,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Newest:
    """Return the newest checkpoint that a job can go on from, whose files are whole.

    All bytes of its parts are read.

    Args:
        folder: folder of the checkpoints; it need not exist.
        facts: facts of the job that is to go on.
        version: version of slots' snapshots that this release reads.
        renamed: steps that the user has renamed, {old: new}.

    Raises:
        CheckpointError: the system refuses to look into the folder.
    """
    refused: list[Refusal] = []
    with refusals("checkpoints could not be looked for in", folder):
        manifests = [file for file in _files(folder) if file.is_manifest]
    for file in sorted(manifests, key=lambda file: -file.number):
        manifest = _read(file)
        problem = (
            manifest
            if isinstance(manifest, Refusal)
            else refusal(manifest, facts, version=version, renamed=renamed)
            or _not_whole(folder, manifest)
        )
        if problem is None:
            assert isinstance(manifest, CheckpointManifest)
            return Newest(manifest, tuple(refused))
        refused.append(problem)
    return Newest(None, tuple(refused))


def prune(
    folder: Path,
    flow: str,
    *,
    refers: Collection[int] = (),
    writing: Collection[int] = (),
) -> list[str]:
    """Remove a flow's older checkpoints, and what dead writers left; return names of files.

    The newest complete three stay, and whatever is another flow's or another version's. Of each
    slot a part that goes becomes its spare file.

    Args:
        folder: folder of the checkpoints, whose lock is ours.
        flow: name of the flow.
        refers: numbers that a source or a sink still refers to.
        writing: numbers of checkpoints that slots may be writing now.

    Raises:
        CheckpointError: the system refuses.
    """
    with refusals("checkpoints could not be removed from", folder):
        files, manifests = _contents(folder)
        going = _going(folder, manifests, flow, refers)
        spares = _spares(folder, manifests, going, flow)
        gone = [
            file
            for file in files
            if (
                file.path not in spares.values()
                if file.is_spare
                else file.number in going
                if file.number in manifests
                else file.number not in writing
            )
            or _is_stray(file, manifests, flow)
        ]
        _unlink(folder, gone, spares)
    return [file.path.name for file in gone]


def remove(folder: Path, flow: str) -> None:
    """Remove all checkpoints of a flow, and its spooled rows: its job is done.

    Args:
        folder: folder of the checkpoints, whose lock is ours.
        flow: name of the flow.

    Raises:
        CheckpointError: the system refuses.
    """
    with refusals("checkpoints could not be removed from", folder):
        files, manifests = _contents(folder)
        others = {
            number
            for number, manifest in manifests.items()
            if isinstance(manifest, Refusal) or manifest.facts.flow != flow
        }
        _unlink(folder, [file for file in files if file.number not in others])
        remove_spools(folder, flow)


def remove_newer(folder: Path, flow: str, number: int) -> None:
    """Remove a flow's checkpoints after one: its job goes back there, and cuts its outputs.

    Args:
        folder: folder of the checkpoints, whose lock is ours.
        flow: name of the flow.
        number: number of the checkpoint that the job goes back to.

    Raises:
        CheckpointError: the system refuses.
    """
    with refusals("checkpoints could not be removed from", folder):
        files, manifests = _contents(folder)
        gone = {
            n
            for n, manifest in manifests.items()
            if n > number
            and isinstance(manifest, CheckpointManifest)
            and manifest.facts.flow == flow
        }
        _unlink(folder, [file for file in files if file.number in gone])


def keep_out_of_git(folder: Path) -> None:
    """Let git ignore a folder by default, with its parent, as venv does."""
    with suppress(OSError), open(folder.parent / _IGNORE, "xb", opener=private) as file:
        file.write(_IGNORES_ALL)


def remove_empty(folder: Path) -> None:
    """Remove a folder that the user has not named, if it is empty.

    Args:
        folder: folder of checkpoints, whose lock is released. Its parent goes with it, if empty.
    """
    with suppress(OSError):  # something is in it
        folder.rmdir()
    with suppress(OSError):
        ignore = folder.parent / _IGNORE
        if os.listdir(folder.parent) == [_IGNORE] and ignore.read_bytes() == _IGNORES_ALL:
            ignore.unlink()
        folder.parent.rmdir()


def rename(folder: Path, flow: str, names: Mapping[str, str]) -> None:
    """Let sources of a flow that were renamed find what they keep beside its checkpoints.

    Args:
        folder: folder of the checkpoints, whose lock is ours.
        flow: name of the flow.
        names: new names of sources, {old: new}; others are passed over.

    Raises:
        CheckpointError: the system refuses.
    """
    with refusals("spools of renamed sources could not be renamed in", folder):
        rename_spools(folder, flow, names)


def division_in(folder: Path, flow: str) -> Division:
    """Return the division of a flow's steps at its newest checkpoint that can be read.

    Args:
        folder: folder of the checkpoints; it need not exist.
        flow: name of the flow.
    """
    with suppress(OSError):
        manifests = [file for file in _files(folder) if file.is_manifest]
        for file in sorted(manifests, key=lambda file: -file.number):
            manifest = _read(file)
            if isinstance(manifest, CheckpointManifest) and manifest.facts.flow == flow:
                return manifest.division
    return UNDIVIDED


def size(folder: Path) -> int:
    """Return the bytes of checkpoints in a folder; 0 without a folder.

    Raises:
        CheckpointError: the system refuses to look.
    """
    with refusals("checkpoints could not be looked for in", folder):
        return sum(file.bytes for file in _files(folder))


def spool_size(folder: Path, flow: str) -> int:
    """Return the bytes of a flow's spooled rows in a folder; 0 without a folder.

    Raises:
        CheckpointError: the system refuses to look.
    """
    with refusals("spooled rows could not be looked for in", folder):
        return spool_bytes(folder, flow)


def _files(folder: Path) -> list[OwnFile]:
    with suppress(FileNotFoundError):
        return own_files(folder)
    return []


def _contents(
    folder: Path,
) -> tuple[list[OwnFile], dict[int, CheckpointManifest | Refusal]]:
    """Return the files of checkpoints in a folder, and their manifests by number."""
    files = _files(folder)
    return files, {file.number: _read(file) for file in files if file.is_manifest}


def _spares(
    folder: Path,
    manifests: Mapping[int, CheckpointManifest | Refusal],
    going: Collection[int],
    flow: str,
) -> dict[str, Path]:
    """Return paths of spare files, by parts that become one: of slots that go on."""
    own = {
        number: manifest
        for number, manifest in manifests.items()
        if isinstance(manifest, CheckpointManifest) and manifest.facts.flow == flow
    }
    stay = own.keys() - going
    slots = {part.slot for part in own[max(stay)].parts} if stay else set[str]()
    parts = [part for number in sorted(own) for part in own[number].parts if part.slot in slots]
    return {part.file: spare_path(folder, part.slot) for part in parts}


def _unlink(
    folder: Path,
    files: Collection[OwnFile],
    spares: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """Remove files, manifests first: without one, a checkpoint is not complete.

    Args:
        folder: folder of the checkpoints.
        files: files of checkpoints that are removed.
        spares: {name of a file: path at which it stays as a spare file}.
    """
    for file in sorted(files, key=lambda file: not file.is_manifest):
        if (spare := spares.get(file.path.name)) is None:
            file.path.unlink(missing_ok=True)
        else:
            with suppress(FileNotFoundError):
                file.path.rename(spare)
    if files:
        sync(folder)


def _read(file: OwnFile) -> CheckpointManifest | Refusal:
    """Return the manifest of a file, or why it cannot be used."""
    number = file.number
    try:
        plain = json.loads(read_plain(file.path, most_bytes=_MOST_BYTES))
        if plain["slackwater_checkpoint"] != FORMAT:
            return other_format(number, plain)
        manifest = CheckpointManifest.from_json(plain)
        if manifest.number != number:
            raise ValueError(f"it says that it is of checkpoint {manifest.number}")
    except (*_NOT_OURS, OSError) as problem:
        return Refusal(
            number, "damaged", f"checkpoint {number}: {file.path} is damaged ({in_words(problem)})"
        )
    return manifest


_NOT_OURS = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError),
    *(OverflowError, RecursionError),
)
"""Errors of reading bytes that are not a manifest."""


def _not_whole(folder: Path, manifest: CheckpointManifest, *, reads: bool = True) -> Refusal | None:
    """Return the refusal of a checkpoint with a part that is missing or damaged."""
    for part in manifest.parts:
        if (problem := _problem(folder, part, reads=reads)) is not None:
            kind, reason = problem
            number = manifest.number
            return Refusal(number, kind, f"checkpoint {number}: {reason}")
    return None


def _problem(
    folder: Path, part: PartEntry, *, reads: bool
) -> tuple[Literal["damaged", "missing"], str] | None:
    where = f"{folder / part.file}, the part of slot {part.slot!r},"
    try:
        problem = check_part(folder, part, reads=reads)
    except FileNotFoundError:
        return "missing", f"{where} is missing"
    except OSError as refused:
        return "damaged", f"{where} cannot be read ({in_words(refused)})"
    return None if problem is None else ("damaged", f"{where} is damaged: {problem}")


def _going(
    folder: Path,
    manifests: Mapping[int, CheckpointManifest | Refusal],
    flow: str,
    refers: Collection[int],
) -> set[int]:
    complete: set[int] = set()
    damaged: set[int] = set()
    for number, manifest in manifests.items():
        if isinstance(manifest, Refusal):
            damaged |= {number} if manifest.kind == "damaged" else set()
        elif manifest.facts.flow == flow:
            is_whole = _not_whole(folder, manifest, reads=False) is None
            (complete if is_whole else damaged).add(number)
    return superseded(complete, damaged, refers)


def _is_stray(
    file: OwnFile, manifests: Mapping[int, CheckpointManifest | Refusal], flow: str
) -> bool:
    """Whether a file is not part of its checkpoint, which is complete and the flow's."""
    manifest = manifests.get(file.number)
    if file.is_manifest or not isinstance(manifest, CheckpointManifest):
        return False
    names = {part.file for part in manifest.parts}
    return manifest.facts.flow == flow and file.path.name not in names
