"""Share memory between two ends of a channel on one host, for long frames.

```
memory   | freed | ······ frame ▸ frame ▸ frame ······ |     the receiver copies each, and frees it
socket   ── short frame ── place of a long one ── … ──▶      both in one order
```

A Unix socket copies a frame five times, two of these in pieces of 200 kB, for each of which threads
of both processes wake. Here the sender copies it once, the receiver once, and pages are used again.
Where the memory has no room, a frame takes the socket, as all do on systems without such memory.

The memory has no name in a file system: a link beside the socket names the receiver's descriptor,
and goes with the socket. The kernel frees the memory with the last of the two processes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import platform
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.runtime.errors import FrameError

__all__ = ["LEAST_BYTES", "SharedIn", "SharedOut"]

LEAST_BYTES = 16 * 2**10
"""Shorter frames take the socket: a copy of them costs less than a look at the memory."""
RING_BYTES = 8 * 2**20
"""Room for frames: 131,072 rows (`Limits.credit_rows`) of 64 bytes. Pages that no frame has
reached do not exist."""
_FIRST = 64  # byte at which frames begin, after the count of freed bytes
_PLACE = struct.Struct("<4sQQ")  # magic, bytes before the frame since the start, its length
_MAGIC = b"SLKM"
_SEALS = 0x7  # no other size, and no other seal (F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW)
_IS_ORDERED = platform.machine() == "x86_64"
"""Whether a core writes in the order of the program: a frame is copied before it is freed."""


class _Shared:
    """Memory of a channel.

    Args:
        file: descriptor of the memory.
    """

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, _FIRST + RING_BYTES)
        self._freed = memoryview(self._memory)[:8].cast("Q")

    def close(self) -> None:
        """Release the memory. Idempotent."""
        self._freed.release()
        self._memory.close()


class SharedOut(_Shared):
    """The sender's end: it writes frames."""

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self._bytes: Any = np.frombuffer(self._memory, np.uint8)
        self._written = 0  # bytes since the start, with those that were skipped
        self._least_freed = 0

    @classmethod
    def at(cls, link: str) -> SharedOut | None:
        """Return the memory that a receiver has linked here; None if none."""
        try:
            file = os.open(link, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # Without these seals, writing would end the process if the memory were cut short.
            is_whole = os.fstat(file).st_size == _FIRST + RING_BYTES
            if not is_whole or fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
                return None
            return cls(file)
        except OSError:  # no such memory, or no room to map it
            return None
        finally:
            os.close(file)

    def put(self, parts: Sequence[Any], size: int) -> bytes | None:
        """Write a frame; return bytes that tell its place, None if it has no room.

        Args:
            parts: contiguous buffers of the frame.
            size: their length in bytes.
        """
        freed = max(self._freed[0], self._least_freed)
        start = self._written
        past = start % RING_BYTES
        is_empty = freed == start
        if past + size > RING_BYTES or (is_empty and past):
            start += RING_BYTES - past  # from the beginning again, whose pages are warm
        if is_empty:
            freed = start
        if start + size - freed > RING_BYTES:
            return None
        self._least_freed, self._written = freed, start + size
        at = _FIRST + start % RING_BYTES
        for part in parts:
            if length := memoryview(part).nbytes:
                self._bytes[at : at + length] = np.frombuffer(part, np.uint8)
                at += length
        return _PLACE.pack(_MAGIC, start, size)

    def close(self) -> None:
        """Release the memory. Idempotent."""
        self._bytes = None  # it would keep the memory from being closed
        super().close()


class SharedIn(_Shared):
    """The receiver's end: it makes the memory, and frees what it has read."""

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self._file: int | None = file

    @classmethod
    def made(cls, link: str) -> SharedIn | None:
        """Make memory, and link it here; return None if the system makes no such memory."""
        if not (_IS_ORDERED and hasattr(os, "memfd_create")):
            return None
        try:
            file = os.memfd_create("slackwater", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError:
            return None
        try:
            os.ftruncate(file, _FIRST + RING_BYTES)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
            # By the number that /proc has for this process: a container may have its own.
            os.symlink(f"/proc/{os.readlink('/proc/self')}/fd/{file}", link)
            return cls(file)
        except OSError:
            os.close(file)
            return None

    def is_linked(self) -> None:
        """Take note that the sender has been here: nothing else opens the memory."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def frame(self, came: bytes) -> bytes:
        """Return the frame that came by the socket, or of the place that came.

        Raises:
            FrameError: no frame can be there.
        """
        if len(came) != _PLACE.size or not came.startswith(_MAGIC):
            return came
        _, start, size = _PLACE.unpack(came)
        at = start % RING_BYTES
        if start < self._freed[0] or at + size > RING_BYTES:
            raise FrameError(f"{size} bytes at {start} of the shared memory are not a frame")
        frame = self._memory[_FIRST + at : _FIRST + at + size]
        self._freed[0] = start + size
        return frame

    def close(self) -> None:
        """Release the memory, also if no sender came. Idempotent."""
        self.is_linked()
        super().close()
