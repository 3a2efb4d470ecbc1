"""A callback sink that writes down when each result left, and what it was made of."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.running import Arrays, arrays_of


@dataclass
class Recorder:
    """Keeps each batch, and when it came, and writes them to a file at the end of the sink.

    So a result's latency holds next to nothing of the measuring: one call and one clock.
    """

    path: str
    _kept: list[tuple[int, pa.RecordBatch]] = field(default_factory=list, repr=False)

    def sink(self) -> sw.connectors.Output:
        """Return the sink that feeds it."""
        return sw.callback_sink(self._keep, at_end=self._write)

    def _keep(self, rows: pa.RecordBatch) -> None:
        self._kept.append((time.time_ns(), rows))

    def _write(self) -> None:
        if not self._kept:
            return
        table = pa.Table.from_batches([rows for _, rows in self._kept])
        times_ns = [egress_ns for egress_ns, _ in self._kept]
        egress_ns = np.repeat(times_ns, [len(rows) for _, rows in self._kept])
        table = table.append_column("egress_ns", pa.array(egress_ns))
        with pa.ipc.new_file(self.path, table.schema) as file:
            file.write_table(table)

    def read(self) -> Arrays:
        """Return what was written: the columns, and `egress_ns`."""
        with pa.ipc.open_file(self.path) as file:
            return arrays_of(file.read_all())
