"""Files as partitions: each file or row group is read in its own order.

```
a.csv   [1 2 3 4]        the first row of each says when it begins:
b.csv       [3 5 6]      it is opened when rows of that time are wanted,
c.csv             [7]    and closed for another, if more would be open than may be
```

A row group is a run of rows of its file, opened at its first row.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, Literal, NamedTuple

import pyarrow as pa

from slackwater.ingest.file_places import FilePlace
from slackwater.ingest.inputs import FileInput, FileReader, Layout
from slackwater.ingest.paths import start_of
from slackwater.ingest.positions import refused
from slackwater.runtime.errors import IngestError, SettingError
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.nearest import choices
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.spec import BadRows, Block, Partition, Replay

__all__ = ["MOST_OPEN", "PartitionedFiles", "Parts"]

Parts = Literal["files", "row groups"]
MOST_OPEN = 64
"""Files that are open at once by default."""


class FilePart(NamedTuple):
    """Partition of files.

    Attributes:
        path: its file.
        first: its first row in the file.
        rows: number of its rows; None if unknown, up to the end of the file.
        is_last: whether no other part of its file follows.
    """

    path: str
    first: int = 0
    rows: int | None = None
    is_last: bool = True


@dataclass(frozen=True, kw_only=True)
class PartitionedFiles:
    """Files whose parts are partitions. `parquet`, `jsonl` and `csv` make it.

    Attributes:
        files: the files, as one input.
        by: kind of part that is a partition.
        most_open: most files open at once.
    """

    files: FileInput
    by: Parts
    most_open: int = MOST_OPEN

    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    replay: ClassVar[Replay] = "exact"

    def __post_init__(self) -> None:
        if self.most_open < 1:
            raise SettingError(
                f"open_files={self.most_open} must be 1 or more, the files of an input that are "
                "open at once in each of its stages; omit it for the default"
            )

    @property
    def on_bad(self) -> OnBad:
        """Rule for records that cannot be read."""
        return getattr(self.files, "on_bad", "error")

    def planned(self) -> PartitionedFiles:
        """Return the input with its files, and their parts, fixed.

        Raises:
            IngestError, SchemaError: as `FileInput.schema`.
        """
        fixed = replace(self, files=self.files.planned())
        _ = fixed._parts, fixed._layout  # which travel with it
        return fixed

    def describe(self) -> str:
        """Return the files, and what a partition is."""
        return f"{self.files.describe()}, each {_KINDS[self.by]} a partition"

    def notes(self) -> list[str]:
        """Return what a report has to say of the files."""
        return self.files.notes()

    def schema(self) -> pa.Schema:
        """Return the columns; errors as `FileInput.schema`."""
        return self._layout.schema

    def fingerprint(self) -> tuple[str, str]:
        """Return the files' state; see `FileInput.fingerprint`."""
        return self.files.fingerprint()

    def reads_at(self, place: str, *, kind: str, is_file: bool) -> str | None:
        """Return the path that it reads of a sink's place; see `FileInput.reads_at`."""
        return self.files.reads_at(place, kind=kind, is_file=is_file)

    def partitions(self) -> list[Partition]:
        """Return the parts.

        Names are paths from the folder on; a row group's has `#` and its number.
        """
        return [Partition(name, part.rows) for name, part in self._parts]

    def open(self, name: str = "", at: bytes | None = None) -> FileReader:
        """Open a part at its first row, or at a block's position.

        Raises:
            IngestError: there is no such part, or as `FileInput.open`.
        """
        part = self._by_name.get(name)
        if part is None:
            raise IngestError(
                f"{self.files.describe()}: there is no partition {shown(name)}; "
                f"{choices(name, list(self._by_name))}"
            )
        begin = _begin(part)
        if at is not None:
            begin = self.files.place_of(at, [part.path])
            row = _row_of(begin)
            if self.by == "row groups" and not part.first <= row < part.first + (part.rows or 0):
                raise refused(self.describe(), f"row {row} is not of partition {shown(name)}")
        blocks = self._within(part, begin)
        return FileReader(
            blocks, lambda path, row: self.files.line_of(path, row, self._layout), part.first
        )

    def first_row(self, name: str, columns: list[str]) -> pa.RecordBatch | None:
        """Return columns of a part's first row; None if it cannot be read.

        Raises:
            IngestError: as `open`.
        """
        part, few = self._by_name[name], self._layout.only(columns)
        single = self.files.of_first_rows(tuple(columns))
        with closing(single.read([part.path], few, _begin(part))) as blocks:
            for _, _, block in blocks:
                if isinstance(block.rows, pa.RecordBatch):
                    return block.rows
        return None

    def _within(
        self, part: FilePart, begin: FilePlace
    ) -> Generator[tuple[str, int, Block], None, None]:
        """Yield the blocks of a part from a place on.

        Raises:
            IngestError: the file has fewer rows, or more, than when it was listed.
        """
        with closing(self.files.read([part.path], self._layout, begin)) as blocks:
            if part.rows is None:
                yield from blocks
                return
            left = part.first + part.rows - _row_of(begin)
            while left > 0:
                path, before, block = next(blocks, (part.path, 0, Block(_NO_ROWS)))
                rows = block.rows
                if isinstance(rows, BadRows) or rows is _NO_ROWS:
                    raise IngestError(
                        f"{self.files.kind} {path}: has {left:,} rows less than when it was "
                        "listed; put it back as it was, or start from the beginning"
                    )
                yield path, before, Block(rows.slice(0, left), block.at)
                left -= len(rows)
            if part.is_last and (left < 0 or next(blocks, None)):
                raise IngestError(
                    f"{self.files.kind} {part.path}: has more rows than when it was listed; "
                    "put it back as it was, or start from the beginning"
                )

    @cached_property
    def _layout(self) -> Layout:
        return self.files.layout(self.files.files())

    @cached_property
    def _parts(self) -> list[tuple[str, FilePart]]:
        paths = self.files.files()
        start = start_of(self.files.pattern, folder=self.files.folder)
        groups = self.files.groups_of(paths)
        parts: list[tuple[str, FilePart]] = []
        for number, path in enumerate(paths):
            name = os.fsencode(os.path.relpath(path, start)).decode("utf-8", "backslashreplace")
            if groups is None:
                parts.append((name, FilePart(path)))
            elif self.by == "files":
                parts.append((name, FilePart(path, 0, sum(groups[number]))))
            else:
                firsts, last = accumulate(groups[number], initial=0), len(groups[number]) - 1
                parts += [
                    (f"{name}#{group}", FilePart(path, first, rows, group == last))
                    for group, (first, rows) in enumerate(zip(firsts, groups[number], strict=False))
                ]
        return parts

    @cached_property
    def _by_name(self) -> dict[str, FilePart]:
        return dict(self._parts)


_NO_ROWS = pa.record_batch({})
_KINDS = {"files": "file", "row groups": "row group"}


def _begin(part: FilePart) -> FilePlace:
    return FilePlace(mark=(part.first,) if part.first else ())


def _row_of(place: FilePlace) -> int:
    """Return the row of a place in a parquet file."""
    return sum(place.mark) + place.good
