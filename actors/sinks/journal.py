"""Journal of the rows of a part whose format cannot be cut, such as parquet.

```
rows ──▶ journal: an Arrow stream for each batch, cut at any of their ends
     └─▶ part of the format
a job that comes back:  journal, cut ── its rows ──▶ the part, from its start: the same bytes
```
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from slackwater.actors.sinks.appended_file import AppendedFile
from slackwater.runtime.model.arrow_streams import stream_of

__all__ = ["Journal"]


class Journal:
    """Rows on disk, in the order in which they came.

    Args:
        path: path of the file.
        at: bytes of it that stay; None if it begins afresh.

    Raises:
        PartChanged: the file is shorter than `at`.
    """

    def __init__(self, path: Path, at: int | None = None) -> None:
        self._path, self._file = path, AppendedFile(path, at)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are there.

        Raises:
            OSError: they cannot be read.
        """
        if not self._file.bytes:
            return
        with pa.memory_map(str(self._path)) as data:
            while data.tell() < self._file.bytes:
                with pa.ipc.open_stream(data) as batches:
                    yield from batches

    def append(self, rows: pa.RecordBatch) -> None:
        """Append rows, all or none.

        Raises:
            OSError: there is no room for them, or another program changed the file.
        """
        self._file.append(memoryview(stream_of(rows)))

    def sync(self) -> int:
        """Have the system write the rows to its disk; return the bytes of the file.

        Raises:
            OSError: it could not, or another program changed the file.
        """
        return self._file.sync()

    def close(self) -> None:
        """Close the file, which stays."""
        self._file.close()
