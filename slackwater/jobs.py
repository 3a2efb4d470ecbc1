"""A submitted flow, as its user holds it: on a cluster, or in the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from actors.tuning.sample_history import JobHistory
from runtime.control import Decider, FlowGraph
from runtime.errors import FlowError
from runtime.measure import JobReport, refuse_imbalance
from runtime.measure.published import published_notes
from runtime.model import Batch
from runtime.plan.plan import Plan, collect_sinks
from runtime.simulate import CostModel, LinkModel
from runtime.simulate import Simulation as SimulationRun
from runtime.tune import make_policy

if TYPE_CHECKING:
    from actors.jobs.detached import DetachedJob
    from actors.jobs.job import RayJob
    from actors.jobs.logs import LogPart
    from actors.jobs.records import JobRecord
    from runtime.config import Limits, Tuning

OnReport = Callable[[JobReport], None]
Latency = Mapping[str, Mapping[str, float]]

REPORT_EVERY_S = 0.25


class Running(Protocol):
    """What a `Job` asks of whoever runs it: this process, or a coordinator in the cluster."""

    @property
    def pids(self) -> Mapping[str, int]:
        """{slot: process id of its worker, on its node}."""
        ...

    @property
    def status(self) -> str:
        """starting, running, done, stopped, failed or lost."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end at most so long; return whether it has come; raise what failed."""
        ...

    def report(self) -> JobReport:
        """Return the report as it stands."""
        ...

    def collected(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered."""
        ...

    def stop(self) -> None:
        """End it now."""
        ...


class Job:
    """A flow that runs on Ray: attached to this process, or detached from all.

    Attributes:
        id: its name in the cluster, if it is detached; of this process alone, if not.
        flow: its flow's name.
        placement: {stage: slot}.
        plan: its stages, each in a slot; None for a job that another process submitted.
        is_detached: whether it outlives this process.
    """

    def __init__(
        self,
        job_id: str,
        running: Running,
        *,
        flow: str,
        placement: Mapping[str, str],
        collects: Collection[str],
        plan: Plan | None = None,
    ) -> None:
        self.id = job_id
        self.flow = flow
        self.placement = dict(placement)
        self.plan = plan
        self.is_detached = False
        self._collects = collects
        self._running = running

    @classmethod
    def attached(cls, job_id: str, plan: Plan, running: RayJob) -> Job:
        """Return a job that ends with this process."""
        return cls(
            job_id,
            running,
            flow=plan.flow,
            placement=plan.slots,
            collects=collect_sinks(plan),
            plan=plan,
        )

    @classmethod
    def detached(cls, running: DetachedJob, plan: Plan | None = None) -> Job:
        """Return a job that a coordinator runs."""
        known = running.record
        job = cls(
            known.id,
            running,
            flow=known.flow,
            placement=known.placement,
            collects=known.collects,
            plan=plan,
        )
        job.is_detached = True
        return job

    @property
    def status(self) -> str:
        """running, done, stopped or failed; of a detached job also starting or lost."""
        return self._running.status

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", …, "error_ms", "rows"}} so far; stimulus to egress."""
        return latency_of(self.report())

    @property
    def metrics(self) -> JobReport:
        """The report as it stands; the same as `report()`."""
        return self.report()

    def workers(self) -> dict[str, int]:
        """Return {slot: process id of its worker, on its node}."""
        return dict(self._running.pids)

    @property
    def record(self) -> JobRecord:
        """What the cluster's store says of a detached job, as it was last heard.

        Raises:
            FlowError: the job is attached: only this process knows of it.
        """
        from actors.jobs.detached import DetachedJob  # noqa: PLC0415 (brings in Ray)

        if not isinstance(self._running, DetachedJob):
            raise FlowError(
                f"job {self.id} is attached to this process and has neither a record nor logs in "
                "the cluster; submit it with detach=True"
            )
        return self._running.record

    def report(self) -> JobReport:
        """Return the report as it stands: stages, channels, sinks, the ledger."""
        return self._running.report()

    def wait(self, timeout: float | None = None, on_report: OnReport | None = None) -> JobReport:
        """Wait for the end and return the last report.

        Args:
            timeout: seconds; None for as long as it takes.
            on_report: called with a fresh report about four times a second.

        Raises:
            SlackwaterError: what ended the job; LedgerError: it is done, and rows are missing.
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
                    f"job {self.flow!r} still runs after {timeout} s; wait longer, or stop()"
                )
        return refuse_imbalance(self._running.report())

    def result(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered.

        Raises:
            FlowError: no such collect sink.
            WorkerDied: they are gone. A detached job that has ended keeps them until somebody
                has them, 10 minutes at most.
        """
        _check_collects(self.flow, self._collects, sink)
        return self._running.collected(sink)

    def stop(self) -> None:
        """End it now; the sinks keep the whole batches that they have."""
        self._running.stop()

    def logs(
        self, *, stage: str | None = None, tail: int | None = None, seen: Sequence[LogPart] = ()
    ) -> list[LogPart]:
        """Return what the processes of a detached job printed, also when it has ended.

        Args:
            stage: only the slot of this stage.
            tail: the last lines of each stream only.
            seen: what was returned before; only what is new comes then.

        Raises:
            FlowError: no such stage; or the job is attached: its log is its driver's.
        """
        from actors.jobs.logs import read_logs  # noqa: PLC0415 (brings in Ray)

        return read_logs(self.record, stage=stage, tail=tail, seen=seen)

    def close(self) -> None:
        """Let go of it. Attached, it is stopped if it still runs; what it collected stays here."""
        if not self.is_detached:
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
        tuning: Tuning | None,
    ) -> None:
        from actors.sinks import (  # noqa: PLC0415 (brings in ZeroMQ)
            SlotSinks,
            input_prints,
            sink_runs,
            slots_with_inputs,
        )

        self.plan = plan
        self._sinks = SlotSinks(clock_ns=lambda: self._run.now_ns)
        self._history: JobHistory | None = None
        policy: Decider | None = None
        if tuning is not None:
            graph = FlowGraph.of(plan)
            self._history = JobHistory(graph, tuning)
            policy = make_policy(graph, tuning, history=self._history.load())
        self._run = SimulationRun(
            plan,
            egress=self._egress,
            seed=seed,
            cost=cost,
            link=link,
            limits=limits,
            policy=policy,
        )
        self._report: JobReport | None = None
        self._failure: BaseException | None = None
        inputs = [input_prints(plan.stages_of(slot)) for slot in slots_with_inputs(plan)]
        runs = sink_runs(plan, f"{plan.flow} (simulated)", inputs)
        try:
            self._sinks.open(plan.stages, folder="", runs=runs)
        except BaseException:
            self._sinks.leave()
            raise

    def _egress(self, stage: str, batch: Batch | None, is_end: bool) -> int:
        del is_end  # all are closed together
        return 0 if batch is None else self._sinks.write(stage, batch)

    @property
    def status(self) -> str:
        """starting, done or failed."""
        return "starting" if self._report is None else self._report.state

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", …, "error_ms", "rows"}}, in virtual time."""
        return latency_of(self.report())

    @property
    def metrics(self) -> JobReport:
        """The report as it stands; the same as `report()`."""
        return self.report()

    def report(self) -> JobReport:
        """Return the report as it stands."""
        return self._report or self._noted(self._run.report())

    def wait(self, timeout: float | None = None, on_report: OnReport | None = None) -> JobReport:
        """Run to the end; `timeout` is not needed in virtual time.

        Raises:
            SlackwaterError: what ended the job, each time.
        """
        del timeout
        if self._report is None:
            try:
                ended = self._run.run()
                self._sinks.close("done")
            except BaseException as problem:
                said = f"{type(problem).__name__}: {problem}"
                self._sinks.abort(said)
                self._report = self._noted(self._run.report(error=said))
                self._failure = problem
                raise
            if self._history is not None:
                self._history.save(self._run.samples)
            self._report = self._noted(ended)
        if self._failure is not None:
            raise self._failure
        if on_report is not None:
            on_report(self._report)
        return refuse_imbalance(self._report)

    def _noted(self, report: JobReport) -> JobReport:
        if report.tuning is not None and self._history is not None:
            report.tuning.status = {**report.tuning.status, **self._history.said}
        for sink in report.sinks:
            self._sinks.tell(sink)
        report.notes = [*report.notes, *published_notes(report.state, report.sinks)]
        return report

    def result(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered; runs the flow if it has not run."""
        _check_collects(self.plan.flow, collect_sinks(self.plan), sink)
        self.wait()
        return self._sinks.collected(sink).table()

    def stop(self) -> None:
        """Nothing runs outside `wait`."""

    def close(self) -> None:
        """Let go of the sinks' places, if it never ran."""
        self._sinks.leave()


def latency_of(report: JobReport) -> Latency:
    """Return {sink: {"p50_ms", …, "p999_ms", "max_ms", "error_ms", "old_s", "rows"}}.

    What the clocks leave open is in `error_ms`: each latency is within ± that of the true one.
    Above 0, `old_s` says for how long the sink has stood still: they are of before.
    """
    quantiles = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
    return {
        sink.name: {
            **{
                name: sink.latency.quantile(q) / 1e6 if sink.rows else float("nan")
                for name, q in quantiles.items()
            },
            "error_ms": sink.error_ns / 1e6,
            "old_s": sink.old_s or 0.0,
            "rows": float(sink.rows),
        }
        for sink in report.sinks
    }


def _check_collects(flow: str, collects: Collection[str], name: str) -> None:
    if name not in collects:
        there = ", ".join(collects) or "none"
        raise FlowError(
            f"flow {flow!r} has no collect sink {name!r} (there are: {there}); "
            "give the stream `.sink(name, collect_sink())`, or read the file it was written to"
        )
