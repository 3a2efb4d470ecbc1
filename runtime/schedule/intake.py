"""Intake of a stage: rows reach its operator by a gate.

```
queue ─▶ GateIntake    as the stage's own gate lets them go
      ─▶ SplitIntake   as the gate of this replica, another stage, has read them
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import OrderError
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.merge import ReplicaReads, SlackGate
from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, Message
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule.accounts import count_gate, count_reads
from slackwater.runtime.schedule.arrivals import ArrivalFrontier
from slackwater.runtime.schedule.idle_channels import IdleChannels, may_be_older
from slackwater.runtime.schedule.queues import PathQueues, credit_of
from slackwater.runtime.schedule.stage_sampler import StageSampler

__all__ = ["GateIntake", "IntakeResult", "SplitIntake", "intake_of"]


class IntakeResult(NamedTuple):
    """Result of one `take`: the rows of inputs that it took, and their read.

    Attributes:
        read: rows and promises for the operator; None if nothing is new.
        used: (input channel, rows of credit used up) of each.
        rows: number of rows taken in.
    """

    read: GateRead | None
    used: Sequence[tuple[str, int]]
    rows: int


_H = TypeVar("_H", SlackGate, ReplicaReads)


class Intake(ABC, Generic[_H]):
    """Common part of both intakes: rows wait in a gate, or as reads of one.

    Args:
        stage: stage of the intake.
        queues: queues of the stage.
        report: report of the stage, to be kept.
        sampler: sampler of the stage; None if it takes no samples.
        start_ns: start of the job.
        held: gate or reads that hold rows.

    Attributes:
        more: the last read was cut short: take again, whatever has come.
        more_since_ns: time when a read was first cut short, with `more`; None if none has been.
        goes_on_ns: stimulus by which the rest counts, with `more`: later than that of the rows just
            released, so that their results leave before others are made.
        waits_for_silence: whether a channel may be left out once it has been silent for too long.
    """

    STATE = Fields("_held", "more", "more_since_ns", "goes_on_ns", "_since_ns")

    waits_for_silence = False

    def __init__(
        self,
        stage: Stage,
        queues: PathQueues,
        report: StageReport,
        sampler: StageSampler | None,
        *,
        start_ns: int,
        held: _H,
    ) -> None:
        self.more = False
        self.more_since_ns: int | None = None
        self.goes_on_ns = START_NS
        self._queues, self._report, self._sampler = queues, report, sampler
        self._writer = {channel.name: n for n, channel in enumerate(stage.inputs)}
        self._held: _H = held
        self._since_ns = start_ns

    @abstractmethod
    def take(self, now_ns: int, *, max_rows: int) -> IntakeResult:
        """Return what goes on now, about `max_rows` rows at most."""

    @abstractmethod
    def has_room(self, channel: str, limits: Limits) -> bool:
        """Whether there is room for more of a channel, or everybody waits for it."""

    def check_rows(self, channel: str, limits: Limits) -> None:
        """Check that no more rows of a channel are held than may be.

        Raises:
            OrderError: there are more.
        """
        del channel, limits

    def heard(self, channel: str, now_ns: int) -> None:
        """Note that a channel has spoken."""
        del channel, now_ns

    def idle_from_ns(self) -> int | None:
        """Return when a channel will have been silent for too long; None if never."""
        return None

    def allow(self, channel: str, *, may_send: bool) -> None:
        """Note whether a channel is given credit: without it, it is not silent."""
        del channel, may_send

    def count(self, report: StageReport, dropped: int, now_ns: int) -> None:
        """Fill in a report as of now; the operator dropped so many late rows."""
        del dropped
        report.in_flight = self._queues.rows
        report.gate_wait_ns += self._waited_ns(now_ns)

    def _waited_ns(self, now_ns: int) -> int:
        """Return how long rows have been held since that was last counted, summed."""
        # Mean wait × rows = the integral of the rows held over time (Little's law).
        return self._held.rows_held * (now_ns - self._since_ns)

    def _come(
        self, now_ns: int, max_rows: int, used: list[tuple[str, int]]
    ) -> Iterator[tuple[int, Message, int]]:
        """Take messages from the queue; yield (writer, message, when it came), note its credit.

        What can be read already comes first: a message more would only wait, where it is out of
        reach of the credit that bounds the queue.
        """
        rows = 0
        self._report.gate_wait_ns += self._waited_ns(now_ns)
        self._since_ns = now_ns
        while not self.more and rows < max_rows and (item := self._queues.pop(now_ns)) is not None:
            channel, message, came_ns = item
            rows += message.rows
            used.append((channel, credit_of(message)))
            yield self._writer[channel], message, came_ns

    def _count_most(self) -> int:
        held = self._held.rows_held
        self._report.max_gate_rows = max(self._report.max_gate_rows, held + self._queues.rows)
        return held

    def _go_on(self, released: GateRead | None, now_ns: int) -> None:
        if not self.more:
            self.more_since_ns = None
        else:
            self.more_since_ns = now_ns if self.more_since_ns is None else self.more_since_ns
            self.goes_on_ns = START_NS if released is None else released.last_stimulus_ns + 1


class GateIntake(Intake[SlackGate]):
    """Intake of a stage with its own gate."""

    STATE = Intake.STATE + Fields("_arrivals", "_idle", "_older", "_held_back")

    def __init__(
        self,
        stage: Stage,
        queues: PathQueues,
        report: StageReport,
        sampler: StageSampler | None,
        *,
        start_ns: int,
        held: SlackGate,
    ) -> None:
        super().__init__(stage, queues, report, sampler, start_ns=start_ns, held=held)
        self._stage, self._is_uneven = stage.name, stage.is_uneven
        self._arrivals = ArrivalFrontier.of(stage)
        self._sources = [channel.source for channel in stage.inputs]
        self._older = [0] * len(stage.inputs)  # by writer: its rows, older than promised
        self._held_back = [0] * len(stage.inputs)  # by writer: reads that kept rows, due to it
        self._ahead_ns = [channel.ahead_ns for channel in stage.inputs]
        self._is_mixed = [channel.is_mixed for channel in stage.inputs]
        self._may_be_older = list(map(may_be_older, stage.inputs))
        self._window_ns: int | None = None  # how far a frontier may lag before rows wait for it
        if stage.step.traits.keep_rule == "promise":
            self._window_ns = stage.window_ns
        self._idle: IdleChannels | None = None  # None if no channel is ever idle
        if any(channel.idle_ns is not None for channel in stage.inputs):
            self._idle = IdleChannels(stage.inputs, start_ns=start_ns)
            self.waits_for_silence = True

    def heard(self, channel: str, now_ns: int) -> None:
        """Note that a channel has spoken, and is not idle."""
        if self._idle is not None:
            self._idle.heard(channel, now_ns)

    def idle_from_ns(self) -> int | None:
        """Return when a channel that the gate waits for is idle; None if never."""
        return None if self._idle is None else self._idle.due_ns(self._held)

    def take(self, now_ns: int, *, max_rows: int) -> IntakeResult:
        """Put what has come into the gate, and read that."""
        gate, sampler = self._held, self._sampler
        used: list[tuple[str, int]] = []
        for writer, message, came_ns in self._come(now_ns, max_rows, used):
            gate.insert(writer, message.batch, message.progress, came_ns=came_ns)
            if message.batch is not None and self._may_be_older[writer]:
                self._count_older(writer, message.batch)
            if self._arrivals is not None:
                self._arrivals.hear(writer, message)
            if self._idle is not None:
                self._idle.note_spoken(writer, now_ns)
            if sampler is not None:
                sampler.came(writer, message.batch, came_ns)
        if self._idle is not None:
            self._idle.mark(gate, now_ns, queued=self._queues.waiting())
        held = self._count_most()
        released = gate.read(limit=max_rows, now_ns=now_ns)
        if self._arrivals is not None:
            released = self._with_arrivals(self._arrivals, released)
        # Cut short it may have let all rows go and yet not have come as far as it could.
        self.more = (
            released is not None
            and held > max_rows
            and (bool(gate.rows_held) or released.watermark_ns < gate.frontier_ns)
        )
        self._go_on(released, now_ns)
        if sampler is not None:
            sampler.left(released, now_ns)
        if released is not None and self._window_ns is not None:
            self._count_held_back(released)
        return IntakeResult(released, used, sum([rows for _, rows in used]))

    def _with_arrivals(
        self, arrivals: ArrivalFrontier, released: GateRead | None
    ) -> GateRead | None:
        """Say with a read, or one that has no rows, how far arrivals have come."""
        gate = self._held
        arrived = arrivals.advance(gate.held() if gate.rows_held else (), idle=gate.idle)
        if arrived is None:
            return released
        released = released or gate.nothing_new()
        released.progress = released.progress.with_arrived(arrived)
        return released

    def _count_older(self, writer: int, batch: Batch) -> None:
        """Count rows of idle writers, older than the frontier that the operator knows."""
        times, frontier_ns = batch.event_time_ns, self._held.counts().frontier_ns
        if times.item(0) < frontier_ns or (self._is_mixed[writer] and frontier_ns > START_NS):
            older = int((times < frontier_ns).sum())
            self._older[writer] += older

    def _count_held_back(self, released: GateRead) -> None:
        """Count whose promise it is that rows are now kept for beyond their window."""
        assert self._window_ns is not None
        if released.watermark_ns - released.progress.promise_ns > self._window_ns:
            for writer in self._held.holders():
                self._held_back[writer] += 1

    def has_room(self, channel: str, limits: Limits) -> bool:
        """Whether the gate has room for more of a channel, or everybody waits for it."""
        writer, gate = self._writer[channel], self._held
        has = (
            gate.rows_held_of(writer) < limits.gate_rows
            or writer in gate.holders()
            or self._moves_holders(writer)
        )
        most = limits.most_gate_rows if self._is_uneven else limits.gate_rows  # it may wait for us
        if self._arrivals is not None and self._arrivals.rows_ahead(writer) >= most:
            holders = self._arrivals.holders(idle=gate.idle)  # rows wait for these, not here
            has = writer in holders or not holders
        return has

    def _moves_holders(self, writer: int) -> bool:
        """Whether rows that the gate waits for come only after more of a writer's source."""
        ahead_ns, gate = self._ahead_ns[writer], self._held
        if not ahead_ns or ahead_ns == END_NS:
            return ahead_ns == END_NS
        return gate.promised_ns(writer) - gate.frontier_ns <= ahead_ns

    def check_rows(self, channel: str, limits: Limits) -> None:  # noqa: D102 - see Intake
        writer, most = self._writer[channel], limits.most_gate_rows
        if (held := self._held.rows_held_of(writer)) >= most:
            raise OrderError(self._overflow(writer, held, most))

    def allow(self, channel: str, *, may_send: bool) -> None:
        """Note whether a channel has credit: without it, it is not silent."""
        if self._idle is not None:
            self._idle.allow(self._writer[channel], self._since_ns, may_send=may_send)

    def _overflow(self, writer: int, held: int, most: int) -> str:
        source = self._sources[writer]
        if self._ahead_ns[writer] and writer not in self._held.holders():
            others = ", ".join(repr(self._sources[each]) for each in self._held.holders())
            return (
                f"the gate of {self._stage!r} holds {held:,} rows of {source!r} until {others} has "
                f"rows as new, which a step before it holds back. At most most_gate_rows={most:,} "
                "are held; give the job Limits(most_gate_rows=…), or that step a shorter within="
            )
        return (
            f"the gate of {self._stage!r} holds {held:,} rows of {source!r}, and none can leave: "
            f"{source!r} has promised nothing that is as new. At most most_gate_rows={most:,} are "
            "held; let its source promise, with idle=, disorder= or "
            "promise=; or give the job Limits(most_gate_rows=…), if its input ends before that"
        )

    def count(self, report: StageReport, dropped: int, now_ns: int) -> None:
        """Fill in what the gate has released, and which writers were idle."""
        super().count(report, dropped, now_ns)
        names = self._sources
        count_gate(report, self._held, queued=self._queues.rows, dropped=dropped, names=names)
        if self._arrivals is not None:  # on the way to who puts rows in order: none is late here
            report.slack_ready += report.late
            report.late = 0
        report.older_than_promised = self._by_source(self._older)
        report.held_back = self._by_source(self._held_back)
        if self._idle is not None:
            report.idle_marks = self._by_source(self._idle.marks)

    def _by_source(self, counts: Sequence[int]) -> dict[str, int]:
        """Return counts of writers, summed by source, of those that have any."""
        sums = Counter[str]()
        for source, count in zip(self._sources, counts, strict=True):
            sums[source] += count
        return dict(+sums)


class SplitIntake(Intake[ReplicaReads]):
    """Intake of a replica: reads of its gate, another stage, in parts if long."""

    def take(self, now_ns: int, *, max_rows: int) -> IntakeResult:
        """Return the reads that are whole by now."""
        reads, sampler = self._held, self._sampler
        used: list[tuple[str, int]] = []
        for writer, message, came_ns in self._come(now_ns, max_rows, used):
            reads.insert(writer, message)
            if sampler is not None:
                sampler.came_split(message, came_ns)
        held = self._count_most()
        released = reads.read(limit=max_rows)
        self.more = reads.has_more
        self._go_on(released, now_ns)
        if sampler is not None:
            sampler.read(released, now_ns)
        return IntakeResult(released, used, held - reads.rows_held)

    def has_room(self, channel: str, limits: Limits) -> bool:
        """Whether there is room for more; always if what is there is no whole read."""
        del channel
        return self._held.rows_held < limits.gate_rows or not self._held.has_more

    def count(self, report: StageReport, dropped: int, now_ns: int) -> None:
        """Fill in what of the reads has gone on."""
        super().count(report, dropped, now_ns)
        count_reads(report, self._held, queued=self._queues.rows, dropped=dropped)


def intake_of(
    stage: Stage,
    queues: PathQueues,
    report: StageReport,
    sampler: StageSampler | None,
    *,
    start_ns: int,
    held: SlackGate | ReplicaReads,
) -> GateIntake | SplitIntake:
    """Return the intake of a stage: its gate's, or a replica's."""
    if isinstance(held, SlackGate):
        return GateIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)
    return SplitIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)
