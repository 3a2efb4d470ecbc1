"""Stage at work: queue, gate, operator, then further steps. One machine, both hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.outcomes import COMBINED, DIVERTED, FAILED, FILTERED
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.merge import ReplicaReads, SlackGate, Writer
from slackwater.runtime.model import (
    NS_PER_SECOND,
    Batch,
    Message,
    Progress,
    ReleaseRule,
)
from slackwater.runtime.model.diverted import MOST_REPORTED, DivertedRow
from slackwater.runtime.model.state import Fields, restore, save
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.plan.plan import Channel, Stage
from slackwater.runtime.plan.steps import GateStep, SourceStep
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.actions import Egress, Work
from slackwater.runtime.schedule.chain import (
    Chain,
    Failed,
    count_alone,
    restore_report,
    steps_counted,
)
from slackwater.runtime.schedule.gated_nodes import OperatorNode, OrderNode, SharedGateNode
from slackwater.runtime.schedule.gathered_rows import GatheredRows
from slackwater.runtime.schedule.intake import intake_of
from slackwater.runtime.schedule.late import LateOutputs
from slackwater.runtime.schedule.node import Handed, Node
from slackwater.runtime.schedule.outputs import StageOutputs
from slackwater.runtime.schedule.pass_node import PassNode
from slackwater.runtime.schedule.polls import Looks
from slackwater.runtime.schedule.queues import path_queues
from slackwater.runtime.schedule.side_outputs import DivertedOutputs
from slackwater.runtime.schedule.source_node import SourceNode, source_of
from slackwater.runtime.schedule.stage_sampler import StageSampler

P = ParamSpec("P")
R = TypeVar("R")


def _changes(
    method: Callable[Concatenate[StageMachine, P], R],
) -> Callable[Concatenate[StageMachine, P], R]:
    """Make a method that changes a stage tell what is next."""

    @wraps(method)
    def changed(self: StageMachine, /, *args: P.args, **given: P.kwargs) -> R:
        done = method(self, *args, **given)
        self._tell_next()
        return done

    return changed


class StageMachine:
    """Machine of a stage. The slot says when it runs, and carries what it returns.

    Every row that comes in is queued, then held by the gate, then handed to the operator (or
    passed on); each move is counted. A method that changes what is to be done next says so: it is
    one of `_changes`.
    """

    STATE = Fields(
        "queues",
        "node",
        "outputs",
        "_late",
        "_diverted",
        "_gathered",
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
        has_deadline: bool = False,
    ) -> None:
        self.stage = stage
        self._limits = limits or Limits()
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
        if stage.shares_gate:
            reads = ReplicaReads(len(stage.inputs))
        elif stage.is_gated:
            self.gate = SlackGate(
                [
                    Writer(c.port, c.rank, c.is_mixed, c.shares_writers, c.may_be_late)
                    for c in stage.inputs
                ],
                rule=stage.rule,
                keeps_waits=is_sampled or stage.rule.hold_ns is not None,
            )
        self._sampler: StageSampler | None = None
        self.is_sampled = is_sampled
        if is_sampled:
            self._sampler = StageSampler(
                stage, self.gate, self.report, reads, start_ns=start_ns, interval_ns=interval_ns
            )
        looks = looks or Looks(self._limits.source_gap_ns)
        self.node = self._node_of(reads, looks, start_ns=start_ns)
        node = self.node
        gated = OperatorNode | SharedGateNode | OrderNode
        self.intake = node.intake if isinstance(node, gated) else None
        self.source = self.node if isinstance(self.node, SourceNode) else None
        self.is_paced = self.source is not None and self.source.is_paced
        is_alone = stage.step.traits.role is Role.EACH_ROW
        self.chain = Chain((stage.step, *stage.chain) if is_alone else stage.chain)
        own = self.node.counts if isinstance(self.node, OperatorNode) else None
        self.report.steps = steps_counted(stage, own, self.chain)
        if self.source is not None and self._sampler is None:  # a sampler looks at all rows
            self.source.row_tests = self.chain.row_tests
        late = [channel for channel in stage.outputs if channel.late is not None]
        self._late = LateOutputs(late, start_ns=start_ns) if late else None
        diverted = [channel for channel in stage.outputs if channel.diverted is not None]
        self._diverted = DivertedOutputs(diverted, start_ns=start_ns) if diverted else None
        results = [
            channel
            for channel in stage.outputs
            if channel.late is None and channel.diverted is None
        ]
        self.outputs = StageOutputs(results, start_ns=start_ns)
        self._gathered: GatheredRows | None = None
        if self.source is not None and stage.is_backlog:
            self._gathered = GatheredRows.of(
                stage.outputs, self._limits, has_deadline=has_deadline, is_sampled=is_sampled
            )
        self.output_names = [channel.name for channel in stage.outputs]
        self.moved_ns = start_ns  # when it let rows go
        self.is_finished = False
        self.next: Wakeup | None = None
        """Next work, after the last change; None if it waits for something to come."""
        self.on_next: Callable[[], None] | None = None
        """Is told when the next work may have changed: the slot's `ReadyStages`."""
        self.begin()

    def _node_of(self, reads: ReplicaReads | None, looks: Looks, *, start_ns: int) -> Node:
        stage, step, sampler = self.stage, self.stage.step, self._sampler
        if isinstance(step, SourceStep):
            return source_of(stage, step, start_ns=start_ns, looks=looks)
        held = reads if self.gate is None else self.gate
        if held is None:
            return PassNode(stage, self.queues, self.report, sampler)
        intake = intake_of(stage, self.queues, self.report, sampler, start_ns=start_ns, held=held)
        if isinstance(step, GateStep):
            return SharedGateNode(stage, step, intake, self.queues, self.gate, self.report)
        if stage.kind == "sink":
            return OrderNode(intake, self.queues, self.gate)
        most = self._limits.most_kept_rows
        if stage.replica is not None:  # a limit of the step, of which each has a part
            most = -(-most // stage.replica.of)
        return OperatorNode(stage, intake, self.queues, self.gate, sampler, most_kept_rows=most)

    # -- what may be done ---------------------------------------------------------------

    @_changes
    def begin(self) -> None:
        """Begin, in a fresh stage or after a restore."""

    def deliver(self, channel: str, message: Message, now_ns: int, *, link_ns: int = 0) -> None:
        """Queue a message that has arrived on a channel, `link_ns` after it was sent."""
        if self._sampler is not None:
            self._sampler.count(now_ns, self.queues)
            self._sampler.travelled(link_ns)
        self.queues.push(channel, message, now_ns)
        if self.intake is not None:
            self.intake.heard(channel, now_ns)
        self.report.rows_in += message.rows
        self._tell_next()

    def _tell_next(self) -> None:
        self.next = self.wakeup()
        if self.on_next is not None:
            self.on_next()

    def wakeup(self) -> Wakeup | None:
        """Return the next work; None if it waits for something.

        Source: [mace] Def. 7; a source's next event counts from when it was due.
        """
        return self.node.wakeup(self.queues.earliest_stimulus_ns())

    def came_ns(self, urgency_ns: int) -> int:
        """Return when the oldest message came; without one, when the work was due."""
        came_ns = None if self.node.has_more else self.queues.oldest_ns()
        return urgency_ns if came_ns is None else came_ns

    def waited_ns(self, now_ns: int) -> int:
        """Return the wait of its next rows for the stage, not for a promise."""
        return self.node.waited_ns(now_ns)

    # -- doing it -----------------------------------------------------------------------

    @_changes
    def open(self, now_ns: int) -> None:
        """Open the input of a source and read its first block, before the start."""
        if self.source is not None:
            self.source.open(now_ns)

    @_changes
    def woken(self, now_ns: int) -> None:
        """Poll the input of a source again: it may have something."""
        if self.source is not None:
            self.source.woken(now_ns)

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
        is_other = replace(rule, hold_ns=None) != replace(before, hold_ns=None)
        if is_other and self.intake is not None and gate.may_release():
            self.intake.more = True  # what may go now need not wait for a message
        if self._sampler is not None:
            self._sampler.try_out(trials)

    def grant(self, channel: str) -> bool:
        """Note that a channel asks for more credit; return whether it is given.

        Raises:
            OrderError: everybody waits for it, and more of it is held than may be.
        """
        intake = self.intake
        if intake is None:
            return True
        has_room = intake.has_room(channel, self._limits)
        if has_room:
            intake.check_rows(channel, self._limits)
        if intake.waits_for_silence:
            self._allow(channel, may_send=has_room)
        return has_room

    @_changes
    def _allow(self, channel: str, *, may_send: bool) -> None:
        assert self.intake is not None, "it has room, or not"
        self.intake.allow(channel, may_send=may_send)

    def work(self, now_ns: int, *, max_rows: int) -> Work:
        """Work off about `max_rows` rows."""
        work = self._work(now_ns, max_rows)
        self._tell_next()
        return work

    def _work(self, now_ns: int, max_rows: int) -> Work:
        if (sampler := self._sampler) is not None:
            sampler.count(now_ns, self.queues)
            sampler.begin()
        handed = self.node.work(now_ns, max_rows=max_rows)
        if handed.progress is None:  # a source has nothing right now
            message = None if self._gathered is None else self._gathered.take()
            return self._sent(message, handed, now_ns)
        self.moved_ns = now_ns
        if sampler is not None and self.source is not None:
            sampler.handed_over(handed.rows, handed.progress)
        message = self._message(handed, handed.progress)
        if message is not None and self.stage.kind == "sink":
            return Work((), self._egress(message), message.rows, handed)
        if message is not None and self._gathered is not None:
            message = self._gathered.add(message, now_ns)
        return self._sent(message, handed, now_ns)

    def _sent(self, message: Message | None, handed: Handed, now_ns: int) -> Work:
        if message is None:
            return Work((), None, 0, handed)
        return Work(self._sends(message, handed, now_ns), None, message.rows, handed)

    def left_out(self, rows: int, now_ns: int) -> None:
        """Count rows of the source that its filter has left out already."""
        self.moved_ns = now_ns
        self.report.batches += 1
        self.chain.tested(0, rows, self.report)
        self._tell_next()

    def _divert(self, outputs: DivertedOutputs, step: str, rows: list[DivertedRow]) -> None:
        """Send rows that a step could not use to their stream."""
        self.report.counts[DIVERTED] += len(rows)
        self.report.rows_out += len(rows)
        outputs.take(step, rows)

    def _message(self, handed: Handed, progress: Progress) -> Message | None:
        """Account for what a node has handed over; return what leaves of it."""
        report, outputs = self.report, self.outputs
        report.batches += 1
        if handed.filtered:
            report.counts[FILTERED] += handed.filtered
        if handed.failed:
            name, diverts = self.stage.subject.step, self.stage.step.traits.diverts
            self._count_failed(Failed(name, diverts, list(handed.failed)), is_input=True)
        if handed.diverted:
            assert self._diverted is not None, "a stream takes them"
            self._divert(self._diverted, self.stage.subject.step, list(handed.diverted))
        promised_ns = outputs.progress.promise_ns
        has_late = self._late is not None and self._late.take(handed.late, promise_ns=promised_ns)
        rows, first = handed.rows, 0
        if handed.tested is not None:
            first = 1
            self.chain.tested(0 if rows is None else len(rows), handed.tested, report)
        rows = self._apply_chain(rows, is_input=handed.is_input, first=first)
        advanced = progress.promise_ns > promised_ns
        if progress.promise_ns < promised_ns:
            progress = progress._replace(promise_ns=promised_ns)
        if progress.is_end and not (self.node.has_more or self.node.awaits_rows):
            self.is_finished = True
        if not outputs.tells_arrivals:
            progress = progress.with_arrived(None)
        is_new = advanced or has_late or progress.arrived is not None or handed.must_leave
        if rows is None and not is_new and (self._diverted is None or not self._diverted.has_rows):
            return None
        return Message(rows, progress)

    def _egress(self, message: Message) -> Egress | None:
        """Return what a sink writes; None if nothing."""
        progress = message.progress
        self.outputs.reach(progress)
        if not message.rows and not progress.is_end:
            return None
        return Egress(self.stage.name, message.batch if message.rows else None, progress.is_end)

    def _sends(
        self, message: Message, handed: Handed, now_ns: int
    ) -> Sequence[tuple[Channel, Message]]:
        """Return the message of each output channel, with its columns only."""
        if handed.sends is not None:
            self.outputs.reach(message.progress)
            return handed.sends
        sends = self.outputs.parts(message, now_ns)
        for side in (self._late, self._diverted):
            if side is not None:
                sends = [*sends, *side.parts(message, now_ns)]
        return sends

    def _apply_chain(self, batch: Batch | None, *, is_input: bool, first: int = 0) -> Batch | None:
        if batch is None or not (before := len(batch.event_time_ns)):
            return None
        batch, rows, added, combined = self.chain.apply(batch, first)
        missing = before + added - rows - combined
        for failed in self.chain.failed():
            missing -= len(failed.rows)
            self._count_failed(failed, is_input=is_input)
        report = self.report
        if is_input:
            if missing:
                report.counts[FILTERED] += missing
            if combined:
                report.counts[COMBINED] += combined
            report.exploded += added
        else:
            report.results_filtered += missing
        report.rows_out += rows
        return batch if rows else None

    def _count_failed(self, failed: Failed, *, is_input: bool) -> None:
        """Count rows for which a user's function raised, and send them to their stream."""
        texts = map(str, failed.rows[: MOST_REPORTED - len(self.report.first_bad)])
        self.report.first_bad += texts
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
            took_ns: time of the slice.
            idle_ns: idle time of the slot, so far.
            has_read: field of the same name of `Work`.
        """
        self.report.service_ns += took_ns
        self.node.charge(took_ns, idle_ns)
        if self._sampler is not None:
            self._sampler.end(now_ns, took_ns, counts=not has_read)

    # -- what it says of itself ---------------------------------------------------------

    def samples(self, now_ns: int) -> list[StageSample]:
        """Return the samples of the seconds that are over by now, once."""
        if self._sampler is None:
            return []
        self._sampler.count(now_ns, self.queues)
        return self._sampler.samples()

    @property
    def rows_waiting(self) -> int:
        """Rows in its queue and its gate."""
        return self.queues.rows + (self.gate.rows_held if self.gate is not None else 0)

    @property
    def operator(self) -> Operator | None:
        """Operator after the gate; None if the stage has no operator."""
        return self.node.operator if isinstance(self.node, OperatorNode) else None

    def report_at(self, now_ns: int) -> StageReport:
        """Return the stage's counters as they stand; they change no more."""
        report = self.report.copy()
        report.queue_wait_ns = self.queues.wait_ns
        report.still_ns = None if self.is_finished else max(now_ns - self.moved_ns, 0)
        self.node.count(report, now_ns)
        if self.operator is None and self.stage.step.traits.role is not Role.EACH_ROW:
            count_alone(report)
        return report

    @_changes
    def close(self) -> None:
        """Close the source's input."""
        if self.source is not None:
            self.source.close()

    # -- its state ----------------------------------------------------------------------

    def derive(self) -> None:
        """Find the next work."""
        self.begin()

    def measures(self) -> dict[str, Any]:
        """Return counts and samples so far, which no result depends on."""
        samples = None if self._sampler is None else save(self._sampler)
        return {
            "counts": self.report.to_json(),
            "samples": samples,
            "withheld": list(self.outputs.withheld),
        }

    def restore_measures(self, state: Mapping[str, Any]) -> None:
        """Continue saved counts and samples."""
        restore_report(self.report, state["counts"])
        self.outputs.withheld[:] = state["withheld"]
        # A snapshot of a slot that took no samples may go on in one that does, and vice versa.
        if self._sampler is not None and state["samples"] is not None:
            restore(self._sampler, state["samples"])
        else:
            self.measure_again()

    def measure_again(self) -> None:
        """Begin samples again, after a restore without them."""
        if self._sampler is not None:
            self._sampler.restart()
