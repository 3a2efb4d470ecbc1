"""Origin whose rows are read once: lines of a named pipe."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa


@dataclass(frozen=True)
class PipeInput:
    """Reads whole numbers, four bytes each, from a named pipe: a read takes them away."""

    path: str
    replay: ClassVar[str] = "none"

    def describe(self) -> str:
        return "numbers in a pipe"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64())])

    def open(self) -> Any:
        return PipeReader(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))


@dataclass
class PipeReader:
    file: int

    def poll(self) -> Any:
        try:
            data = os.read(self.file, 4 * 50)  # writes of four bytes are whole in a pipe
        except BlockingIOError:
            return None
        numbers = [int.from_bytes(data[n : n + 4], "big") for n in range(0, len(data), 4)]
        return pa.record_batch({"ts": pa.array(numbers, pa.int64())}) if numbers else None

    def close(self) -> None:
        if self.file >= 0:
            number, self.file = self.file, -1
            os.close(number)
