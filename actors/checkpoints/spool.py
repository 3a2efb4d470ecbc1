"""Keep rows of an input that is read once in files, beside a job's checkpoints.

```
folder/
  checkpoint-00000007.json
  spool.4f1c….fixes.90ab….00000012.rows     flow, source, number
  spool.4f1c….fixes.90ab….00000013.rows     being written; its head says where file 12 ends
```

Each opening begins a file. By that an earlier writer, such as a process that was stopped and
replaced, is shut out: it looks for the next file after each record. A record that it writes after
that is handed to no slot, and lies beyond the end that the next file's head gives.

A process that is killed loses no record. A power cut may lose those since the last `sync`.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from slackwater.actors.checkpoints.file_names import for_people
from slackwater.actors.kernel.plain_files import private, sync
from slackwater.actors.sinks.appended_file import AppendedFile
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.spool_records import (
    DamagedSpool,
    Head,
    Kind,
    Place,
    Record,
    pack,
    unpack,
)

__all__ = ["Spool", "SpoolName", "remove_spools", "rename_spools", "spool_bytes"]


class SpoolName(NamedTuple):
    """Name of a spool in a folder of checkpoints.

    Attributes:
        folder: folder of the checkpoints.
        flow: name of the flow.
        source: name of the source.
    """

    folder: Path
    flow: str
    source: str

    @property
    def _start(self) -> str:
        return f"{_start_of(self.flow)}{for_people(self.source)}.{_digest(self.source)}."

    def path(self, number: int) -> Path:
        """Return the path of a file."""
        return self.folder / f"{self._start}{number:08d}.rows"

    def sizes(self) -> dict[int, int]:
        """Return the sizes of the files that are there, {number: bytes}, in order.

        Raises:
            OSError: the folder cannot be looked at.
        """
        pattern = re.compile(re.escape(self._start) + r"(\d{8,})\.rows")
        matches = filter(None, map(pattern.fullmatch, os.listdir(self.folder)))
        return {n: os.lstat(self.path(n)).st_size for n in sorted(int(m[1]) for m in matches)}


def spool_bytes(folder: Path, flow: str) -> int:
    """Return the bytes of all spools of a flow; 0 without a folder.

    Raises:
        OSError: the folder cannot be looked at.
    """
    total = 0
    for path in _paths(folder, flow):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:  # its source has just dropped it
            continue
    return total


def rename_spools(folder: Path, flow: str, names: Mapping[str, str]) -> None:
    """Give spools of renamed sources their new names, {old: new}; other names are passed over.

    Raises:
        OSError: the system refuses.
    """
    if not folder.exists():
        return
    for old, new in names.items():
        then, now = SpoolName(folder, flow, old), SpoolName(folder, flow, new)
        for number in then.sizes():
            then.path(number).rename(now.path(number))


def remove_spools(folder: Path, flow: str) -> None:
    """Remove all spools of a flow: its job is done.

    Raises:
        OSError: the system refuses.
    """
    for path in _paths(folder, flow):
        path.unlink(missing_ok=True)


def _paths(folder: Path, flow: str) -> list[Path]:
    start = _start_of(flow)
    names = os.listdir(folder) if folder.exists() else []
    return [folder / n for n in names if n.startswith(start) and n.endswith(".rows")]


def _start_of(flow: str) -> str:
    return f"spool.{_digest(flow)}."


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


class Spool:
    """Records of a source, in the order in which its input handed them over.

    Args:
        name: name of the spool.
        file_bytes: size at which a file is full.

    Attributes:
        last: position of the input that came with the last record; empty if none came.

    Raises:
        DamagedSpool: a file is missing, or its bytes are another's.
        OSError: the system refuses.
    """

    def __init__(self, name: SpoolName, *, file_bytes: int) -> None:
        self._name, self._file_bytes = name, file_bytes
        self._mapped: tuple[int, memoryview] | None = None  # file that is being read
        number = max(name.sizes(), default=0) + 1
        while not self._claim(number):  # an earlier writer was faster
            number += 1
        self._own = number
        self._ends: dict[int, int] = {}  # of earlier files
        self.last = b""
        self._measure([n for n in name.sizes() if n < number])
        self._file = AppendedFile(name.path(number), 0)

    @property
    def total_bytes(self) -> int:
        """Bytes of all its files, as far as they count."""
        return sum(self._ends.values()) + self._file.bytes

    def begins_at(self, at: bytes | None) -> Place:
        """Return the place from which a reader reads on.

        Args:
            at: position that a reader had; None if it begins at the start.

        Raises:
            DamagedSpool: no rows are there any more from that place on.
        """
        if at is None:
            first = min(self._ends, default=self._own)
            if first > 1:
                raise DamagedSpool(
                    f"{self._name.path(first).name} is its first file, and earlier rows were "
                    "dropped after a checkpoint, which is not there any more"
                )
            return Place(1, 0)
        try:
            place = Place.of(at)
        except ValueError:
            raise DamagedSpool(f"position {at!r} is not one of a spool") from None
        if self._ends.get(place.file, -1) < place.offset:
            raise DamagedSpool(
                f"{self._name.path(place.file).name} is missing, or has fewer than the "
                f"{place.offset:,} bytes that it had at the checkpoint"
            )
        return place

    def read(self, place: Place) -> tuple[Place, Record] | None:
        """Return the next record from a place on, with its place; None at the end.

        Records that this writer appends are not read.

        Raises:
            DamagedSpool: bytes were changed.
            OSError: the system refuses.
        """
        while place.file < self._own:
            if place.offset >= self._ends[place.file]:
                place = Place(place.file + 1, 0)
                continue
            record = unpack(self._data(place.file, self._ends[place.file]), place.offset)
            if record is None:
                raise DamagedSpool(f"{self._name.path(place.file).name} was cut off")
            if record.kind is not Kind.HEAD:
                return place, record
            place = Place(place.file, record.end)
        self._mapped = None
        return None

    def append(self, kind: Kind, at: bytes, body: bytes | memoryview) -> Place:
        """Append a record, whole or not at all; return its place.

        Raises:
            OSError: there is no room for it.
            IngestError: another process goes on with the spool, and this one must not.
        """
        if self._file.bytes >= self._file_bytes:
            self._roll()
        head = b"" if self._file.bytes else Head(self._ends, self.last).to_bytes()
        place = Place(self._own, self._file.bytes + len(head))
        self._file.append(head, pack(kind, at, body))
        if os.path.lexists(self._name.path(self._own + 1)):
            raise self._replaced()
        self.last = at or self.last
        return place

    def drop(self, place: Place) -> None:
        """Remove the files before a place: no restore asks for their rows.

        Raises:
            OSError: the system refuses.
        """
        for number in sorted(n for n in self._ends if n < place.file):
            self._name.path(number).unlink(missing_ok=True)
            del self._ends[number]

    def sync(self) -> None:
        """Have the system write all records to its disk.

        Any thread may call it.

        Raises:
            OSError: it could not.
        """
        sync(self._name.path(self._own))  # earlier ones were synced as they ended

    def close(self) -> None:
        """Close the file that is being written. Idempotent."""
        self._mapped = None
        self._file.close()

    def _claim(self, number: int) -> bool:
        """Make a file, unless it is there; return whether it was made."""
        try:
            os.close(private(self._name.path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        sync(self._name.folder)
        return True

    def _roll(self) -> None:
        """Begin the next file."""
        self._file.sync()
        if not self._claim(self._own + 1):
            raise self._replaced()
        self._file.close()
        self._ends[self._own] = self._file.bytes
        self._own += 1
        self._file = AppendedFile(self._name.path(self._own), 0)

    def _measure(self, numbers: list[int]) -> None:
        """Find where earlier files end, and the last position of the input in them."""
        if numbers and numbers != [*range(numbers[0], self._own)]:
            raise DamagedSpool(
                f"a file is missing between {self._name.path(numbers[0]).name} and "
                f"{self._name.path(self._own).name}"
            )
        known: Mapping[int, int] = {}
        for number in reversed(numbers):
            first = unpack(self._data(number), 0)
            if first is not None:
                known, self.last = Head.of(first)
                break
        for number in numbers:
            self._ends[number] = known[number] if number in known else self._end_of(number)

    def _end_of(self, number: int) -> int:
        """Return where the records of a file end whose writer was killed; sync it."""
        end, data = 0, self._data(number)
        while (record := unpack(data, end)) is not None:
            end, self.last = record.end, record.at or self.last
        sync(self._name.path(number))
        return end

    def _data(self, number: int, end: int | None = None) -> memoryview:
        """Return the bytes of an earlier file, up to its end."""
        if self._mapped is None or self._mapped[0] != number:
            with open(self._name.path(number), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                data: bytes | mmap.mmap = b""
                if size:
                    data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
            self._mapped = number, memoryview(data)
        return self._mapped[1][:end]

    def _replaced(self) -> IngestError:
        return IngestError(
            f"the spool of source {self._name.source!r} goes on in another process, which has "
            "replaced this one; nothing is to be done"
        )
