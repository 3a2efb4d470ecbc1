"""An output of the user's own as a sink of its slot."""

from __future__ import annotations

import pyarrow as pa

from slackwater.actors.sinks.sink import Unpublished
from slackwater.runtime.model import Int64Array
from slackwater.runtime.sinks import Output, OutputContext
from slackwater.runtime.sinks.named_writer import NamedWriter


class OwnSink(Unpublished):
    """Opens the user's output when the job starts, in the thread that then writes and ends it.

    So what may be used in one thread only, such as a connection to a database, can be used.
    """

    def __init__(self, output: Output, schema: pa.Schema, context: OutputContext) -> None:
        self._output, self._schema, self._context = output, schema, context
        self._writer: NamedWriter | None = None  # None: not open yet, or not any more

    def begin(self) -> None:
        """Open it."""
        self._writer = NamedWriter(self._output, self._schema, self._context)

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Hand the rows over."""
        del event_time_ns
        assert self._writer is not None, "a slot begins before it writes, and ends behind that"
        self._writer.write(rows)

    def close(self, state: str = "done") -> None:
        """Close it, once; if that raises, `abort` is still to come."""
        del state
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def abort(self, error: str) -> None:
        """Abort it, once, unless it is closed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort(error)
