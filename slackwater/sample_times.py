"""Event times of a sample, read off a source's blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["SeenTimes"]

UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_SECOND}


class SeenTimes:
    """The event times of one source's sample.

    Args:
        source: what is known of its time column.
    """

    def __init__(self, source: SourceSpec) -> None:
        self._name = source.event_time
        self._unit_ns = UNIT_NS[source.time_unit or "ns"]
        self._columns: list[pa.Array] = []

    def note(self, block: pa.RecordBatch) -> None:
        """Keep the times of rows that are handed over."""
        self._columns.append(block.column(self._name))

    def seconds(self) -> FloatArray:
        """Return the event times, shape (rows,); of a sample that ran, so they are times."""
        return np.concatenate([np.zeros(0), *(self._seconds(one) for one in self._columns)])

    def _seconds(self, column: pa.Array) -> FloatArray:
        unit_ns = self._unit_ns
        if pa.types.is_timestamp(column.type):
            column, unit_ns = column.cast(pa.timestamp("ns")), 1
        times = column.cast(pa.int64()).drop_null().to_numpy(zero_copy_only=False)
        return np.asarray(times * (unit_ns / NS_PER_SECOND))
