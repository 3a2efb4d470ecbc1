"""Run a custom output as a sink of its slot."""

from __future__ import annotations

import pyarrow as pa

from slackwater.actors.sinks.sink import Unpublished
from slackwater.runtime.model import Int64Array
from slackwater.runtime.sinks import Output, OutputContext
from slackwater.runtime.sinks.named_writer import NamedWriter


class OwnSink(Unpublished):
    """Opens a custom output when the job starts, in its writing thread.

    So it may use resources that are tied to one thread, such as a connection to a database.
    """

    def __init__(self, output: Output, schema: pa.Schema, context: OutputContext) -> None:
        self._output, self._schema, self._context = output, schema, context
        self._writer: NamedWriter | None = None  # None: not open

    def begin(self) -> None:
        """Open the output."""
        self._writer = NamedWriter(self._output, self._schema, self._context)

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Write the rows."""
        del event_time_ns
        assert self._writer is not None, "a slot begins before it writes, and ends after that"
        self._writer.write(rows)

    def close(self, state: str = "done") -> None:
        """Close the output, once; if that raises, `abort` follows."""
        del state
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def abort(self, error: str) -> None:
        """Abort the output, once, unless it is closed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort(error)
