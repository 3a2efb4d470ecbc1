"""Append bytes to a file: all of them, or none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from slackwater.actors.kernel.plain_files import private
from slackwater.actors.sinks.output_path import PartChanged

__all__ = ["AppendedFile", "check_size"]


class AppendedFile:
    """File that grows at its end.

    Args:
        path: path of the file.
        at: bytes of it that stay; the rest is cut off. None if it begins afresh.

    Attributes:
        bytes: length of the file.

    Raises:
        PartChanged: the file is shorter than `at`.
    """

    def __init__(self, path: Path, at: int | None = None) -> None:
        self._path, self.bytes = path, at or 0
        self._file = private(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if at is None else 0))
        if at is not None:
            size = os.fstat(self._file).st_size
            if size < at:
                self.close()
                check_size(size, at)
            os.ftruncate(self._file, at)

    def append(self, *pieces: bytes | memoryview) -> None:
        """Append bytes, all or none.

        Raises:
            OSError: there is no room for them, or another program changed the file.
        """
        end = self.bytes
        check_size(os.fstat(self._file).st_size, end)
        try:
            for piece in pieces:
                data, written = memoryview(piece), 0
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], end + written)
                end += written
        except OSError:
            os.ftruncate(self._file, self.bytes)
            raise
        self.bytes = end

    def sync(self) -> int:
        """Have the system write the file to its disk; return its bytes.

        Raises:
            OSError: it could not, or another program changed the file.
        """
        check_size(os.fstat(self._file).st_size, self.bytes)
        os.fsync(self._file)
        return self.bytes

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file >= 0:
            number, self._file = self._file, -1
            os.close(number)

    def remove(self) -> None:
        """Close and remove the file, as far as the system lets us."""
        with suppress(OSError):
            self.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def check_size(size: int, expected: int) -> None:
    """Check that no other program has changed a file.

    After a cut the next write would leave zeros in between, and the size would be right again.

    Raises:
        PartChanged: the size is another.
    """
    if size != expected:
        raise PartChanged(
            "its part was changed by another program while it was written: it has "
            f"{size:,} bytes and had {expected:,}"
        )
