"""Which files a path, a folder or a pattern means."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
from collections.abc import Sequence

from slackwater.runtime.errors import IngestError
from slackwater.runtime.expressions.nearest import listed, nearest

_ENDS = 4_096
"""Bytes of a file's beginning and end that count: for ten thousand files, a second."""


def files_of(pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the files in the order of their names; none where nothing matches.

    Numbers in names count as numbers: part-2 is before part-10.

    Args:
        pattern: a file; a folder, which means all below it with one of the suffixes, those
            named `_…` or `.…` apart (what Spark leaves behind); or a pattern with `*`, `?`, `[…]`
            and `**`.
        folder: where a relative pattern starts.
        suffixes: of files in folders, such as ".parquet".
    """
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        return sorted(_below(path, suffixes), key=_in_order)
    if os.path.exists(path):
        return [path]
    found = (name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    return sorted(found, key=_in_order)


def _in_order(path: str) -> tuple[list[list[str | int]], str]:
    """Return what orders paths: folder by folder, text and numbers apart."""
    parts = [re.split("([0-9]+)", part) for part in path.split(os.sep)]
    return [[int(p) if p.isdecimal() else p for p in part] for part in parts], path


def no_files(what: str, pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> IngestError:
    """Return the error for a pattern without files: says what there is instead."""
    existing, missing = os.path.join(folder, pattern), ""
    while not os.path.isdir(existing) and os.path.dirname(existing) != existing:
        existing, missing = os.path.split(existing)
    names = sorted(os.listdir(existing))
    if not missing:
        rule = f"the folder has no file that ends in {' or '.join(suffixes)}"
    else:
        rule = f"{existing} has nothing like {missing!r}"
    if names:
        meant = nearest(missing or suffixes[0], names)
        rule += f"; the nearest there is {meant!r}, of: {listed(names)}"
    return IngestError(
        f"{what}: no file matches {pattern!r} on this node: {rule}. Files must be where the "
        "source runs: use a path that every node has"
    )


def print_of(files: Sequence[str]) -> tuple[str, str]:
    """Return what files are, in words and as a digest.

    Of each its path, size, time of change, and its first and last bytes: a parquet file has the
    statistics of all its columns at its end. Who changes the middle of a file and puts back
    its size and its time is not found out; who only copies it is (its time is another).

    Raises:
        OSError: one cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    for path in files:
        with open(path, "rb") as file:
            known = os.fstat(file.fileno())
            size += known.st_size
            ends = hashlib.sha256(file.read(_ENDS))
            file.seek(max(known.st_size - _ENDS, 0))
            ends.update(file.read(_ENDS))
        told = (os.path.realpath(path), known.st_size, known.st_mtime_ns, ends.hexdigest())
        digest.update(repr(told).encode(errors="surrogatepass"))
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    return f"{count} of {size:,} bytes", digest.hexdigest()


def overlap(pattern: str, part: str, *, folder: str, suffixes: tuple[str, ...]) -> str | None:
    """Return what a pattern has in common with the place of a file to come; None: nothing.

    Args:
        pattern: as for `files_of`.
        part: a file that will be written, with others in its folder.
        folder: where a relative pattern starts.
        suffixes: of files in folders.
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
        hidden = any(one.startswith((".", "_")) for one in inside)  # ".." too: it is not inside
        return None if hidden or not name.endswith(suffixes) else pattern
    return pattern if _matches(path, part) else None


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern with `*`, `?`, `[…]` and `**` would find a file that is not there yet."""
    parts = os.path.abspath(pattern).split(os.sep)
    plain = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    parts = os.path.realpath(os.sep.join(parts[:plain]) or os.sep).split(os.sep) + parts[plain:]
    return _fits([part for part in parts if part], [part for part in path.split(os.sep) if part])


def _fits(parts: list[str], names: list[str]) -> bool:
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**":
        return _fits(parts[1:], names) or _fits(parts, names[1:])
    is_named = fnmatch.fnmatchcase(names[0], parts[0])
    return is_named and _fits(parts[1:], names[1:])


def _below(path: str, suffixes: tuple[str, ...]) -> list[str]:
    found = []
    for parent, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        found += [
            os.path.join(parent, name)
            for name in names
            if name.endswith(suffixes) and not name.startswith(("_", "."))
        ]
    return found
