"""Open a sink from its output: our outputs open themselves, a custom one is wrapped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from slackwater.actors.sinks.sink import OurOutput, Sink, Unpublished
from slackwater.runtime.model import Int64Array
from slackwater.runtime.sinks import HasEnded, Output, OutputContext, SinkRun
from slackwater.runtime.sinks.named_writer import NamedWriter

NOBODY = SinkRun(job="", flow="", why_not="it was written outside any job")


def print_line(line: str) -> None:
    """Print a line on stdout at once; a stream without a reader ends no job."""
    with suppress(OSError, ValueError):  # the pipe is broken, the stream is closed
        print(line, file=sys.stdout, flush=True)  # noqa: T201 the user asked for it


def open_sink(
    name: str,
    output: Output,
    schema: pa.Schema,
    *,
    folder: str = "",
    run: SinkRun = NOBODY,
    has_ended: HasEnded = lambda _: False,
    clock_ns: Callable[[], int] = time.monotonic_ns,
    show: Callable[[str], None] = print_line,
) -> Sink:
    """Open the sink of a step.

    Args:
        name: of the sink.
        output: of the sink.
        schema: of the rows.
        folder: where relative paths start; "" is the working folder of this process.
        run: the run that writes.
        has_ended: whether the end of a job is on record.
        clock_ns: clock for rows that are due.
        show: shows a line on the driver's stdout.

    Raises:
        SinkError: the sink cannot be opened; says why and what to do.
    """
    context = OutputContext(
        sink=name, folder=folder, run=run, has_ended=has_ended, clock_ns=clock_ns, show=show
    )
    if isinstance(output, OurOutput):
        return output.open(schema, context)
    return OwnSink(output, schema, context)


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
