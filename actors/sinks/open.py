"""Open a sink from its output: our outputs open themselves, a custom one is wrapped."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from slackwater.actors.sinks.own import OwnSink
from slackwater.actors.sinks.sink import OurOutput, Sink
from slackwater.runtime.sinks import HasEnded, Output, OutputContext, SinkRun

NOBODY = SinkRun(job="", flow="", why_not="it was written outside any job")


def open_sink(
    name: str,
    output: Output,
    schema: pa.Schema,
    *,
    folder: str = "",
    run: SinkRun = NOBODY,
    has_ended: HasEnded = lambda _: False,
    clock_ns: Callable[[], int] = time.monotonic_ns,
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

    Raises:
        SinkError: the sink cannot be opened; says why and what to do.
    """
    context = OutputContext(
        sink=name, folder=folder, run=run, has_ended=has_ended, clock_ns=clock_ns
    )
    if isinstance(output, OurOutput):
        return output.open(schema, context)
    return OwnSink(output, schema, context)
