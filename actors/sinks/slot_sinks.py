"""The sinks of one slot, as what decides on them has them done (`runtime/schedule/results.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from slackwater.actors.sinks.memory import CollectSink
from slackwater.actors.sinks.open import NOBODY, open_sink
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
    """Opens, writes, publishes and ends; nothing here is decided.

    Args:
        clock_ns: tells when rows are due to be published; it must not run back.
    """

    def __init__(self, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock_ns = clock_ns
        self._sinks: dict[str, Sink] = {}
        self._rows: dict[str, ArrowRows] = {}

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
            SinkError: one cannot be opened; `leave` then lets the others go.
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
                )
                self._rows[stage.name] = ArrowRows(stage.step.schema)

    def begin(self) -> None:
        """Get all ready, in the thread that will write: the job starts now.

        Raises:
            SinkError: an output of the user's own could not be opened.
        """
        for sink in self._sinks.values():
            sink.begin()

    def write(self, name: str, batch: Batch) -> Written:
        """Write results."""
        sink = self._sinks[name]
        rows, progress = self._rows[name].of(batch), sink.progress
        if progress is None:
            sink.write(rows, batch.event_time_ns)
            return _NOTHING_WAITS
        before = progress.skipped
        sink.write(rows, batch.event_time_ns)
        return Written(progress.skipped - before, sink.due_ns)

    def publish(self, name: str) -> int | None:
        """Publish what has waited for long enough; return when there is something again."""
        sink = self._sinks[name]
        sink.publish_due()
        return sink.due_ns

    def close(self, name: str, state: str) -> None:
        """Finish a sink; state is "done" or "stopped"."""
        self._sinks[name].close(state)

    def abort(self, name: str, error: str) -> None:
        """Finish a sink behind a failure."""
        self._sinks[name].abort(error)

    def leave(self) -> None:
        """Let go of places where nothing was written: the job never started."""
        for sink in list(self._sinks.values()):  # another thread may be opening more
            sink.leave()

    def hand_over(self, name: str) -> bytes:
        """Give up a collect sink that goes on elsewhere; return its rows, an Arrow IPC stream."""
        rows = self.collected(name).stream()
        del self._sinks[name], self._rows[name]
        return rows

    def collected(self, name: str) -> CollectSink:
        """Return a collect sink."""
        found = self._sinks[name]
        assert isinstance(found, CollectSink), "the front door asks for collect sinks only"
        return found

    def tell(self, report: SinkReport) -> None:
        """Put into a sink's report how far its output is; nothing of one that was handed over."""
        sink = self._sinks.get(report.name)
        progress = None if sink is None else sink.progress
        if progress is not None:
            report.published, report.parts = progress.published, progress.parts
            report.waiting, report.already_committed = progress.waiting, progress.skipped
            report.notes = list(progress.notes)
