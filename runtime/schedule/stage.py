"""A stage at work: queue, gate, operator, the steps behind it. One machine, both hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.flow.plan import GATED, Channel, Stage
from runtime.flow.steps import AggregateStep, GateStep, JoinStep, SourceStep
from runtime.measure.report import StageReport
from runtime.merge import ReplicaReads, SlackGate, Writer
from runtime.model import END_NS, START_NS, Batch, Message, concat_batches
from runtime.operators.contract import Operator, Released, Stateless
from runtime.operators.join import JoinMachine
from runtime.operators.make import make_operator, make_stateless
from runtime.schedule.queues import PathQueues
from runtime.schedule.replicas import Confluence, Hands
from runtime.sources.machine import SourceMachine


class StageMachine:
    """What a stage decides. The slot says when it runs, and carries what it returns.

    Every row that comes in is queued, then held by the gate, then handed to the operator (or
    passed on); each move is counted.
    """

    def __init__(self, stage: Stage, *, start_ns: int, source_gap_ns: int = 1) -> None:
        self.stage = stage
        self.source: SourceMachine | None = None
        self._is_paced = False
        self._source_gap_ns = source_gap_ns
        self._next_take_ns = start_ns
        if isinstance(stage.step, SourceStep):
            self._is_paced = stage.step.source.speed is not None
            self.source = SourceMachine(
                stage.name,
                stage.step.source,
                stage.step.schema,
                writer_id=stage.number,
                start_ns=start_ns,
                needed=stage.needed,
            )
        self._queues = PathQueues(channel.name for channel in stage.inputs)
        self._writer = {channel.name: n for n, channel in enumerate(stage.inputs)}
        self.gate: SlackGate | None = None
        self.reads: ReplicaReads | None = None  # of a replica, whose gate is another stage
        if stage.replica is not None:
            self.reads = ReplicaReads(len(stage.inputs))
        elif stage.kind in GATED:
            self.gate = SlackGate(
                [Writer(c.port, c.rank, c.is_mixed) for c in stage.inputs],
                slack_ns=stage.slack_ns,
            )
        self._hands = Hands(stage, stage.step) if isinstance(stage.step, GateStep) else None
        self._confluence: Confluence | None = None
        if len(stage.inputs) > 1 and stage.kind not in GATED:
            self._confluence = Confluence(stage)
        self.operator: Operator | None = None
        if isinstance(stage.step, JoinStep | AggregateStep):
            self.operator = make_operator(stage.step)
        self._chain: list[Stateless] = [make_stateless(step) for step in stage.chain]
        if stage.kind == "stateless":
            self._chain.insert(0, make_stateless(stage.step))
        # (channel, names of its columns, its place in `_sent_ns`)
        self._outputs = [(c, c.schema.names, at) for at, c in enumerate(stage.outputs)]
        self._sent_ns = [start_ns] * len(stage.outputs)
        self._promise_ns = START_NS
        self._more = False  # the last read was cut short: read again
        self._gate_since_ns = start_ns
        self._work: list[tuple[str, int]] = []
        self.rows_worked = 0
        """Rows that the last slice took in."""
        self.is_finished = False
        self.report = StageReport(stage.name, stage.kind, node="", slot="")

    # -- what may be done ---------------------------------------------------------------

    def deliver(self, channel: str, message: Message, now_ns: int) -> None:
        """Queue a message that has arrived on a channel."""
        self._queues.push(channel, message, now_ns)
        self.report.rows_in += message.rows

    def urgency_ns(self, now_ns: int) -> int | None:
        """Return the earliest stimulus time of what waits here; None: nothing to do.

        Source: [mace] Def. 7; a source's next event counts from when it was due.
        """
        if self.source is not None:
            due_ns = self.due_ns(now_ns)
            if due_ns is None or due_ns > now_ns:
                return None
            return due_ns if self._is_paced else now_ns
        if self._more:
            return START_NS
        return self._queues.earliest_stimulus_ns()

    @property
    def progress_ns(self) -> int:
        """How far a source has promised; the one behind goes first. START_NS for other stages."""
        return START_NS if self.source is None else self.source.promise_ns

    def is_polling(self, now_ns: int) -> bool:
        """Whether this is a source that may get something at a time it cannot tell."""
        return (
            self.source is not None and not self.is_finished and self.source.due_ns(now_ns) is None
        )

    def due_ns(self, now_ns: int) -> int | None:
        """Return when a source will next have something; None: unknown, ended, or no source.

        Nothing is due before the start. The first call opens the input.
        """
        if self.source is None or self.is_finished:
            return None
        due_ns = self.source.due_ns(now_ns)
        if due_ns is None or due_ns > self._next_take_ns:
            return due_ns
        return self._next_take_ns

    # -- doing it -----------------------------------------------------------------------

    def run(self, now_ns: int, *, max_rows: int) -> tuple[Message | None, list[tuple[str, int]]]:
        """Work off about `max_rows` rows.

        Returns:
            What goes to every output (None: nothing new), and per input channel the rows of
            credit that were used up: [(channel, rows)].
        """
        self._work = []
        if self.source is not None:
            message = self.source.take(now_ns, max_rows=max_rows)
            if self._is_paced:
                self._next_take_ns = now_ns + self._source_gap_ns
            if message is None:
                self.rows_worked = 0
                return None, self._work
            self.rows_worked = message.rows
            return self._emit_source(message), self._work
        if self.reads is not None:
            released, promise_ns = self._release_dealt(self.reads, now_ns, max_rows)
        else:
            released, promise_ns = self._release(now_ns, max_rows)
            self.rows_worked = sum([rows for _, rows in self._work])
        if released is None:
            return None, self._work
        return self._emit(released, promise_ns), self._work

    def _emit_source(self, message: Message) -> Message:
        self.report.batches += 1
        self.report.ready += message.rows
        self.is_finished = message.promise_ns == END_NS
        batch = self._apply_chain(message.batch, is_input=True)
        if batch is message.batch:
            return message
        return Message(batch, message.promise_ns, message.promise_stimulus_ns)

    def _release(self, now_ns: int, max_rows: int) -> tuple[Released | None, int]:
        gate, queues = self.gate, self._queues
        if gate is None:
            return self._pass_through(now_ns)
        rows = 0
        self._count_gate_wait(now_ns)
        # What can be read already comes first: a message more would only wait in the gate,
        # where it is out of reach of the credit that bounds the queue.
        while not self._more and rows < max_rows and (item := queues.pop(now_ns)) is not None:
            channel, message = item
            rows += message.rows
            gate.insert(
                self._writer[channel],
                message.batch,
                promise_ns=message.promise_ns,
                promise_stimulus_ns=message.promise_stimulus_ns,
            )
            self._work.append((channel, credit_of(message)))
        held = gate.rows_held
        self.report.max_gate_rows = max(self.report.max_gate_rows, held + queues.rows)
        released = gate.read(limit=max_rows)
        self._more = released is not None and held > max_rows and bool(gate.rows_held)
        frontier_ns = gate.frontier_ns
        if released is None:
            return None, frontier_ns
        return released, min(frontier_ns, released.watermark_ns)

    def _release_dealt(
        self, reads: ReplicaReads, now_ns: int, max_rows: int
    ) -> tuple[Released | None, int]:
        """Return what the gate of this replica has read. Long reads are worked off in parts."""
        rows = 0
        self._count_gate_wait(now_ns)
        while not self._more and rows < max_rows and (item := self._queues.pop(now_ns)) is not None:
            channel, message = item
            rows += message.rows
            reads.insert(self._writer[channel], message)
            self._work.append((channel, credit_of(message)))
        held = reads.rows_held
        self.report.max_gate_rows = max(self.report.max_gate_rows, held + self._queues.rows)
        released = reads.read(limit=max_rows)
        self._more = reads.has_more
        self.rows_worked = held - reads.rows_held
        return released, reads.promise_ns

    def _pass_through(self, now_ns: int) -> tuple[Released | None, int]:
        item = self._queues.pop(now_ns)
        if item is None:
            return None, START_NS
        channel, message = item
        self._work.append((channel, credit_of(message)))
        self.report.ready += message.rows
        if self._confluence is not None:
            message = self._confluence.passed(channel, message)
        return (
            Released([message.batch], [None], message.promise_ns, message.promise_stimulus_ns),
            message.promise_ns,
        )

    def _emit(self, released: Released, promise_ns: int) -> Message | None:
        self.report.batches += 1
        batch: Batch | None = None
        if self._hands is not None:
            self.report.rows_out += self._hands.deal(released, max(promise_ns, self._promise_ns))
        elif self.operator is not None:
            batch = self.operator.process(released)
            promise_ns = self.operator.promise_ns(promise_ns)
            batch = self._apply_chain(batch, is_input=False)
        else:
            batch = _joined(released)
            batch = self._apply_chain(batch, is_input=True)
        advanced = promise_ns > self._promise_ns
        self._promise_ns = max(promise_ns, self._promise_ns)
        if self._promise_ns == END_NS and not self._more:
            self.is_finished = True
        if batch is None and not advanced and self._hands is None:
            return None
        return Message(batch, self._promise_ns, released.watermark_stimulus_ns)

    def _apply_chain(self, batch: Batch | None, *, is_input: bool) -> Batch | None:
        before = 0 if batch is None else len(batch.event_time_ns)
        if batch is None or not before:
            return None
        rows = before
        for step in self._chain:
            batch = step.apply(batch)
            rows = len(batch.event_time_ns)
            if not rows:
                break
        report = self.report
        if is_input:
            report.filtered += before - rows
        else:
            report.results_filtered += before - rows
        report.rows_out += rows
        return batch if rows else None

    # -- what it says of itself ---------------------------------------------------------

    def may_grant(self, channel: str, limit_rows: int) -> bool:
        """Whether the gate has room for more of a channel, or everybody waits for it."""
        if self.reads is not None:
            return self.reads.rows_held < limit_rows or not self.reads.has_more
        if self.gate is None:
            return True
        writer = self._writer[channel]
        return self.gate.rows_held_of(writer) < limit_rows or writer in self.gate.holders()

    def _count_gate_wait(self, now_ns: int) -> None:
        # Mean wait × rows = the integral of the rows held over time (Little's law).
        held = self.gate or self.reads
        if held is not None:
            self.report.gate_wait_ns += held.rows_held * (now_ns - self._gate_since_ns)
            self._gate_since_ns = now_ns

    def report_at(self, now_ns: int) -> StageReport:
        """Return the stage's counters as they stand."""
        report = self.report
        self._count_gate_wait(now_ns)
        report.queue_wait_ns = self._queues.wait_ns
        if self.source is not None:
            report.rows_in = self.source.rows_in
            report.late_dropped = self.source.late_dropped
            report.in_flight = self.source.held
            report.newest_ns = self.source.newest_ns
            report.frontier_ns = self.source.promise_ns
        elif self.gate is not None:
            self._report_gate(self.gate)
        elif self.reads is not None:
            self._report_reads(self.reads)
        else:
            report.in_flight = self._queues.rows
        if self.operator is not None:
            report.held = self.operator.rows_held
            report.comparisons = self.comparisons
        if isinstance(self.stage.step, GateStep):
            report.share = self.stage.step.share
        return report

    @property
    def comparisons(self) -> int:
        """Pairs that its join has compared so far; 0 for other stages."""
        return self.operator.pairs_compared if isinstance(self.operator, JoinMachine) else 0

    def _report_gate(self, gate: SlackGate) -> None:
        report, counts = self.report, gate.counts()
        dropped = self.operator.late_dropped if self.operator is not None else 0
        report.ready, report.slack_ready = counts.ready, counts.slack_ready
        report.late, report.late_dropped = counts.late - dropped, dropped
        report.in_flight = self._queues.rows + gate.rows_held
        report.frontier_ns, report.newest_ns = gate.frontier_ns, gate.newest_ns
        names = [channel.source for channel in self.stage.inputs]
        report.waiting_for = [names[writer] for writer in gate.holders()]

    def _report_reads(self, reads: ReplicaReads) -> None:
        report = self.report
        dropped = self.operator.late_dropped if self.operator is not None else 0
        report.ready, report.late, report.late_dropped = reads.ready, reads.late - dropped, dropped
        report.in_flight = self._queues.rows + reads.rows_held
        report.frontier_ns = reads.promise_ns

    def outgoing(self, message: Message, now_ns: int) -> Sequence[tuple[Channel, Message]]:
        """Return what goes on each output channel: its columns only; nothing it has no use for."""
        if self._hands is not None:
            return self._hands.take()
        sends: list[tuple[Channel, Message]] = []
        batch = message.batch
        for channel, names, at in self._outputs:
            part = message
            if batch is not None:
                columns = {name: batch.columns[name] for name in names}
                writers = batch.writers if channel.has_writers else None
                part = Message(
                    Batch(batch.event_time_ns, batch.stimulus_time_ns, columns, writers),
                    message.promise_ns,
                    message.promise_stimulus_ns,
                )
            elif message.promise_ns != END_NS and (
                not channel.needs_promises or now_ns - self._sent_ns[at] < channel.promise_gap_ns
            ):
                continue
            self._sent_ns[at] = now_ns
            sends.append((channel, part))
        return sends

    def close(self) -> None:
        """Let go of the source's input."""
        if self.source is not None:
            self.source.close()

    def snapshot(self) -> dict[str, Any]:
        """Return the state of queue, gate and operator, or of the source."""
        return {
            "queues": self._queues.snapshot(),
            "gate": self.gate.snapshot() if self.gate else None,
            "reads": self.reads.snapshot() if self.reads else None,
            "hands": self._hands.snapshot() if self._hands else None,
            "confluence": self._confluence.snapshot() if self._confluence else None,
            "operator": self.operator.snapshot() if self.operator else None,
            "source": self.source.snapshot() if self.source else None,
            "promise_ns": self._promise_ns,
            "more": self._more,
            "is_finished": self.is_finished,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._queues.restore(state["queues"])
        if self.gate is not None:
            self.gate.restore(state["gate"])
        if self.reads is not None:
            self.reads.restore(state["reads"])
        if self._hands is not None:
            self._hands.restore(state["hands"])
        if self._confluence is not None:
            self._confluence.restore(state["confluence"])
        if self.operator is not None:
            self.operator.restore(state["operator"])
        if self.source is not None:
            self.source.restore(state["source"])
        self._promise_ns = state["promise_ns"]
        self._more = state["more"]
        self.is_finished = state["is_finished"]


def credit_of(message: Message) -> int:
    """Return what a message costs of its channel's credit; one with no rows costs one."""
    return max(1, message.rows)


def _joined(released: Released) -> Batch | None:
    """Return late rows, then those in order, as one batch (of a stage with one port)."""
    late, batch = released.late[0], released.ports[0]
    if late is None:
        return batch
    if batch is None:
        return late
    return concat_batches([late, batch])
