"""Stage at work: queue, gate, operator, then further steps. One machine, both hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.outcomes import DIVERTED, FAILED, FILTERED, READY
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.merge import ReplicaReads, SlackGate, Writer
from slackwater.runtime.model import (
    END_NS,
    NS_PER_SECOND,
    START_NS,
    Batch,
    GateRead,
    Message,
    Progress,
    ReleaseRule,
)
from slackwater.runtime.model.diverted import MOST_TOLD, DivertedRow
from slackwater.runtime.model.state import Fields, restore, save
from slackwater.runtime.operators.ground import Operator, Result
from slackwater.runtime.plan.plan import Channel, Stage
from slackwater.runtime.plan.step import GatedStep
from slackwater.runtime.plan.steps import GateStep
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.accounts import count_source
from slackwater.runtime.schedule.actions import Work
from slackwater.runtime.schedule.chain import (
    Chain,
    Failed,
    StageOperator,
    count_alone,
    restore_report,
    steps_counted,
)
from slackwater.runtime.schedule.intake import PassIntake
from slackwater.runtime.schedule.intakes import intake_of
from slackwater.runtime.schedule.late import LateOutputs
from slackwater.runtime.schedule.outputs import StageOutputs
from slackwater.runtime.schedule.queues import path_queues
from slackwater.runtime.schedule.replicas import ReplicaOutputs
from slackwater.runtime.schedule.side_outputs import DivertedOutputs
from slackwater.runtime.schedule.source_at import Looks, StageSource, source_of
from slackwater.runtime.schedule.stage_sampler import StageSampler
from slackwater.runtime.sources.machine import SourceMachine

P = ParamSpec("P")
R = TypeVar("R")


def _changes(
    method: Callable[Concatenate[StageMachine, P], R],
) -> Callable[Concatenate[StageMachine, P], R]:
    """Make a method that changes a stage tell what is next."""

    @wraps(method)
    def changed(self: StageMachine, /, *args: P.args, **given: P.kwargs) -> R:
        done = method(self, *args, **given)
        self.next = self.wakeup()
        if self.on_next is not None:
            self.on_next(self)
        return done

    return changed


class StageMachine:
    """Machine of a stage. The slot says when it runs, and carries what it returns.

    Every row that comes in is queued, then held by the gate, then handed to the operator (or
    passed on); each move is counted. A method that changes what is to be done next says so: it is
    one of `_changes`.
    """

    STATE = Fields(
        "_counted",
        "queues",
        "intake",
        "_replica_outputs",
        "_operator_at",
        "source_at",
        "_sampled",
        "outputs",
        "_late",
        "_diverted",
        "is_finished",
        "moved_ns",
    )

    def __init__(
        self,
        stage: Stage,
        *,
        start_ns: int,
        limits: Limits | None = None,
        is_sampled: bool = False,
        interval_ns: int = NS_PER_SECOND,
        looks: Looks | None = None,
    ) -> None:
        self.stage = stage
        self._limits = limits or Limits()
        looks = looks or Looks(self._limits.source_gap_ns)
        self.source_at = source_of(stage, start_ns=start_ns, looks=looks)
        self.is_paced = self.source_at is not None and self.source_at.is_paced
        self.source = None if self.source_at is None else self.source_at.machine
        self.queues = path_queues(stage.inputs, self._limits.order)
        self.report = StageReport(
            stage.name,
            stage.kind,
            node="",
            slot="",
            has_gate=stage.is_gated,
            passes_on=stage.step.traits.passes_on,
        )
        self.gate: SlackGate | None = None
        reads: ReplicaReads | None = None  # of a replica, whose gate is another stage
        if stage.replica is not None:
            reads = ReplicaReads(len(stage.inputs))
        elif stage.is_gated:
            self.gate = SlackGate(
                [Writer(c.port, c.rank, c.is_mixed, c.shares_writers) for c in stage.inputs],
                rule=stage.rule,
                keeps_waits=is_sampled or stage.rule.hold_ns is not None,
            )
        self._sampler: StageSampler | None = None
        self.is_sampled = is_sampled
        if is_sampled:
            self._sampler = StageSampler(
                stage, self.gate, self.report, reads, start_ns=start_ns, interval_ns=interval_ns
            )
        held = reads if self.gate is None else self.gate
        self.intake = intake_of(
            stage, self.queues, self.report, self._sampler, start_ns=start_ns, held=held
        )
        self._leaving: PassIntake | None = None
        if stage.kind == "sink" and isinstance(self.intake, PassIntake):
            self._leaving = self.intake
        step = stage.step
        self._replica_outputs = ReplicaOutputs(stage, step) if isinstance(step, GateStep) else None
        self._operator_at: StageOperator | None = None
        if isinstance(step, GatedStep) and self._replica_outputs is None:
            self._operator_at = StageOperator(step, most_kept_rows=self._limits.most_kept_rows)
        is_alone = stage.step.traits.role is Role.EACH_ROW
        self.chain = Chain((stage.step, *stage.chain) if is_alone else stage.chain)
        self.report.steps = steps_counted(stage, self._operator_at, self.chain)
        if self.source is not None and self._sampler is None:  # a sampler looks at all rows
            self.source.row_tests = self.chain.row_tests
        late = [channel for channel in stage.outputs if channel.late is not None]
        self._late = LateOutputs(late, start_ns=start_ns) if late else None
        diverted = [channel for channel in stage.outputs if channel.diverted is not None]
        self._diverted = DivertedOutputs(diverted, start_ns=start_ns) if diverted else None
        results = [one for one in stage.outputs if one.late is None and one.diverted is None]
        self.outputs = StageOutputs(results, start_ns=start_ns)
        self.output_names = [channel.name for channel in stage.outputs]
        self.moved_ns = start_ns  # when it let rows go
        self.is_finished = False
        self.next: Wakeup | None = None
        """Next work, after the last change; None if it waits for something to come."""
        self.on_next: Callable[[StageMachine], None] | None = None
        """Is told when the next work may have changed: the slot's `ReadyStages`."""
        self.begin()

    # -- what may be done ---------------------------------------------------------------

    @_changes
    def begin(self) -> None:
        """Begin, in a fresh stage or after a restore."""

    @_changes
    def deliver(self, channel: str, message: Message, now_ns: int, *, link_ns: int = 0) -> None:
        """Queue a message that has arrived on a channel, `link_ns` after it was sent."""
        if self._sampler is not None:
            self._sampler.count(now_ns, self.queues)
            self._sampler.travelled(link_ns)
        self.queues.push(channel, message, now_ns)
        self.intake.heard(channel, now_ns)
        self.report.rows_in += message.rows

    def wakeup(self) -> Wakeup | None:
        """Return the next work; None if it waits for something.

        Source: [mace] Def. 7; a source's next event counts from when it was due.
        """
        if self.source_at is not None:
            return self.source_at.wakeup
        rank_ns = self.queues.earliest_stimulus_ns()
        if self.intake.more:
            goes_on_ns = self.intake.goes_on_ns
            return Wakeup(START_NS, goes_on_ns if rank_ns is None else min(goes_on_ns, rank_ns))
        due_ns = self._due_by_clock_ns()
        if rank_ns is not None:
            return Wakeup(START_NS, rank_ns if due_ns is None else min(rank_ns, due_ns))
        idle_ns = self.intake.idle_from_ns()
        if idle_ns is not None:
            due_ns = idle_ns if due_ns is None else min(due_ns, idle_ns)
        return None if due_ns is None else Wakeup(due_ns, due_ns)

    def _due_by_clock_ns(self) -> int | None:
        """Return when the gate or the operator is due by the clock; None if never."""
        hold_ns = None if self.gate is None else self.gate.hold_ends_ns()
        due_ns = None if self._operator_at is None else self._operator_at.due_ns
        if due_ns is None or hold_ns is None:
            return hold_ns if due_ns is None else due_ns
        return min(due_ns, hold_ns)

    def came_ns(self, urgency_ns: int) -> int:
        """Return when the oldest message came; without one, when the work was due."""
        came_ns = None if self.intake.more else self.queues.oldest_ns()
        return urgency_ns if came_ns is None else came_ns

    def waited_ns(self, now_ns: int) -> int:
        """Return the wait of its next rows for the stage, not for a promise."""
        if self.source_at is not None:
            return self.source_at.behind_ns(now_ns)
        since_ns = self.intake.more_since_ns if self.intake.more else self.queues.oldest_ns()
        return 0 if since_ns is None else max(now_ns - since_ns, 0)

    @property
    def progress_ns(self) -> int:
        """Promise of a source: the least goes first. START_NS for other stages.

        Paced sources are alike: of rows that are due together the first in rank goes first, as in
        the gate, where rows of one event time that come the other way round would be late.
        """
        source_at = self.source_at
        if source_at is None:
            return START_NS
        return START_NS + 1 if source_at.is_paced else source_at.machine.progress.promise_ns

    # -- doing it -----------------------------------------------------------------------

    @_changes
    def open(self, now_ns: int) -> None:
        """Open the input of a source and read its first block, before the start."""
        if self.source_at is not None:
            self.source_at.open(now_ns)

    @_changes
    def woken(self, now_ns: int) -> None:
        """Poll the input of a source again: it may have something."""
        if self.source_at is not None:
            self.source_at.woken(now_ns)

    @_changes
    def set_rule(self, rule: ReleaseRule, *, trials: Sequence[Trial] = ()) -> None:
        """Let the gate release by another rule from the next slice on.

        Source: setSLT of [ssg] §4.1. `trials` are rules of which only account is kept, in a slot
        that takes samples.

        Raises:
            SettingError: the stage has no gate, or one that cannot hold rows by the clock.
        """
        if (gate := self.gate) is None:
            raise SettingError("it has no gate, so no rule to be set")
        before = gate.rule
        gate.set_rule(rule)
        if replace(rule, hold_ns=None) != replace(before, hold_ns=None):
            # What may go now need not wait for a message.
            self.intake.more = self.intake.more or gate.may_release()
        if self._sampler is not None:
            self._sampler.try_out(trials)

    @_changes
    def work(self, now_ns: int, *, max_rows: int) -> Work:
        """Work off about `max_rows` rows."""
        if (sampler := self._sampler) is not None:
            sampler.count(now_ns, self.queues)
            sampler.begin()
        source = self.source_at
        if source is None:
            return self._work_off(now_ns, max_rows)
        return self._take_from(source, now_ns, max_rows)

    @_changes
    def left_out(self, rows: int, now_ns: int) -> None:
        """Count rows of the source that its filter has left out already."""
        self.moved_ns = now_ns
        self.report.batches += 1
        self.chain.tested(0, rows, self.report)

    def _take_from(self, source: StageSource, now_ns: int, max_rows: int) -> Work:
        machine = source.machine
        before = machine.taken
        message = source.work(now_ns, max_rows=max_rows)
        released = 0 if message is None else message.rows + machine.left_out
        rows = max(machine.taken - before, released)
        if message is None:
            return Work(None, (), rows, released, has_read=True)
        self.moved_ns = now_ns
        if self._sampler is not None:
            self._sampler.handed_over(message)
        return Work(self._emit_source(message, machine, now_ns), (), rows, released)

    def _work_off(self, now_ns: int, max_rows: int) -> Work:
        if self._leaving is not None:
            return self._leave(self._leaving, now_ns, max_rows)
        read, used, rows = self.intake.take(now_ns, max_rows=max_rows)
        released = 0 if read is None else read.rows
        if read is None:
            operator_at = self._operator_at
            due_ns = None if operator_at is None else operator_at.due_ns
            if operator_at is None or due_ns is None or due_ns > now_ns:
                return Work(None, used, rows)
            read = operator_at.nothing_new()
        self.moved_ns = now_ns
        message, result = self._emit(read, now_ns)
        if result is None:
            return Work(message, used, rows, released)
        return Work(message, used, rows, released, result.compared, result.passed_over)

    def _leave(self, intake: PassIntake, now_ns: int, max_rows: int) -> Work:
        """Return the rows that leave at a sink, which has no operator."""
        message, used, rows = intake.message(now_ns, max_rows=max_rows)
        if message is None:
            return Work(None, used, rows)
        self.moved_ns = now_ns
        self.report.batches += 1
        self.report.rows_out += message.rows
        self.is_finished = message.progress.is_end
        if not message.rows and message.progress.promise_ns <= self.outputs.progress.promise_ns:
            return Work(None, used, rows)
        return Work(message, used, rows, message.rows)

    def _emit_source(self, message: Message, source: SourceMachine, now_ns: int) -> Message:
        if source.is_tested:
            self.chain.tested(message.rows, source.left_out, self.report)
        self.report.batches += 1
        self.report.counts[READY] += message.rows
        self.is_finished = message.progress.is_end
        left = self._apply_chain(message.batch, is_input=True, first=int(source.is_tested))
        if self._diverted is not None:
            rows = source.take_diverted(now_ns)
            self.report.counts[READY] += len(rows)
            self._divert(self._diverted, self.stage.name, rows)
        return message.with_batch(left)

    def _divert(self, outputs: DivertedOutputs, step: str, rows: list[DivertedRow]) -> None:
        """Send rows that a step could not use to their stream."""
        self.report.counts[DIVERTED] += len(rows)
        self.report.rows_out += len(rows)
        outputs.take(step, rows)

    def _emit(self, released: GateRead, now_ns: int) -> tuple[Message | None, Result | None]:
        """Return what a read makes leave, and the operator's result."""
        self.report.batches += 1
        batch: Batch | None = None
        result: Result | None = None
        has_late = False
        promised_ns = self.outputs.progress.promise_ns
        promise_ns = released.progress.promise_ns
        if self._replica_outputs is not None:
            self.report.rows_out += self._replica_outputs.partition(released)
        elif (operator_at := self._operator_at) is not None:
            result, kept = operator_at.work(released, now_ns)
            if self._sampler is not None and result.waited_ns:
                self._sampler.waited(result.waited_ns)
            self.report.counts[FILTERED] += kept
            if result.failed:
                failed = operator_at.failed(result, step=self.stage.subject.step)
                self._count_failed(failed, is_input=True)
            if self._late is not None:
                has_late = self._late.take(result.late, promise_ns=promised_ns)
            promise_ns = result.promise_ns
            batch = self._apply_chain(result.rows, is_input=operator_at.passes_on)
        else:  # one message: no row is late where there is no gate
            batch = self._apply_chain(released.ports[0], is_input=True)
        advanced = promise_ns > promised_ns
        promise_ns = max(promise_ns, promised_ns)
        if promise_ns == END_NS and not self.intake.more:
            self.is_finished = True
        _, stimulus_ns, newest_ns, arrived = released.progress
        if not self.outputs.tells_arrivals:
            arrived = None
        has_more = self._diverted is not None and self._diverted.has_rows
        has_more = has_more or bool(advanced or has_late or arrived or self._replica_outputs)
        if batch is None and not has_more:
            return None, result
        return Message(batch, Progress(promise_ns, stimulus_ns, newest_ns, arrived)), result

    def _apply_chain(self, batch: Batch | None, *, is_input: bool, first: int = 0) -> Batch | None:
        if batch is None or not (before := len(batch.event_time_ns)):
            return None
        batch, rows, added = self.chain.apply(batch, first)
        missing = before + added - rows
        for failed in self.chain.failed():
            missing -= len(failed.rows)
            self._count_failed(failed, is_input=is_input)
        if is_input:
            self.report.counts[FILTERED] += missing
            self.report.exploded += added
        else:
            self.report.results_filtered += missing
        self.report.rows_out += rows
        return batch if rows else None

    def _count_failed(self, failed: Failed, *, is_input: bool) -> None:
        """Count rows for which a user's function raised, and send them to their stream."""
        told = map(str, failed.rows[: MOST_TOLD - len(self.report.first_bad)])
        self.report.first_bad += told
        if failed.is_diverted:
            assert self._diverted is not None, "a stream takes them"
            self._divert(self._diverted, failed.step, failed.rows)
        elif is_input:
            self.report.counts[FAILED] += len(failed.rows)
        else:
            self.report.results_filtered += len(failed.rows)

    def charge(self, now_ns: int, took_ns: int, idle_ns: int, *, has_read: bool = False) -> None:
        """Count what the last slice took, and how long its slot has been idle.

        Args:
            now_ns: when the slice began.
            took_ns: its time.
            idle_ns: of the slot, so far.
            has_read: see `Work`.
        """
        self.report.service_ns += took_ns
        if (operator_at := self._operator_at) is not None:
            operator_at.operator.charge(took_ns, idle_ns)
        if self._sampler is not None:
            self._sampler.end(now_ns, took_ns, counts=not has_read)

    # -- what it says of itself ---------------------------------------------------------

    def samples(self, now_ns: int) -> list[StageSample]:
        """Return the samples of the seconds that are over by now, once."""
        if self._sampler is None:
            return []
        self._sampler.count(now_ns, self.queues)
        return self._sampler.samples()

    def may_grant(self, channel: str) -> bool:
        """Whether the gate has room for more of a channel, or everybody waits for it."""
        return self.intake.may_grant(channel, self._limits)

    @property
    def waits_for_silence(self) -> bool:
        """Whether a channel may be left out once it has been silent for too long."""
        return self.intake.waits_for_silence

    @_changes
    def allow(self, channel: str, *, may_send: bool) -> None:
        """Note whether a channel has credit: without it, it is not silent."""
        self.intake.allow(channel, may_send=may_send)

    @property
    def rows_waiting(self) -> int:
        """Rows in its queue and its gate."""
        return self.queues.rows + (self.gate.rows_held if self.gate is not None else 0)

    @property
    def operator(self) -> Operator | None:
        """Operator after the gate; None if the stage has no operator."""
        return None if self._operator_at is None else self._operator_at.operator

    def report_at(self, now_ns: int) -> StageReport:
        """Return the stage's counters as they stand; they change no more."""
        report = self.report.copy()
        report.queue_wait_ns = self.queues.wait_ns
        report.still_ns = None if self.is_finished else max(now_ns - self.moved_ns, 0)
        if self.source is not None:
            count_source(report, self.source, now_ns)
        else:
            dropped = 0 if self.operator is None else self.operator.late_dropped
            self.intake.count(report, dropped, now_ns)
        if self._operator_at is not None:
            self._operator_at.fill(report)
        elif self.stage.step.traits.role is not Role.EACH_ROW:
            count_alone(report)
        if isinstance(self.stage.step, GateStep):
            report.share = self.stage.step.traits.sharing.share
        return report

    def outgoing(self, message: Message, now_ns: int) -> Sequence[tuple[Channel, Message]]:
        """Return the message of each output channel, with its columns only."""
        if self._replica_outputs is not None:
            self.outputs.reach(message.progress.promise_ns, message.progress.stimulus_ns)
            return self._replica_outputs.take()
        sends = self.outputs.parts(message, now_ns)
        for side in (self._late, self._diverted):
            if side is not None:
                sends = [*sends, *side.parts(message, now_ns)]
        return sends

    @_changes
    def close(self) -> None:
        """Close the source's input."""
        if self.source is not None:
            self.source.close()

    # -- its state ----------------------------------------------------------------------

    def after_restore(self) -> None:
        """Find the next work."""
        self.begin()

    @property
    def _counted(self) -> dict[str, Any]:
        return self.report.to_plain()

    @_counted.setter
    def _counted(self, counts: dict[str, Any]) -> None:
        restore_report(self.report, counts)

    @property
    def _sampled(self) -> Any:
        return None if self._sampler is None else save(self._sampler)

    @_sampled.setter
    def _sampled(self, state: Any) -> None:
        # A snapshot of a slot that took no samples may go on in one that does, and vice versa.
        if self._sampler is not None and state is not None:
            restore(self._sampler, state)
        elif self._sampler is not None:
            self._sampler.restart()
