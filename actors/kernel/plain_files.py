"""Open files for our user alone; read files of unknown origin with care."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["private", "read_plain"]


def private(path: str | Path, flags: int) -> int:
    """Open a file with mode 0600 if new; an `opener` for Python's `open`."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


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
