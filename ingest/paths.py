"""Which files a path, a folder or a pattern means."""

from __future__ import annotations

import glob
import os

from runtime.errors import IngestError
from runtime.flow.nearest import listed, nearest


def files_of(pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the files, sorted by name; none where nothing matches.

    Args:
        pattern: a file; a folder, which means all below it with one of the suffixes, those
            named `_…` or `.…` apart (what Spark leaves behind); or a pattern with `*`, `?`, `[…]`
            and `**`.
        folder: where a relative pattern starts.
        suffixes: of files in folders, such as ".parquet".
    """
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        return sorted(_below(path, suffixes))
    if os.path.exists(path):
        return [path]
    return sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))


def no_files(what: str, pattern: str, *, folder: str, suffixes: tuple[str, ...]) -> IngestError:
    """Return the error for a pattern without files: says what there is instead."""
    if "://" in pattern:
        return IngestError(
            f"{what}: {pattern!r} is not on a file system of this node; read it through Spark"
        )
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
