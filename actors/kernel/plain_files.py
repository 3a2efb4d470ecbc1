"""Files of ours, for our user alone; and those that others may have put there, read with care."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["private", "read_plain"]


def private(path: str | Path, flags: int) -> int:
    """Open a file that, if it is new, only our user may read: an `opener` of Python's `open`."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def read_plain(path: Path, *, most_bytes: int, is_own: bool = False) -> bytes:
    """Return what is in a file. It takes no longer than reading `most_bytes` does.

    Args:
        path: of a regular file; with `is_own`, of our own user's, and not by a symbolic link.
        most_bytes: a longer file is not read.
        is_own: whether nobody else may have written it.

    Raises:
        OSError: it cannot be read, or is not such a file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if is_own else 0)
    descriptor = os.open(path, flags)  # not blocking: a pipe would keep us till somebody writes
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no regular file")
        if is_own and found.st_uid != os.geteuid():
            raise OSError(f"{path} is of user {found.st_uid}, not of ours")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"{path} is longer than {most_bytes:,} bytes")
    return data
