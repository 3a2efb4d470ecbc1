"""The sinks of one slot: opened together, written to, looked at when due, and ended together."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping

from actors.sinks.memory import CollectSink
from actors.sinks.open import NOBODY, open_sink
from actors.sinks.sink import Sink
from runtime.errors import SlackwaterError
from runtime.measure.assemble import SinkMeter
from runtime.measure.report import SinkReport
from runtime.model import Batch
from runtime.model.schema import ArrowRows
from runtime.plan.plan import Stage
from runtime.plan.steps import SinkStep
from runtime.sinks import HasEnded, SinkRun

__all__ = ["SlotSinks"]

NEVER_NS = 2**63 - 1


class SlotSinks:
    """What a slot has to do with its sinks.

    Args:
        deadline_ns: of the flow; None: it has none.
        clock_ns: tells when rows are due to be published.
    """

    def __init__(
        self,
        *,
        deadline_ns: int | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._deadline_ns, self._clock_ns = deadline_ns, clock_ns
        self._sinks: dict[str, Sink] = {}
        self._rows: dict[str, ArrowRows] = {}
        self._meters: dict[str, SinkMeter] = {}
        self._due_ns = NEVER_NS

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
                    clock_ns=self._clock_ns,
                )
                self._rows[stage.name] = ArrowRows(stage.step.schema)
                self._meters[stage.name] = SinkMeter(stage.name, "", deadline_ns=self._deadline_ns)

    def begin(self) -> None:
        """Get all ready, in the thread that will write: the job starts now.

        Raises:
            SinkError: an output of the user's own could not be opened.
        """
        for sink in self._sinks.values():
            sink.begin()

    def write(self, name: str, batch: Batch) -> int:
        """Write results; return how many of its first rows an earlier run had committed."""
        sink = self._sinks[name]
        before = 0 if sink.progress is None else sink.progress.skipped
        sink.write(self._rows[name].of(batch), batch.event_time_ns)
        if sink.due_ns is not None:
            self._due_ns = min(self._due_ns, sink.due_ns)
        return 0 if sink.progress is None else sink.progress.skipped - before

    def left(self, name: str, batch: Batch, egress_ns: int, *, skipped: int) -> None:
        """Take the latency of results that have been written, all but the first `skipped`."""
        self._meters[name].add(batch, egress_ns, skipped=skipped)

    @property
    def due_in_s(self) -> float:
        """In how many seconds `publish_due` has something to do, if nothing is written."""
        if self._due_ns == NEVER_NS:  # asked before each sleep: most slots have no such sink
            return math.inf
        return max(self._due_ns - self._clock_ns(), 0) / 1e9

    def publish_due(self) -> None:
        """Publish what has waited for long enough. Costs next to nothing if nothing has."""
        if self._due_ns == NEVER_NS or self._clock_ns() < self._due_ns:
            return
        for sink in self._sinks.values():
            sink.publish_due()
        dues = [sink.due_ns for sink in self._sinks.values() if sink.due_ns is not None]
        self._due_ns = min(dues, default=NEVER_NS)

    def close(self, state: str) -> None:
        """Finish all; state is "done" or "stopped"."""
        for sink in self._sinks.values():
            sink.close(state)

    def abort(self, error: str) -> str:
        """Finish all behind a failure; return what went wrong with that, if anything."""
        problems = []
        for name, sink in self._sinks.items():
            try:
                sink.abort(error)
            except SlackwaterError as problem:
                problems.append(f"\nand then: {problem}")
            except BaseException as problem:  # sys.exit() in at_end: the slot must end nevertheless
                problems.append(f"\nand then: sink {name!r}: {problem!r}")
        return "".join(problems)

    def leave(self) -> None:
        """Let go of places where nothing was written: the job never started."""
        for sink in list(self._sinks.values()):  # another thread may be opening more
            sink.leave()

    def collected(self, name: str) -> CollectSink:
        """Return a collect sink."""
        found = self._sinks[name]
        assert isinstance(found, CollectSink), "the front door asks for collect sinks only"
        return found

    def reports(self, node: str) -> list[SinkReport]:
        """Return the sinks' reports, which nobody changes any more."""
        made = []
        for meter in self._meters.values():
            report = copy.deepcopy(meter.report)
            report.node = node
            self.tell(report)
            made.append(report)
        return made

    def tell(self, report: SinkReport) -> None:
        """Put into a sink's report how far its output is."""
        progress = self._sinks[report.name].progress
        if progress is not None:
            report.published, report.parts = progress.published, progress.parts
            report.waiting, report.already_committed = progress.waiting, progress.skipped
            report.notes = list(progress.notes)
