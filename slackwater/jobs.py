"""A submitted flow, as its user holds it: on a cluster, or in the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from runtime.errors import FlowError
from runtime.flow.plan import Plan
from runtime.flow.steps import SinkStep
from runtime.measure import JobReport
from runtime.model import Batch
from runtime.model.schema import ArrowRows
from runtime.simulate import CostModel, LinkModel
from runtime.simulate import Simulation as SimulationRun

if TYPE_CHECKING:
    from actors.job import RayJob
    from runtime.config import Limits

OnReport = Callable[[JobReport], None]
Latency = Mapping[str, Mapping[str, float]]

REPORT_EVERY_S = 0.25


class Job:
    """A flow that runs on Ray.

    Attributes:
        plan: its stages, each in a slot.
    """

    def __init__(self, plan: Plan, running: RayJob) -> None:
        self.plan = plan
        self._running = running

    @property
    def status(self) -> str:
        """running, done, stopped or failed."""
        return self._running.status

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", "p99_ms", "max_ms", "rows"}} so far; stimulus to egress."""
        return latency_of(self.report())

    @property
    def metrics(self) -> JobReport:
        """The report as it stands; the same as `report()`."""
        return self.report()

    def workers(self) -> dict[str, int]:
        """Return {slot: process id of its worker, on its node}."""
        return dict(self._running.pids)

    def report(self) -> JobReport:
        """Return the report as it stands: stages, channels, sinks, the ledger."""
        return self._running.report()

    def wait(self, timeout: float | None = None, on_report: OnReport | None = None) -> JobReport:
        """Wait for the end and return the last report.

        Args:
            timeout: seconds; None for as long as it takes.
            on_report: called with a fresh report about four times a second.

        Raises:
            SlackwaterError: what ended the job.
            TimeoutError: it still runs.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout
        rest_s = REPORT_EVERY_S
        while not self._running.wait(rest_s):
            if on_report is not None:
                on_report(self._running.report())
            if deadline_s is None:
                continue
            rest_s = min(REPORT_EVERY_S, deadline_s - time.monotonic())
            if rest_s <= 0:
                raise TimeoutError(
                    f"job {self.plan.flow!r} still runs after {timeout} s; wait longer, or stop()"
                )
        return self._running.report()

    def result(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered.

        Raises:
            FlowError: no such collect sink.
        """
        _collect_sink(self.plan, sink)
        return self._running.collected(sink)

    def stop(self) -> None:
        """End it now; the sinks keep the whole batches that they have."""
        self._running.stop()

    def close(self) -> None:
        """Stop it, if it still runs; results that were collected stay with this object."""
        self.stop()


class SimulatedJob:
    """A flow that runs in virtual time, when it is waited for."""

    def __init__(
        self,
        plan: Plan,
        *,
        seed: int,
        cost: CostModel | None,
        link: LinkModel | None,
        limits: Limits | None,
    ) -> None:
        from actors.sinks import CollectSink, Sink, open_sink  # noqa: PLC0415 (brings in Ray)

        self.plan = plan
        self._collects = CollectSink
        self._rows = {s.name: ArrowRows(s.step.schema) for s in plan.stages if s.kind == "sink"}
        self._sinks: dict[str, Sink] = {
            s.name: open_sink(s.name, s.step.sink, s.step.schema)
            for s in plan.stages
            if isinstance(s.step, SinkStep)
        }
        self._run = SimulationRun(
            plan, egress=self._egress, seed=seed, cost=cost, link=link, limits=limits
        )
        self._report: JobReport | None = None

    def _egress(self, stage: str, batch: Batch | None, is_end: bool) -> None:
        if batch is not None:
            self._sinks[stage].write(self._rows[stage].of(batch))
        if is_end:
            self._sinks[stage].close()

    @property
    def status(self) -> str:
        """starting, or done."""
        return "starting" if self._report is None else self._report.state

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", "p99_ms", "max_ms", "rows"}}, in virtual time."""
        return latency_of(self.report())

    @property
    def metrics(self) -> JobReport:
        """The report as it stands; the same as `report()`."""
        return self.report()

    def report(self) -> JobReport:
        """Return the report as it stands."""
        return self._report or self._run.report()

    def wait(self, timeout: float | None = None, on_report: OnReport | None = None) -> JobReport:
        """Run to the end; `timeout` is not needed in virtual time.

        Raises:
            SlackwaterError: what ended the job.
        """
        del timeout
        if self._report is None:
            try:
                self._report = self._run.run()
            finally:
                for sink in self._sinks.values():
                    sink.close()
        if on_report is not None:
            on_report(self._report)
        return self._report

    def result(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered; runs the flow if it has not run."""
        _collect_sink(self.plan, sink)
        self.wait()
        found = self._sinks[sink]
        assert isinstance(found, self._collects), "checked above"
        return found.table()

    def stop(self) -> None:
        """Nothing runs outside `wait`."""

    def close(self) -> None:
        """Let go of the sinks."""
        for sink in self._sinks.values():
            sink.close()


def latency_of(report: JobReport) -> Latency:
    """Return {sink: {"p50_ms", "p99_ms", "max_ms", "rows"}} of a report."""
    return {
        sink.name: {
            "p50_ms": sink.latency.quantile(0.5) / 1e6 if sink.rows else float("nan"),
            "p99_ms": sink.latency.quantile(0.99) / 1e6 if sink.rows else float("nan"),
            "max_ms": sink.latency.quantile(1.0) / 1e6 if sink.rows else float("nan"),
            "rows": float(sink.rows),
        }
        for sink in report.sinks
    }


def _collect_sink(plan: Plan, name: str) -> None:
    kinds = {s.name: s.step.sink.kind for s in plan.stages if isinstance(s.step, SinkStep)}
    if kinds.get(name) != "collect":
        there = ", ".join(sink for sink, kind in kinds.items() if kind == "collect") or "none"
        raise FlowError(
            f"flow {plan.flow!r} has no collect sink {name!r} (there are: {there}); "
            "give the stream `.sink(name, collect_sink())`, or read the file it was written to"
        )
