"""Write a slot's part of a checkpoint to an Arrow file; read it back.

```
SlotPart ──pack──▶ Arrow record ──▶ .….incomplete ──fsync──▶ rename ──fsync of the folder──▶ entry
```
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from slackwater.actors.checkpoints.file_names import hidden_path, part_name, spare_path
from slackwater.actors.checkpoints.refusals import refusals
from slackwater.actors.kernel.plain_files import whole_file
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.recovery.checkpoint import SlotPart
from slackwater.runtime.recovery.manifest import ChannelEntry, PartEntry
from slackwater.runtime.recovery.packed import pack, unpack
from slackwater.runtime.shown import in_words

__all__ = ["check_part", "read_part", "write_part"]

_CHUNK_BYTES = 1 << 22


def write_part(folder: Path, part: SlotPart) -> PartEntry:
    """Write a part, whole and synced, or not at all; return its entry.

    Args:
        folder: folder of the checkpoints, which the job has made (`take_lock`).
        part: part of a slot.

    Raises:
        CheckpointError: the system refuses, such as on a full disk; no file stays.
        TypeError: the part has values that are not plain.
    """
    record = pack(part._asdict())
    channels = {channel: _channel_entry(own) for channel, own in part.messages.items()}
    name = part_name(part.number, part.slot)
    hidden, spare = hidden_path(folder, name), spare_path(folder, part.slot)
    what = f"checkpoint {part.number} of slot {part.slot!r} could not be written to"
    with refusals(what, folder), whole_file(folder / name, hidden=hidden, spare=spare) as file:
        checked = _Checked(file)
        _write(record, checked)
    return PartEntry(
        slot=part.slot,
        file=name,
        bytes=checked.bytes,
        crc=checked.crc,
        version=part.state["version"],
        stages=tuple(part.state["stream"]["stages"]),
        channels=channels,
    )


def read_part(folder: Path, entry: PartEntry) -> SlotPart:
    """Return a part that was written, once its bytes are known to be whole.

    Args:
        folder: folder of the checkpoints.
        entry: entry of the part in the manifest.

    Raises:
        CheckpointError: the file is missing or damaged, or the system refuses to read it.
    """
    what = f"the part of slot {entry.slot!r} could not be read from"
    with refusals(what, folder), open(folder / entry.file, "rb", opener=_reading) as file:
        if (problem := _wrong_size(file, entry)) is not None:
            raise _damaged(folder, entry, problem)
        data = np.empty(entry.bytes, np.uint8)
        size = file.readinto(data.data)
    if size != entry.bytes or zlib.crc32(data.data) != entry.crc:
        raise _damaged(folder, entry, "it has other contents than were written")
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            return SlotPart(**unpack(reader.get_batch(0)))
    except (ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as other:
        raise _damaged(folder, entry, in_words(other)) from other


def check_part(folder: Path, entry: PartEntry, *, reads: bool = True) -> str | None:
    """Return what is wrong with a part's file, in words; None if it is whole.

    Args:
        folder: folder of the checkpoints.
        entry: entry of the part in the manifest.
        reads: whether to read its contents; else its size decides.

    Raises:
        FileNotFoundError: it is missing.
        OSError: it cannot be read.
    """
    with open(folder / entry.file, "rb", opener=_reading) as file:
        if (problem := _wrong_size(file, entry)) is not None:
            return problem
        if not reads:
            return None
        crc, chunk = 0, memoryview(bytearray(_CHUNK_BYTES))
        while size := file.readinto(chunk):
            crc = zlib.crc32(chunk[:size], crc)
    return None if crc == entry.crc else "it has other contents than were written"


def _reading(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would wait for a writer


def _wrong_size(file: BinaryIO, entry: PartEntry) -> str | None:
    size = os.fstat(file.fileno()).st_size
    return None if size == entry.bytes else f"it has {size:,} bytes and had {entry.bytes:,}"


def _damaged(folder: Path, entry: PartEntry, problem: str) -> CheckpointError:
    return CheckpointError(
        f"{folder / entry.file}, the part of slot {entry.slot!r}, is damaged: {problem}; go on "
        "from an older checkpoint"
    )


def _write(record: pa.RecordBatch, file: _Writable) -> None:
    with (
        pa.PythonFile(file, mode="w") as stream,
        pa.ipc.new_file(stream, record.schema) as writer,
    ):
        writer.write_batch(record)


class _Writable(Protocol):
    def write(self, data: Any) -> int: ...


class _Checked:
    """File, or nothing, that keeps a checksum of what is written to it."""

    closed = False

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file, self.crc, self.bytes = file, 0, 0

    def write(self, data: Any) -> int:
        whole = memoryview(data)
        if self._file is not None:
            self._file.write(whole)
        self.crc = zlib.crc32(whole, self.crc)
        self.bytes += whole.nbytes
        return whole.nbytes

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def _channel_entry(messages: Sequence[Any]) -> ChannelEntry:
    """Return the entry of a channel's plain messages."""
    rows = sum(len(own["batch"]["event_time_ns"]) for own in messages if own["batch"] is not None)
    checked = _Checked()
    _write(pack(messages), checked)
    return ChannelEntry(messages=len(messages), rows=rows, crc=checked.crc)
