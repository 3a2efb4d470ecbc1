"""Nodes after a gate: of an operator, or of replicas that share the gate."""

from __future__ import annotations

from abc import abstractmethod

from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.skew import KeySample
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.merge import ReadSplitter, SlackGate
from slackwater.runtime.model import (
    END_NS,
    NO_PROGRESS,
    START_NS,
    Batch,
    GateRead,
    Progress,
    concat_batches,
)
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import RANK_SHIFT, KeyOrder, Stage
from slackwater.runtime.plan.step import GatedStep
from slackwater.runtime.plan.steps import GateStep
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.registry.operators import make_operator
from slackwater.runtime.schedule.accounts import count_in
from slackwater.runtime.schedule.intake import GateIntake, IntakeResult, SplitIntake
from slackwater.runtime.schedule.node import Handed, Node
from slackwater.runtime.schedule.queues import PathQueues
from slackwater.runtime.schedule.stage_sampler import StageSampler

__all__ = ["OperatorNode", "OrderNode", "SharedGateNode"]


class GatedNode(Node):
    """Common part of these nodes: an intake takes messages from the queue to a gate.

    Args:
        intake: intake of the stage.
        queues: queues of the stage.
        gate: gate of the stage; None if it has none.
    """

    STATE = Fields("intake")

    def __init__(
        self, intake: GateIntake | SplitIntake, queues: PathQueues, gate: SlackGate | None
    ) -> None:
        self.intake, self._queues, self._gate = intake, queues, gate

    @property
    def has_more(self) -> bool:  # type: ignore[override]  # it changes here
        """Whether the last read was cut short, so that the next has rows whatever comes."""
        return self.intake.more

    def wakeup(self, rank_ns: int | None) -> Wakeup | None:
        if self.intake.more:
            goes_on_ns = self.intake.goes_on_ns
            return Wakeup(START_NS, goes_on_ns if rank_ns is None else min(goes_on_ns, rank_ns))
        due_ns = self.due_ns
        if rank_ns is not None:
            return Wakeup(START_NS, rank_ns if due_ns is None else min(rank_ns, due_ns))
        idle_ns = self.intake.idle_from_ns()
        if idle_ns is not None:
            due_ns = idle_ns if due_ns is None else min(due_ns, idle_ns)
        return None if due_ns is None else Wakeup(due_ns, due_ns)

    @property
    def due_ns(self) -> int | None:
        """When something is due by the clock; None if at no time that is known."""
        return None if self._gate is None else self._gate.hold_ends_ns()

    def work(self, now_ns: int, *, max_rows: int) -> Handed:
        intake = self.intake.take(now_ns, max_rows=max_rows)
        read = intake.read
        if read is None and (read := self.read_by_clock(now_ns)) is None:
            return Handed(used=intake.used, rows_in=intake.rows)
        return self.of_read(read, intake, now_ns)

    def read_by_clock(self, now_ns: int) -> GateRead | None:
        """Return a read without rows if its operator is due, else None."""
        del now_ns
        return None

    @abstractmethod
    def of_read(self, read: GateRead, intake: IntakeResult, now_ns: int) -> Handed:
        """Return what it makes of a read.

        Args:
            read: read of the intake, or a read without rows: its operator is due.
            intake: messages that the intake took in the slice.
            now_ns: time by the clock.
        """

    def count(self, report: StageReport, now_ns: int) -> None:
        self.intake.count(report, self.late_dropped, now_ns)

    late_dropped = 0
    """Late rows that its operator had no use for."""

    def waited_ns(self, now_ns: int) -> int:
        intake = self.intake
        since_ns = intake.more_since_ns if intake.more else self._queues.oldest_ns()
        return 0 if since_ns is None else max(now_ns - since_ns, 0)


class SharedGateNode(GatedNode):
    """Node of a gate that replicas share: it deals its reads.

    Args:
        stage: stage of the gate.
        step: step of the gate.
        intake: intake of the stage.
        queues: queues of the stage.
        gate: gate of the stage.
        report: report of the stage.
    """

    STATE = GatedNode.STATE + Fields("_splitter")

    def __init__(
        self,
        stage: Stage,
        step: GateStep,
        intake: GateIntake | SplitIntake,
        queues: PathQueues,
        gate: SlackGate | None,
        report: StageReport,
    ) -> None:
        super().__init__(intake, queues, gate)
        replicas, share, _ = step.traits.sharing
        self._share, self._report = share, report
        self._splitter = ReadSplitter(step.traits.port_keys, replicas=replicas, share=share)
        # {(which replica, which of its ports): the channel there}
        self._outputs = {(channel.replica, channel.port): channel for channel in stage.outputs}

    def of_read(self, read: GateRead, intake: IntakeResult, now_ns: int) -> Handed:  # noqa: D102 - see GatedNode
        del now_ns
        rows = read.rows
        self._report.rows_out += rows
        sends = [
            (self._outputs[replica, port], message)
            for replica, own_parts in enumerate(self._splitter.split(read))
            for port, message in own_parts
        ]
        used, progress = intake.used, read.progress
        return Handed(None, progress, used, intake.rows, rows, True, sends=sends)

    def count(self, report: StageReport, now_ns: int) -> None:  # noqa: D102 - see Node
        super().count(report, now_ns)
        report.share = self._share


class OrderNode(GatedNode):
    """Node of a sink whose gate puts the rows of replicas into one order."""

    def of_read(self, read: GateRead, intake: IntakeResult, now_ns: int) -> Handed:  # noqa: D102 - see GatedNode
        del now_ns
        batches = [rows for rows in (*read.late, *read.ports) if rows is not None]
        rows = concat_batches(batches) if batches else None
        released = 0 if rows is None else len(rows)
        return Handed(rows, read.progress, intake.used, intake.rows, released)


class OperatorNode(GatedNode):
    """Node of an operator: its reads, its time by the clock, its counts.

    Args:
        stage: stage of the operator.
        intake: intake of the stage.
        queues: queues of the stage.
        gate: gate of the stage; None if it is a replica's, and another stage has the gate.
        sampler: sampler of the stage; None if it takes no samples.
        most_kept_rows: limit of the same name, see Limits.

    Attributes:
        operator: its machine.
        counts: counts of the step.
    """

    STATE = GatedNode.STATE + Fields(
        "operator", "_watermark_ns", "_progress", "_due_ns", "_keys", "awaits_rows"
    )

    def __init__(
        self,
        stage: Stage,
        intake: GateIntake | SplitIntake,
        queues: PathQueues,
        gate: SlackGate | None,
        sampler: StageSampler | None,
        *,
        most_kept_rows: int,
    ) -> None:
        super().__init__(intake, queues, gate)
        step = stage.step
        assert isinstance(step, GatedStep), "others have no operator"
        self.operator = make_operator(step, most_kept_rows=most_kept_rows)
        self._order = stage.key_order
        self._ports = range(max(step.traits.ports) + 1)
        self.counts = StepReport(step.name, step.traits.kind, [0 for _ in self._ports])
        self._summaries = step.traits.summaries
        self._passes_on, self._uses_clock = step.traits.passes_on, step.traits.uses_clock
        self._sampler = sampler
        replica = step.traits.replica
        self._keys = (
            KeySample(step.traits.port_keys)
            if replica is not None and replica.share == "keys"
            else None
        )
        self._watermark_ns, self._progress = START_NS, NO_PROGRESS  # of the last read
        self._due_ns: int | None = None  # of the operator

    @property
    def due_ns(self) -> int | None:
        """When gate or operator is due by the clock; None if at no known time."""
        hold_ns, due_ns = super().due_ns, self._due_ns
        if due_ns is None or hold_ns is None:
            return hold_ns if due_ns is None else due_ns
        return min(due_ns, hold_ns)

    def read_by_clock(self, now_ns: int) -> GateRead | None:  # noqa: D102 - see GatedNode
        if self._due_ns is None or self._due_ns > now_ns:
            return None
        none: list[Batch | None] = [None for _ in self._ports]
        return GateRead(none, none, self._watermark_ns, self._progress)

    def of_read(self, read: GateRead, intake: IntakeResult, now_ns: int) -> Handed:  # noqa: D102 - see GatedNode
        rows_in, rows = self.counts.rows_in, 0
        for port in self._ports:
            for batch in (read.ports[port], read.late[port]):
                if batch is not None:
                    came = len(batch.event_time_ns)
                    rows_in[port] += came
                    rows += came
        if self._keys is not None:
            self._keys.add(read.ports)
        result = self.operator.work(read, now_ns)
        self.awaits_rows = not read.progress.is_end
        if self._uses_clock:
            self._due_ns = result.due_ns
            self._watermark_ns = read.watermark_ns
            self._progress = read.progress.with_arrived(None)
        if self._sampler is not None and result.waited_ns:
            self._sampler.waited(result.waited_ns)
        results = result.rows
        left = 0 if results is None else len(results.event_time_ns)
        if results is not None and self._order is not None:
            results = _with_writers(results, self._order)
        self.counts.rows_out += left
        _, stimulus_ns, newest_ns, arrived = read.progress
        if result.promise_ns == END_NS:
            newest_ns = max([port.promise_ns(newest_ns) for port in self._summaries])
        return Handed(
            results,
            Progress(result.promise_ns, stimulus_ns, newest_ns, arrived),
            intake.used,
            intake.rows,
            rows,
            compared=result.compared,
            passed_over=result.passed_over,
            is_input=self._passes_on,
            filtered=rows - left - result.late_dropped - result.beyond_limit
            if self._passes_on
            else 0,
            late=result.late,
            failed=result.failed,
        )

    @property
    def late_dropped(self) -> int:  # type: ignore[override]  # it grows here
        """Late rows that the operator had no use for."""
        return self.operator.late_dropped

    def count(self, report: StageReport, now_ns: int) -> None:  # noqa: D102 - see Node
        super().count(report, now_ns)
        report.held = self.operator.rows_held
        if self._keys is not None:
            report.hot_key, report.hot_key_share = self._keys.hot()
        for name, counted in self.operator.counts().items():
            count_in(report, name, counted)

    def charge(self, took_ns: int, idle_ns: int) -> None:  # noqa: D102 - see Node
        self.operator.charge(took_ns, idle_ns)


def _with_writers(results: Batch, order: KeyOrder) -> Batch:
    """Return results with the hash of their key, below the step's rank, as their writer."""
    hashes = results.writers
    if order.columns is not None:
        columns = [results.columns[name] for name in order.columns]
        hashes = key_hashes(columns, len(results.event_time_ns))
    assert hashes is not None, "an operator whose results may lack the key gives them its hash"
    return results.with_(writers=hashes | (order.rank << RANK_SHIFT))
