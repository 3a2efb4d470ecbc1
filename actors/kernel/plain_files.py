"""Write files for our user alone; read files of unknown origin with care."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "free_room",
    "make_folder",
    "no_folder_at",
    "private",
    "read_plain",
    "sync",
    "whole_file",
]


def private(path: str | Path, flags: int) -> int:
    """Open a file with mode 0600 if new; an `opener` for Python's `open`."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


@contextmanager
def whole_file(
    path: Path, *, hidden: Path, is_synced: bool = True, spare: Path | None = None
) -> Iterator[BinaryIO]:
    """Write a private file, whole or not at all.

    Args:
        path: path of the file once it is whole; a file there is replaced.
        hidden: path of the file until then, in the same folder, of no other writer.
        is_synced: whether a power cut leaves the old file or the new one, too.
        spare: a file that is not needed any more, if it is there: it is written over. The system
            has memory and blocks for it already, and finding others takes most of a write's time.

    Raises:
        OSError: the system refuses; then no file stays at `hidden`.
    """
    try:
        with _writable(hidden, spare) as file:
            yield file
            file.truncate()  # what a spare file has after that
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
    if is_synced:
        sync(path.parent)


def _writable(path: Path, spare: Path | None) -> BinaryIO:
    """Return a file to be written from its beginning: new, or one that is spare."""
    if spare is not None:
        with suppress(OSError):
            spare.rename(path)
            descriptor = private(path, os.O_WRONLY | os.O_CLOEXEC)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:  # no other name has it
                return os.fdopen(descriptor, "wb")
            os.close(descriptor)
            path.unlink()
    return open(path, "wb", opener=private)


def read_plain(path: Path, *, most_bytes: int, is_own: bool = False) -> bytes:
    """Return the contents of a file; takes no longer than reading `most_bytes` does.

    Args:
        path: path of a regular file; with `is_own`, of our own user's, and not by a symbolic link.
        most_bytes: longest file that is read.
        is_own: whether the file must belong to our own user.

    Raises:
        OSError: the file cannot be read, or is not such a file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if is_own else 0)
    descriptor = os.open(path, flags)  # not blocking: a pipe would wait for its writer
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if is_own and status.st_uid != os.geteuid():
            raise OSError(f"{path} is of user {status.st_uid}, not of ours")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"{path} is longer than {most_bytes:,} bytes")
    return data


def make_folder(path: Path) -> None:
    """Make a private folder and its missing parents; sync their names to disk.

    Else a power failure could lose the folder with its synced files.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    for folder in missing:
        with suppress(PermissionError):  # a parent that may be written but not read
            sync(folder.parent)


def sync(path: Path) -> None:
    """Have the system write a file, or a folder's names, to its disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def free_room(folder: Path) -> tuple[int, bool]:
    """Return a folder's free bytes, and whether it can hold more files.

    Raises:
        OSError: the folder cannot be looked at.
    """
    room = os.statvfs(folder)
    has_inodes = room.f_favail > 0 or room.f_files == 0  # 0 of 0: they are not counted
    return room.f_bavail * room.f_frsize, has_inodes


def no_folder_at(path: Path) -> str | None:
    """Return the lowest existing one of a folder and its parents, if no folder."""
    lowest = next((folder for folder in (path, *path.parents) if os.path.lexists(folder)), None)
    return None if lowest is None or lowest.is_dir() else str(lowest)
