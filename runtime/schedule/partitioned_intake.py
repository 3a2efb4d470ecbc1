"""Intake of a replica, whose gate is another stage: its parts of that gate's reads."""

from __future__ import annotations

from slackwater.runtime.config import Limits
from slackwater.runtime.merge import ReplicaReads
from slackwater.runtime.schedule.accounts import count_reads
from slackwater.runtime.schedule.intake import HeldIntake, Taken


class PartitionedIntake(HeldIntake[ReplicaReads]):
    """Intake of a replica: reads of its gate, another stage, in parts if long."""

    def take(self, now_ns: int, *, max_rows: int) -> Taken:
        """Return the reads that are whole by now."""
        reads, sampler = self._held, self._sampler
        used: list[tuple[str, int]] = []
        for writer, message, came_ns in self._come(now_ns, max_rows, used):
            reads.insert(writer, message)
            if sampler is not None:
                sampler.partitioned(message, came_ns)
        held = self._count_most()
        released = reads.read(limit=max_rows)
        self.more = reads.has_more
        self._go_on(released)
        if sampler is not None:
            sampler.read(released, now_ns)
        return Taken(released, used, held - reads.rows_held)

    def may_grant(self, channel: str, limits: Limits) -> bool:
        """Whether there is room for more; always if what is there is no whole read."""
        del channel
        return self._held.rows_held < limits.gate_rows or not self._held.has_more

    def count(self, dropped: int) -> None:
        """Fill in what of the reads has gone on."""
        count_reads(self._report, self._held, queued=self._queues.rows, dropped=dropped)
