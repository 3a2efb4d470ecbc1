"""What a sink is, and how one is opened from its spec."""

from __future__ import annotations

import os
from typing import Protocol

import pyarrow as pa

from actors.sinks.files import JsonLinesSink, ParquetSink
from actors.sinks.memory import CallbackSink, CollectSink
from runtime.errors import SinkError
from runtime.flow.steps import SinkSpec


class Sink(Protocol):
    """An open sink. It holds whole batches only, whatever happens."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Take results. They have left the flow when this returns.

        Raises:
            SinkError: they could not be written; what was written before stays whole.
            OperatorError: the user's function raised.
        """
        ...

    def close(self) -> None:
        """Finish, at the end of the stream or when the job stops. Safe to call twice."""
        ...


def open_sink(name: str, spec: SinkSpec, schema: pa.Schema, *, folder: str = "") -> Sink:
    """Open the sink of a step.

    Args:
        name: of the sink.
        spec: its settings.
        schema: of its rows.
        folder: where relative paths start; "" is the working folder of this process.

    Raises:
        SinkError: it cannot be opened; says why and what to do.
    """
    if spec.kind == "collect":
        return CollectSink(schema)
    if spec.kind == "callback":
        if spec.function is None:
            raise SinkError(f"sink {name!r}: a callback sink needs a function")
        return CallbackSink(name, spec.function, at_end=spec.at_end)
    if spec.path is None:
        raise SinkError(f"sink {name!r}: a {spec.kind} sink needs a path")
    path = os.path.join(folder, spec.path)
    if spec.kind == "parquet":
        return ParquetSink(name, path, schema, overwrite=spec.overwrite)
    return JsonLinesSink(name, path, overwrite=spec.overwrite)
