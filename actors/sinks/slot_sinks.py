"""Perform what `runtime/schedule/results.py` decides on the sinks of one slot."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa

from slackwater.actors.sinks.memory import CollectSink
from slackwater.actors.sinks.retrying import RetryingSink
from slackwater.runtime.errors import SinkError
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.schema import ArrowRows
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.named_sink import open_named
from slackwater.runtime.sinks.output import HasEnded, Output, OutputContext, OutputWriter, Sink

__all__ = ["NOBODY", "SlotSinks", "print_line"]

NOBODY = SinkRun(job="", flow="", why_not="it was written outside any job")


def print_line(line: str) -> None:
    """Print a line on stdout at once; a stream without a reader ends no job."""
    with suppress(OSError, ValueError):  # the pipe is broken, the stream is closed
        print(line, file=sys.stdout, flush=True)  # noqa: T201 the user asked for it


class SlotSinks:
    """Opens sinks and passes each call on; decides nothing.

    Args:
        clock_ns: clock for rows that are due; it must not run back.
        show: shows a line on the driver's stdout.
        pause: waits for so many seconds before a call of a sink is tried again.
    """

    def __init__(
        self,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        show: Callable[[str], None] = print_line,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock_ns, self._show, self._pause = clock_ns, show, pause
        self._sinks: dict[str, _OpenSink] = {}
        self._waiting: dict[str, _OpenSink] = {}  # yet to be opened, by the thread that writes
        self._has_begun = False
        self.at_work: str | None = None
        """Sink that opens, commits or ends now; None if none does."""

    def open(
        self,
        stages: Iterable[Stage],
        *,
        folder: str,
        runs: Mapping[str, SinkRun],
        has_ended: HasEnded = lambda _: False,
        keeps_positions: bool = False,
        at: Mapping[str, bytes] | None = None,
    ) -> None:
        """Open the sinks among these stages, as far as their outputs open early.

        Args:
            stages: stages of the slot.
            folder: where relative paths start.
            runs: {sink: the run that writes there}.
            has_ended: whether the end of a job is on record.
            keeps_positions: whether the job has checkpoints, for which `positions` is called.
            at: {sink: its position} in the checkpoint from which the job goes on after a failure,
                or in its former slot; empty if the job begins again from its start, None if it has
                just been submitted.

        Raises:
            SinkError: a sink cannot be opened; `leave` then releases the others.
        """
        for stage in stages:
            if isinstance(stage.step, SinkStep):
                self.add(
                    stage.name,
                    stage.step.output,
                    stage.step.schema,
                    step=stage.subject.step,
                    writer=stage.step.writer,
                    folder=folder,
                    run=runs.get(stage.subject.step, NOBODY),
                    has_ended=has_ended,
                    keeps_positions=keeps_positions,
                    at=None if at is None else at.get(stage.name, b""),
                )

    def add(  # noqa: PLR0913 - each by name
        self,
        name: str,
        output: Output,
        schema: pa.Schema,
        *,
        step: str = "",
        writer: OutputWriter | None = None,
        folder: str = "",
        run: SinkRun = NOBODY,
        has_ended: HasEnded = lambda _: False,
        keeps_positions: bool = False,
        at: bytes | None = None,
    ) -> None:
        """Add a sink; open it if its output opens early.

        Args:
            name: name of the sink.
            output: output of the sink.
            schema: schema of the rows.
            step: name of the step, of which the sink may be a writer; "" is the name of the sink.
            writer: the writer that the sink is; None if it writes all rows.
            folder: where relative paths start; "" is the working folder of this process.
            run: the run that writes.
            has_ended: whether the end of a job is on record.
            keeps_positions: whether the job has checkpoints.
            at: position of the sink, see `OutputContext`.

        Raises:
            SinkError: the sink cannot be opened; says why and what to do.
        """
        sink = _OpenSink(name, output, schema, self._pause)
        sink.context = OutputContext(
            sink=step or name,
            writer=writer,
            folder=folder,
            run=run,
            has_ended=has_ended,
            last_event_time_ns=sink.last_event_time_ns,
            show=self._show,
            keeps_positions=keeps_positions,
            at=at,
        )
        if output.traits.opens_early:
            sink.open()
            self._sinks[name] = sink
        else:
            self._waiting[name] = sink

    def begin(self) -> dict[str, int]:
        """Open the other sinks, in the thread that will write: the job starts now.

        Returns:
            {sink: ordinal of the last row that it has, -1 before the first}, of sinks that say it.

        Raises:
            SinkError: an output could not be opened.
        """
        self._has_begun = True
        committed = {}
        for name, sink in list(self._waiting.items()):
            with self._working(name):
                sink.open()
            self._sinks[name] = self._waiting.pop(name)
        for name, sink in self._sinks.items():
            if sink.has_begun:
                continue
            sink.has_begun = True
            with self._working(name):
                last_ordinal = sink.sink.last_ordinal()
                if sink.traits.keeps_ordinal:
                    committed[name] = last_ordinal
        return committed

    def positions(self) -> dict[str, bytes]:
        """Return {sink: its position}, for a checkpoint: all rows so far survive a crash.

        A sink without a position commits its rows, unless it does so once, at its end.

        Raises:
            SinkError: a sink could not make its rows safe.
        """
        known = {}
        for name, sink in self._sinks.items():
            if sink.is_closed and not sink.traits.has_position:
                continue  # custom code is not called after its end
            with self._working(name):
                if (at := sink.sink.position()) is not None:
                    known[name] = at
                elif not sink.traits.only_whole:
                    sink.sink.flush()
                    sink.sink.commit()
        return known

    def write(self, name: str, batch: Batch, first_ordinal: int) -> None:
        """Write results to a sink."""
        sink = self._sinks[name]
        sink.event_time_ns = batch.event_time_ns
        sink.sink.write(sink.rows.of(batch), first_ordinal)

    def end(self, name: str) -> None:
        """Tell a sink that its stream has ended."""
        self._do(name, lambda sink: sink.end())

    def flush(self, name: str) -> None:
        """Make a sink's rows whole."""
        self._do(name, lambda sink: sink.flush())

    def commit(self, name: str) -> None:
        """Publish what a sink has flushed."""
        self._do(name, lambda sink: sink.commit())

    def close(self, name: str) -> None:
        """Close a sink."""
        self._do(name, lambda sink: sink.close())
        if (sink := self._sinks.get(name)) is not None:
            sink.is_closed = True

    def abort(self, name: str, error: str) -> None:
        """Abort a sink after a failure."""
        self._do(name, lambda sink: sink.abort(error))

    def _do(self, name: str, verb: Callable[[Sink], None]) -> None:
        if (sink := self._sinks.get(name)) is None:
            return  # its slot ends before the sink was opened
        with self._working(name):
            verb(sink.sink)

    @contextmanager
    def _working(self, name: str) -> Iterator[None]:
        self.at_work = name
        try:
            yield
        finally:
            self.at_work = None

    def leave(self) -> None:
        """Abort sinks of a job that never started."""
        if self._has_begun:
            return
        for sink in list(self._sinks.values()):  # another thread may be opening more
            sink.sink.abort("the job did not start")

    def hand_over(self, name: str) -> bytes:
        """Drop a sink that moves; return its position."""
        position = self._sinks.pop(name).sink.position()
        assert position is not None, "a sink without a position does not move"
        return position

    def collected(self, name: str) -> CollectSink:
        """Return a collect sink."""
        sink = self._sinks[name].sink
        assert isinstance(sink, CollectSink), "the front door asks for collect sinks only"
        return sink

    def tell(self, report: SinkReport) -> None:
        """Write a sink's progress into its report; a sink that has moved leaves it unchanged.

        Where it raises, a note says so: the report must come, and the rows are written.
        """
        sink = self._sinks.get(report.name)
        try:
            progress = None if sink is None else sink.sink.progress()
        except SinkError as problem:
            report.notes = [str(problem).removeprefix(f"sink {report.name!r}: ")]
            return
        if progress is not None:
            report.published, report.parts = progress.published, progress.parts
            report.waiting, report.notes = progress.waiting, list(progress.notes)
        if sink is not None and sink.retries:
            report.notes = [*report.notes, f"raised, and was tried again {sink.retries} times"]


class _OpenSink:
    """A sink, and the form in which its rows are written."""

    context: OutputContext
    sink: Sink

    def __init__(
        self, name: str, output: Output, schema: pa.Schema, pause: Callable[[float], None]
    ) -> None:
        self._output, self._schema, self._pause = output, schema, pause
        self.name, self.rows, self.has_begun = name, ArrowRows(schema), False
        self.traits, self.is_closed = output.traits, False
        self.event_time_ns: Int64Array | None = None
        """Event times of the rows that were written last."""

    def open(self) -> None:
        if self.traits.retry:
            self.sink = RetryingSink(self.name, self.traits, self._opened, self._pause)
        else:
            self.sink = self._opened(False)

    def _opened(self, is_again: bool) -> Sink:
        context = self.context
        if is_again and context.at is None:
            context = replace(context, at=b"")  # in the same run: its rows are ours
        return open_named(self._output, self._schema, context)

    @property
    def retries(self) -> int:
        """How often calls were tried again."""
        return self.sink.retries if isinstance(self.sink, RetryingSink) else 0

    def last_event_time_ns(self) -> int | None:
        times_ns = self.event_time_ns
        return None if times_ns is None else int(times_ns[-1])
