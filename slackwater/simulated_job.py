"""Run a flow in the simulator, when its job is waited for."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from slackwater.actors.sinks.run_fingerprints import input_prints, sink_runs, slots_with_inputs
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.tuning.sample_history import JobHistory
from slackwater.end_signals import END_SIGNALS, FROM_OUTSIDE
from slackwater.jobs import (
    Latency,
    OnReport,
    ShownJob,
    check_collects,
    latency_of,
    wanted_moves,
)
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import Decider
from slackwater.runtime.errors import SettingError, SlackwaterError
from slackwater.runtime.foresight.live import LiveEstimate
from slackwater.runtime.interrupts import for_user
from slackwater.runtime.measure.ledger import refuse_imbalance
from slackwater.runtime.measure.published import published_notes
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.placement.moved import moved_plan
from slackwater.runtime.plan.plan import Plan, collect_sinks
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.shown import MOST_ERROR, in_words, text_of
from slackwater.runtime.simulate import CostModel, Fault, LinkModel, Replace
from slackwater.runtime.simulate import Simulation as SimulationRun
from slackwater.runtime.tune import make_policy

if TYPE_CHECKING:
    from slackwater.runtime.foresight.predicted.prediction import Prediction


class SimulatedJob(ShownJob):
    """A flow that runs in virtual time, when it is waited for."""

    def __init__(
        self,
        plan: Plan,
        *,
        seed: int,
        cost: CostModel | None,
        link: LinkModel | None,
        faults: Sequence[Fault] = (),
        slots: Sequence[SlotPlace] = (),
    ) -> None:
        self.plan, self._offered = plan, slots
        self._sinks = SlotSinks(clock_ns=lambda: self._run.now_ns, pause=lambda _: None)
        self._history: JobHistory | None = None
        policy: Decider | None = None
        if plan.tuning is not None:
            graph = FlowGraph.of(plan)
            self._history = JobHistory(graph, plan.tuning)
            policy = make_policy(graph, plan.tuning, history=self._history.load())
        self._run = SimulationRun(
            plan,
            egress=self._sinks,
            faults=faults,
            seed=seed,
            cost=cost,
            link=link,
            policy=policy,
            estimator=LiveEstimate,
        )
        self._placed = plan  # after all re-placements so far
        self._report: JobReport | None = None
        self._failure: BaseException | None = None
        inputs = [input_prints(plan.stages_of(slot)) for slot in slots_with_inputs(plan)]
        runs = sink_runs(plan, f"{plan.flow} (simulated)", inputs)
        try:
            self._sinks.open(plan.stages, folder="", runs=runs)
        except BaseException:
            self.close()
            raise

    @property
    def status(self) -> str:
        """starting, done, stopped or failed."""
        return "starting" if self._report is None else self._report.state

    @property
    def latency(self) -> Latency:
        """{sink: {"p50_ms", …, "error_ms", "rows"}}, in virtual time."""
        return latency_of(self.report())

    @property
    def metrics(self) -> JobReport:
        """The present report; the same as `report()`."""
        return self.report()

    def report(self) -> JobReport:
        """Return the present report."""
        return self._report or self._noted(self._run.report())

    def _wait(self, timeout: float | None, on_report: OnReport | None) -> JobReport:
        """Run to the end.

        Raises:
            SlackwaterError: the job failed; raised at each call.
            KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP came, and the job has been stopped; a
                second one breaks off work that does not end, and fails the job.
        """
        del timeout  # it has no use in virtual time
        if self._report is None:
            interrupt = self._run.requested_stop.interrupt
            with (
                END_SIGNALS.caught((signal.SIGINT, *FROM_OUTSIDE)),
                END_SIGNALS.heard_by(interrupt, breaks_off=True),
            ):
                self._report = self._run_to_end()
        if self._failure is not None:
            raise self._failure
        if on_report is not None:
            on_report(self._report)
        return refuse_imbalance(self._report)

    def _run_to_end(self) -> JobReport:
        try:
            ended = self._run.run()
        except BaseException as problem:
            is_ours = isinstance(problem, SlackwaterError)
            error = text_of(problem, MOST_ERROR) if is_ours else in_words(problem)
            if isinstance(problem, KeyboardInterrupt):
                error = "interrupted, and broken off"
            self._run.abandon(error)
            self._report = self._noted(self._run.report(error=error))
            self._failure = for_user(problem)
            if is_ours:  # its text says all: our frames would hide it
                raise problem.with_traceback(None) from problem.__cause__
            raise
        self._run.abandon("it did not end when told to, and was killed")
        if self._history is not None:
            self._history.save(self._run.samples)
        return self._noted(ended)

    def replace(
        self,
        placement: Mapping[str, str] | Prediction,
        *,
        at: Duration = "0s",
        gap: Duration | None = None,
    ) -> Replaced | None:
        """Move stages while the flow runs: slots concerned stand still for a moment.

        Call it before `wait`; several times for several moves, each from the state that the
        previous one left. The outcome is in the report (`replaced`).

        Args:
            placement: {stage: slot or node} of the moving stages, or {"*": slot or node} for all
                that can move; others stay. Or a prediction: its differing stages move, if that is
                worth the gap.
            at: virtual time of the move.
            gap: assumed standstill of the slots, to weigh a prediction; 250 ms if None.

        Returns:
            Why nothing will move, after weighing a prediction; None if stages will move.

        Raises:
            FlowError: an unknown stage, slot or node, or a stage that cannot move.
            SettingError: the job has already run, or the time is not valid.
        """
        if self._report is not None:
            raise SettingError(
                f"job {self.plan.flow!r} has already run; in virtual time call replace() before "
                "wait()"
            )
        now = self._placed
        moves = wanted_moves(placement, now.slots, gap=gap, places=now.places)
        if isinstance(moves, Replaced):
            return moves
        self._placed = moved_plan(now, moves, self._offered)
        self._run.replacing.add(Replace(duration_ns(at, what="at"), self._placed))
        return None

    def _noted(self, report: JobReport) -> JobReport:
        if report.tuning is not None and self._history is not None:
            report.tuning.status = {**report.tuning.status, **self._history.words}
        for sink in report.sinks:
            self._sinks.tell(sink)
        notes = published_notes(report.state, report.sinks)
        report.notes += [note for note in notes if note not in report.notes]
        return report

    def result(self, sink: str) -> pa.Table:
        """Return the rows of a collect sink; runs the flow if it has not run."""
        check_collects(self.plan.flow, collect_sinks(self.plan), sink)
        self.wait()
        return self._sinks.collected(sink).table()

    def stop(self) -> None:
        """End the run after its slice; before `wait`, at its beginning."""
        self._run.requested_stop.ask()

    def close(self) -> None:
        """Release the sinks' paths, if the job never ran."""
        self._sinks.leave()
