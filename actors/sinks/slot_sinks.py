"""Perform what `runtime/schedule/results.py` decides on the sinks of one slot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from slackwater.actors.sinks.memory import CollectSink
from slackwater.actors.sinks.open import NOBODY, open_sink, print_line
from slackwater.actors.sinks.sink import Sink
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.model import Batch
from slackwater.runtime.model.schema import ArrowRows
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.schedule import Written
from slackwater.runtime.sinks import HasEnded, SinkRun

__all__ = ["SlotSinks"]

_NOTHING_WAITS = Written()


class SlotSinks:
    """Opens, writes, publishes and ends sinks; decides nothing.

    Args:
        clock_ns: clock for rows that are due; it must not run back.
        show: shows a line on the driver's stdout.
    """

    def __init__(
        self,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        show: Callable[[str], None] = print_line,
    ) -> None:
        self.clock_ns, self._show = clock_ns, show
        self._sinks: dict[str, Sink] = {}
        self._rows: dict[str, ArrowRows] = {}
        self.at_work: str | None = None
        """Sink that begins or ends now; None if none does."""

    def open(
        self,
        stages: Iterable[Stage],
        *,
        folder: str,
        runs: Mapping[str, SinkRun],
        has_ended: HasEnded = lambda _: False,
    ) -> None:
        """Open the sinks among these stages.

        Args:
            stages: of the slot.
            folder: where relative paths start.
            runs: {sink: the run that writes there}.
            has_ended: whether the end of a job is on record.

        Raises:
            SinkError: a sink cannot be opened; `leave` then releases the others.
        """
        for stage in stages:
            if isinstance(stage.step, SinkStep):
                self._sinks[stage.name] = open_sink(
                    stage.name,
                    stage.step.output,
                    stage.step.schema,
                    folder=folder,
                    run=runs.get(stage.name, NOBODY),
                    has_ended=has_ended,
                    clock_ns=self.clock_ns,
                    show=self._show,
                )
                self._rows[stage.name] = ArrowRows(stage.step.schema)

    def begin(self) -> None:
        """Get all sinks ready, in the thread that will write: the job starts now.

        Raises:
            SinkError: a custom output could not be opened.
        """
        for name, sink in self._sinks.items():
            with self._working(name):
                sink.begin()

    def write(self, name: str, batch: Batch) -> Written:
        """Write results to a sink."""
        sink = self._sinks[name]
        rows, progress = self._rows[name].of(batch), sink.progress
        if progress is None:
            sink.write(rows, batch.event_time_ns)
            return _NOTHING_WAITS
        before = progress.skipped
        sink.write(rows, batch.event_time_ns)
        return Written(progress.skipped - before, sink.due_ns)

    def publish(self, name: str) -> int | None:
        """Publish a sink's rows that are due; return when the next rows are."""
        sink = self._sinks[name]
        sink.publish_due()
        return sink.due_ns

    def close(self, name: str, state: str) -> None:
        """Finish a sink; state is "done" or "stopped"."""
        with self._working(name):
            self._sinks[name].close(state)

    def abort(self, name: str, error: str) -> None:
        """Finish a sink after a failure."""
        with self._working(name):
            self._sinks[name].abort(error)

    @contextmanager
    def _working(self, name: str) -> Iterator[None]:
        self.at_work = name
        try:
            yield
        finally:
            self.at_work = None

    def leave(self) -> None:
        """Release paths where no row was written: the job never started."""
        for sink in list(self._sinks.values()):  # another thread may be opening more
            sink.leave()

    def hand_over(self, name: str) -> bytes:
        """Drop a collect sink that moves; return its rows as an Arrow IPC stream."""
        rows = self.collected(name).stream()
        del self._sinks[name], self._rows[name]
        return rows

    def collected(self, name: str) -> CollectSink:
        """Return a collect sink."""
        sink = self._sinks[name]
        assert isinstance(sink, CollectSink), "the front door asks for collect sinks only"
        return sink

    def tell(self, report: SinkReport) -> None:
        """Write a sink's progress into its report; a sink that has moved leaves it unchanged."""
        sink = self._sinks.get(report.name)
        progress = None if sink is None else sink.progress
        if progress is not None:
            report.published, report.parts = progress.published, progress.parts
            report.waiting, report.already_committed = progress.waiting, progress.skipped
            report.notes = list(progress.notes)
