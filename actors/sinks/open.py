"""What a sink is, and how one is opened from its spec."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from actors.sinks.files import FileSink, SinkProgress
from actors.sinks.lock import HasEnded
from actors.sinks.memory import CallbackSink, CollectSink
from runtime.errors import SinkError
from runtime.model import Int64Array
from runtime.plan.steps import SinkSpec
from runtime.sinks import SinkRun

NOBODY = SinkRun(job="", flow="", why_not="it was written outside of any job")


class Sink(Protocol):
    """An open sink. What its readers see is whole, whatever happens."""

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Take results. They have left the flow when this returns.

        Raises:
            SinkError: they could not be written; what was published before stays whole.
            OperatorError: the user's function raised.
        """
        ...

    @property
    def due_ns(self) -> int | None:
        """When `publish_due` is to be called, though no rows come; None: it need not be."""
        ...

    @property
    def progress(self) -> SinkProgress | None:
        """How far its output is; None: nothing of it is published."""
        ...

    def publish_due(self) -> None:
        """Let readers see rows that have waited for long enough.

        Raises:
            SinkError: as `write`.
        """
        ...

    def close(self, state: str = "done") -> None:
        """Finish, at the end of the stream ("done") or when the job stops. Safe to call twice."""
        ...

    def abort(self, error: str) -> None:
        """Finish behind a failure: what is published stays. Safe to call twice."""
        ...

    def leave(self) -> None:
        """Let go of a place where nothing was written: the job never started."""
        ...


def open_sink(
    name: str,
    spec: SinkSpec,
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
        spec: its settings.
        schema: of its rows.
        folder: where relative paths start; "" is the working folder of this process.
        run: the run that writes.
        has_ended: whether the end of a job is on record.
        clock_ns: tells when rows are due to be published.

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
    path = os.path.abspath(os.path.join(folder, spec.path))  # the process may go elsewhere
    return FileSink(name, spec, path, schema, run=run, has_ended=has_ended, clock_ns=clock_ns)
