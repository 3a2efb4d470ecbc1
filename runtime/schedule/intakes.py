"""Choice of a stage's intake, by what holds its rows."""

from __future__ import annotations

from slackwater.runtime.config import Limits
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.merge import ReplicaReads, SlackGate
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule.accounts import count_reads
from slackwater.runtime.schedule.intake import GateIntake, HeldIntake, Intake, Taken
from slackwater.runtime.schedule.queues import PathQueues
from slackwater.runtime.schedule.stage_sampler import StageSampler

__all__ = ["intake_of"]


def intake_of(
    stage: Stage,
    queues: PathQueues,
    report: StageReport,
    sampler: StageSampler | None,
    *,
    start_ns: int,
    held: SlackGate | ReplicaReads,
) -> Intake:
    """Return the intake of a stage: its gate's, or a replica's."""
    if isinstance(held, SlackGate):
        return GateIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)
    return SplitIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)


class SplitIntake(HeldIntake[ReplicaReads]):
    """Intake of a replica: reads of its gate, another stage, in parts if long."""

    def take(self, now_ns: int, *, max_rows: int) -> Taken:
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
        return Taken(released, used, held - reads.rows_held)

    def may_grant(self, channel: str, limits: Limits) -> bool:
        """Whether there is room for more; always if what is there is no whole read."""
        del channel
        return self._held.rows_held < limits.gate_rows or not self._held.has_more

    def count(self, report: StageReport, dropped: int, now_ns: int) -> None:
        """Fill in what of the reads has gone on."""
        super().count(report, dropped, now_ns)
        count_reads(report, self._held, queued=self._queues.rows, dropped=dropped)
