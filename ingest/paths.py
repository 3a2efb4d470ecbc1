"""Find the files of a path, a folder or a pattern."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from slackwater.runtime.errors import IngestError
from slackwater.runtime.nearest import choices
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown

_ENDS = 4_096
"""Bytes of a file's start and end that the digest reads: a second for ten thousand files."""


def files_of(pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the files in the order of their names; empty if nothing matches.

    Numbers in names count as numbers: part-2 is before part-10.

    Args:
        pattern: a file; a folder, which means all files below it with one of the suffixes, in
            either case, except `_…` and `.…` (Spark's leftovers); or a pattern with `*`, `?`,
            `[…]` and `**`.
        folder: start of a relative pattern.
        suffixes: suffixes of files in folders, such as ".parquet".
    """
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        return sorted(_below(path, suffixes), key=_in_order)
    if os.path.exists(path):
        return [path]
    names = (name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    return sorted(names, key=_in_order)


def start_of(pattern: str, *, folder: str) -> str:
    """Return the folder from which names of a pattern's files count.

    Args:
        pattern: pattern as for `files_of`.
        folder: start of a relative pattern.
    """
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        return path
    parts = os.path.dirname(path).split(os.sep)
    plain = parts if os.path.exists(path) else parts[: _plain_parts(parts)]
    return os.sep.join(plain) or os.sep


def passed_over(
    pattern: str, files: Sequence[str], *, folder: str, suffixes: tuple[str, ...]
) -> list[str]:
    """Return the files of the same folders that are not read.

    Of `_…` and `.…` files, and those in such folders, only data: to omit Spark's leftovers loses
    nothing.

    Args:
        pattern: pattern as for `files_of`.
        files: files that are read.
        folder: start of a relative pattern.
        suffixes: endings of names of data files.
    """
    path, read = os.path.join(folder, pattern), set(files)
    if os.path.isdir(path):
        start = path
        there = [
            os.path.join(parent, entry) for parent, _, names in os.walk(path) for entry in names
        ]
    elif os.path.exists(path) or not files:
        return []
    else:
        above = os.path.dirname(path)
        parts = above.split(os.sep)
        start = os.sep.join(parts[: _plain_parts(parts)])
        parents = glob.iglob(above, recursive=True, include_hidden=True)
        there = [
            each.path
            for parent in {os.path.join(entry, "") for entry in parents if os.path.isdir(entry)}
            for each in os.scandir(parent)
            if each.is_file()
        ]
    others = [
        entry
        for entry in there
        if entry not in read
        and (entry.lower().endswith(suffixes) or not _has_hidden(entry.removeprefix(start)))
    ]
    return sorted(others, key=_in_order)


def _has_hidden(path: str) -> bool:
    return any(map(_is_hidden, path.split(os.sep)))


def _in_order(path: str) -> tuple[list[list[str | int]], str]:
    # Numbers in names count as numbers, so text and numbers are kept apart.
    parts = [re.split("([0-9]+)", part) for part in path.split(os.sep)]
    return [[int(p) if p.isdecimal() else p for p in part] for part in parts], path


def no_files(what: str, pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> IngestError:
    """Return the error for a pattern without files; it names the files there."""
    existing, missing = os.path.join(folder, pattern), ""
    while not os.path.isdir(existing) and os.path.dirname(existing) != existing:
        existing, missing = os.path.split(existing)
    names = sorted(os.listdir(existing))
    if not missing:
        rule = f"the folder has no file that ends in {' or '.join(suffixes)}"
    else:
        rule = f"{existing} has nothing like {missing!r}"
    if names:
        rule += f"; {choices(missing or suffixes[0], names)}"
    return IngestError(
        f"{what}: no file matches {shown(pattern)} on this node: {rule}; files must be where the "
        "source runs: use a path that every node has"
    )


def print_of(files: Sequence[str]) -> tuple[str, str]:
    """Return a description and a digest of files.

    The digest has each file's path, size, time of change, and its first and last bytes: a parquet
    file has the statistics of all its columns at its end. A change in the middle of a file with the
    old size and time is not noticed; a copy is (its time differs).

    Raises:
        OSError: a file cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    for path in files:
        content = content_of(path)
        size += content.size
        facts = (os.path.realpath(path), content.size, content.changed_ns, content.ends)
        digest.update(repr(facts).encode(errors="surrogatepass"))
    count = count_of(len(files), "file")
    return f"{count} of {size:,} bytes", digest.hexdigest()


class Content(NamedTuple):
    """Content of a file, as far as it is looked at.

    Attributes:
        size: bytes.
        ends: digest of its first and last bytes.
        changed_ns: time of its last change.
    """

    size: int
    ends: str
    changed_ns: int


def content_of(path: str) -> Content:
    """Look at a file.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        ends = hashlib.sha256(file.read(_ENDS))
        file.seek(max(status.st_size - _ENDS, 0))
        ends.update(file.read(_ENDS))
    return Content(status.st_size, ends.hexdigest(), status.st_mtime_ns)


def overlap(pattern: str, part: str, *, folder: str, suffixes: tuple[str, ...]) -> str | None:
    """Return the path or pattern that would match a file to come; None if none.

    Args:
        pattern: pattern as for `files_of`.
        part: a file that will be written, with others in its folder.
        folder: start of a relative pattern.
        suffixes: suffixes of files in folders.
    """
    part = os.path.realpath(part)
    target, name = os.path.split(part)
    for path in files_of(pattern, folder=folder, suffixes=suffixes):
        real = os.path.realpath(path)
        is_ours = os.path.dirname(real) == target and real.endswith(os.path.splitext(name)[1])
        if real == part or (is_ours and os.path.basename(real).startswith("part-")):
            return path
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        inside = os.path.relpath(part, os.path.realpath(path)).split(os.sep)
        hidden = any(map(_is_hidden, inside))  # also "..": outside
        return None if hidden or not name.lower().endswith(suffixes) else pattern
    return pattern if _matches(path, part) else None


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern with `*`, `?`, `[…]` and `**` would match a future file."""
    parts = os.path.abspath(pattern).split(os.sep)
    plain = _plain_parts(parts)
    parts = os.path.realpath(os.sep.join(parts[:plain]) or os.sep).split(os.sep) + parts[plain:]
    return _fits([part for part in parts if part], [part for part in path.split(os.sep) if part])


def _plain_parts(parts: list[str]) -> int:
    """Return the number of parts before the first with a sign of patterns."""
    return next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))


def _fits(parts: list[str], names: list[str]) -> bool:
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**":
        return _fits(parts[1:], names) or _fits(parts, names[1:])
    is_named = fnmatch.fnmatchcase(names[0], parts[0])
    return is_named and _fits(parts[1:], names[1:])


def _below(path: str, suffixes: tuple[str, ...]) -> list[str]:
    paths: list[str] = []
    for parent, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        paths += [
            os.path.join(parent, name)
            for name in names
            if name.lower().endswith(suffixes) and not _is_hidden(name)
        ]
    return paths


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
