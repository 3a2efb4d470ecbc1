"""A callback sink that writes down when each result left, and what it was made of."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.running import Arrays


@dataclass
class Recorder:
    """Appends (time, columns) of each batch to a file, where the sink runs. All are int64.

    It writes at once: nobody tells a callback that it was the last.
    """

    path: str
    columns: tuple[str, ...]
    _file: int = field(default=-1, repr=False)

    def __call__(self, rows: pa.RecordBatch) -> None:
        """Write a batch down."""
        egress_ns = time.time_ns()
        if self._file < 0:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        record = np.empty((len(rows), 1 + len(self.columns)), dtype=np.int64)
        record[:, 0] = egress_ns
        for place, name in enumerate(self.columns, start=1):
            record[:, place] = rows.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
        os.write(self._file, record.tobytes())

    def read(self) -> Arrays:
        """Return what was written: the columns, and `egress_ns`."""
        names = ("egress_ns", *self.columns)
        path = Path(self.path)
        data = path.read_bytes() if path.exists() else b""
        table = np.frombuffer(data, dtype=np.int64).reshape(-1, len(names))
        return {name: table[:, place].copy() for place, name in enumerate(names)}
