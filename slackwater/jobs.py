"""Control a submitted flow on a cluster; in the simulator: `simulated_job.py`."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.foresight.chosen.admission import RunningFlow
from slackwater.runtime.measure.assemble import unused_notes
from slackwater.runtime.measure.ledger import refuse_imbalance
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND, Duration
from slackwater.runtime.other_names import SaysOurName
from slackwater.runtime.plan.plan import Plan, collect_sinks
from slackwater.runtime.plan.slots import SlotPlace

if TYPE_CHECKING:
    from slackwater.actors.jobs.detached import DetachedJob
    from slackwater.actors.jobs.job import RayJob
    from slackwater.actors.jobs.lasting import LastingJob
    from slackwater.actors.jobs.logs import LogPart
    from slackwater.actors.jobs.records import JobRecord
    from slackwater.runtime.foresight.predicted.prediction import Prediction
    from slackwater.runtime.foresight.shared_cores import SharedCores

OnReport = Callable[[JobReport], None]
Latency = Mapping[str, Mapping[str, float]]

REPORT_EVERY_S = 0.25


class Running(Protocol):
    """Seam between a `Job` and what runs it: this process, or a coordinator."""

    @property
    def pids(self) -> Mapping[str, int]:
        """{slot: process id of its worker, on its node}."""
        ...

    @property
    def status(self) -> str:
        """starting, running, done, stopped, failed or lost."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most `timeout_s`; return whether it came."""
        ...

    def report(self) -> JobReport:
        """Ask the slots for their reports; return the job's."""
        ...

    @property
    def latest_report(self) -> JobReport:
        """The report as last heard."""
        ...

    def collected(self, sink: str) -> pa.Table:
        """Return the rows of a collect sink."""
        ...

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        """Move stages to other slots."""
        ...

    @property
    def places(self) -> Mapping[str, SlotPlace]:
        """{slot: its place}, after a `replace`."""
        ...

    def stop(self) -> None:
        """End the job now."""
        ...


class ShownJob(SaysOurName, ABC):
    """A job shows itself as its last report: a few lines."""

    _called, _place = "a job", "job"

    @property
    @abstractmethod
    def metrics(self) -> JobReport:
        """Report as last heard."""

    @abstractmethod
    def _wait(self, timeout: float | None, on_report: OnReport | None) -> JobReport:
        """Do what `wait` promises."""

    def wait(
        self,
        timeout: float | None = None,
        on_report: OnReport | None = None,
        *,
        progress: bool = False,
    ) -> JobReport:
        """Wait for the end and return the last report.

        Ctrl-C, or a notebook's interrupt, raises KeyboardInterrupt. A job on Ray goes on, until
        `stop()` or the end of its cluster; a simulated one stops.

        Args:
            timeout: seconds; None if there is no limit. In the simulator it has no use.
            on_report: called with a fresh report about four times a second; in the simulator once,
                at the end.
            progress: whether to show these reports, on the terminal or in the notebook's cell.

        Raises:
            SlackwaterError: the job failed; LedgerError: it is done, and rows are missing.
            TimeoutError: the job still runs.
        """
        if not progress:
            report = self._wait(timeout, on_report)
        else:
            from slackwater.report.live_view import progress_shown  # noqa: PLC0415 (only who looks)

            with progress_shown(also=on_report) as show:
                report = self._wait(timeout, show)
        for note in unused_notes(report.stages):
            logging.getLogger("slackwater").warning("%s: %s", report.flow, note)
        return report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.metrics}>"

    def _repr_html_(self) -> str:
        return self.metrics._repr_html_()


class Job(ShownJob):
    """Flow that runs on Ray, attached to this process or detached.

    Attributes:
        id: its id in the cluster, or, if attached, in this process.
        flow: name of its flow.
        placement: {stage: slot}.
        plan: its plan; None if another process submitted the job.
        is_detached: whether it outlives this process.
        checkpoints: text on its checkpoints, or why it takes none; "" if another process submitted
            the job.
        beside: returns the machines with fewer cores than slots, and the load of others there; None
            if not known here.
    """

    beside: Callable[[], Sequence[SharedCores]] | None = None

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
        self.checkpoints = ""
        self._collects = collects
        self._running = running

    @classmethod
    def attached(cls, job_id: str, plan: Plan, running: RayJob | LastingJob) -> Job:
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
        """running, done, stopped or failed; of a detached job also starting or lost.

        Like all properties of an attached job it never waits, and is at most a moment old, since a
        thread looks after the job. Of a detached job, it asks the coordinator.
        """
        return self._running.status

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", …, "error_ms", "rows"}}, stimulus to egress, as last heard."""
        return latency_of(self._running.latest_report)

    @property
    def metrics(self) -> JobReport:
        """Report as last heard, a second ago or so; `report()` asks the slots."""
        return self._running.latest_report

    @property
    def needs(self) -> RunningFlow:
        """Predicted need, if known."""
        name = f"flow {self.flow!r}"
        slots = len(set(self.placement.values()))
        expected = None if self.plan is None else self.plan.expected
        if expected is None:
            return RunningFlow(
                name=name, cores=0.0, slots=slots, worst_s=0.0, deadline_s=None, is_known=False
            )
        deadline_ns = None if self.plan is None else self.plan.deadline_ns
        return RunningFlow(
            name=name,
            cores=sum(expected.cores.values()),
            slots=slots,
            worst_s=float("inf") if expected.is_unbounded else expected.worst_s,
            deadline_s=None if deadline_ns is None else deadline_ns / NS_PER_SECOND,
        )

    def workers(self) -> dict[str, int]:
        """Return {slot: process id of its worker, on its node}."""
        return dict(self._running.pids)

    @property
    def record(self) -> JobRecord:
        """Record of a detached job in the cluster's store, as last heard.

        Raises:
            FlowError: the job is attached: only this process knows of it.
        """
        from slackwater.actors.jobs.detached import DetachedJob  # noqa: PLC0415 (brings in Ray)

        if not isinstance(self._running, DetachedJob):
            raise FlowError(
                f"job {self.id} is attached to this process and has neither a record nor logs in "
                "the cluster; submit it with detach=True"
            )
        return self._running.record

    def report(self) -> JobReport:
        """Return the present report: stages, channels, sinks, the ledger."""
        return self._running.report()

    def _wait(self, timeout: float | None, on_report: OnReport | None) -> JobReport:
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
        """Return the rows of a collect sink.

        Raises:
            FlowError: no such collect sink.
            WorkerDied: the rows are gone. An ended detached job keeps them until a caller
                has fetched them, 10 minutes at most.
        """
        check_collects(self.flow, self._collects, sink)
        return self._running.collected(sink)

    def stop(self) -> None:
        """End the job now; the sinks keep their whole batches."""
        self._running.stop()

    def replace(
        self, placement: Mapping[str, str] | Prediction, *, gap: Duration | None = None
    ) -> Replaced:
        """Move stages to other slots: slots concerned stand still for a moment.

        Queues, gates and the states of operators move along, so ready-only results stay the same.
        State inside users' functions does not.

        Args:
            placement: {stage: slot or node} of the moving stages, or {"*": slot or node} for all
                that can move; others stay. Or a prediction of the flow: its differing stages move,
                if that lowers the worst latency ahead, the gap included.
            gap: assumed standstill of the slots, to weigh a prediction; 250 ms if None.

        Returns:
            The outcome, as in the report (`replaced`): the length of the standstill, or why nothing
            has moved (`problem`). A worker that dies meanwhile ends the job, as always.

        Raises:
            SettingError: the prediction is for another version of the flow.
            FlowError: an unknown stage, slot or node; a stage that cannot move (a live
                source, a sink that is not a collect sink); or the job has ended.
            ClusterError: no room for a new slot.
        """
        prediction = None if isinstance(placement, Mapping) else placement
        machines = None if prediction is None or self.beside is None else self.beside()
        places = self._running.places
        moves = wanted_moves(placement, self.placement, gap=gap, places=places, machines=machines)
        if isinstance(moves, Replaced):
            return moves
        done = self._running.replace(moves)
        if done.problem is None:
            self.placement |= {move.stage: move.target for move in done.moves}
            if self.plan is not None:
                places = dict(self._running.places)
                self.plan = replace(self.plan, slots=dict(self.placement), places=places)
                if prediction is not None:
                    self.plan = replace(self.plan, expected=prediction.expected())
        return done

    def logs(
        self, *, stage: str | None = None, tail: int | None = None, seen: Sequence[LogPart] = ()
    ) -> list[LogPart]:
        """Return the lines of a detached job's processes, also after its end.

        Args:
            stage: only the slot of this stage.
            tail: the last lines of each stream only.
            seen: parts returned before; then only new lines are returned.

        Raises:
            FlowError: no such stage, or an attached job, whose log is its driver's.
        """
        from slackwater.actors.jobs.logs import read_logs  # noqa: PLC0415 (brings in Ray)

        return read_logs(self.record, stage=stage, tail=tail, earlier=seen)

    def close(self) -> None:
        """Release the job: stop it if it is attached and runs; results stay."""
        if not self.is_detached:
            self.stop()


def wanted_moves(
    placement: Mapping[str, str] | Prediction,
    running: Mapping[str, str],
    *,
    gap: Duration | None,
    places: Mapping[str, SlotPlace],
    machines: Sequence[SharedCores] | None = None,
) -> Mapping[str, str] | Replaced:
    """Return the moves of a job's stages, as given or as predicted.

    Args:
        placement: {stage: slot or node}; or a prediction, whose moves are weighed.
        running: {stage: slot} at present.
        gap: assumed standstill of the slots; as of `worthwhile_moves` if None.
        places: {slot: place of the slot}.
        machines: present load of others; as in the prediction if None.

    Returns:
        The moves; or why nothing will move.

    Raises:
        SettingError: as of `worthwhile_moves`.
    """
    if isinstance(placement, Mapping):
        return placement
    from slackwater.runtime.foresight.chosen.worthwhile import (  # noqa: PLC0415 (only who predicts)
        worthwhile_moves,
    )

    return worthwhile_moves(placement, running, gap=gap, places=places, machines=machines)


def latency_of(report: JobReport) -> Latency:
    """Return {sink: {"p50_ms", …, "p999_ms", "max_ms", "error_ms", "old_s", "rows"}}.

    The clocks leave an uncertainty of `error_ms`: each latency is within ± that of the true one.
    Above 0, `old_s` is how long the sink has stood still: the figures are of before.
    """
    quantiles = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
    return {
        sink.name: {
            **{
                name: sink.latency.quantile(q) / 1e6 if sink.measured else float("nan")
                for name, q in quantiles.items()
            },
            "error_ms": sink.error_ns / 1e6,
            "old_s": sink.old_s or 0.0,
            "rows": float(sink.rows),
        }
        for sink in report.sinks
    }


def check_collects(flow: str, collects: Collection[str], name: str) -> None:
    """Check that a flow has a collect sink of this name.

    Raises:
        FlowError: no such collect sink; names the existing ones.
    """
    if name not in collects:
        names = ", ".join(collects) or "none"
        raise FlowError(
            f"flow {flow!r} has no collect sink {name!r} (there are: {names}); "
            "give the stream `.sink(name, collect_sink())`, or read the file it was written to"
        )
