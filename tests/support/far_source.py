"""An actor that reads an input on another node than Spark's; in a file that knows no Spark."""

from __future__ import annotations

import sys
import threading

import pyarrow as pa
import ray

from slackwater.runtime.sources.spec import EndOfInput, Input
from tests.support.readers import next_rows


class FarSource:
    """Reads an input on the node where neither driver nor Spark is."""

    def open(self, source: Input) -> str:
        self._reader = source.open()
        self._pause = threading.Event()
        return str(ray.get_runtime_context().get_node_id())

    def read(self, rows: int = 2**62) -> tuple[list[pa.RecordBatch], bool]:
        blocks: list[pa.RecordBatch] = []
        while sum(map(len, blocks)) < rows:
            block = next_rows(self._reader)
            if isinstance(block, EndOfInput):  # its pickled copy is another object
                return blocks, True
            if isinstance(block, pa.RecordBatch):
                blocks.append(block)
            else:
                self._pause.wait(0.002)
        return blocks, False

    def close(self) -> None:
        self._reader.close()

    def knows_spark(self) -> bool:
        return "pyspark" in sys.modules or "raydp" in sys.modules
