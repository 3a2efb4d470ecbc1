"""Node without a gate: rows go on as they come."""

from __future__ import annotations

from slackwater.runtime.measure.outcomes import READY
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import START_NS, Batch, Message, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.arrivals import ArrivalFrontier
from slackwater.runtime.schedule.node import Handed, Node
from slackwater.runtime.schedule.queues import PathQueues, credit_of
from slackwater.runtime.schedule.replicas import UnionInput
from slackwater.runtime.schedule.stage_sampler import StageSampler

__all__ = ["PassNode"]


class PassNode(Node):
    """Node of a stage without a gate: a slice takes a message, or part.

    A sink takes messages whole, and all that wait as one: an output writes blocks, and small ones
    cost it more.

    Args:
        stage: stage of the node.
        queues: queues of the stage.
        report: report of the stage.
        sampler: sampler of the stage; None if it takes no samples.
    """

    STATE = Fields("_arrivals", "_union")

    def __init__(
        self, stage: Stage, queues: PathQueues, report: StageReport, sampler: StageSampler | None
    ) -> None:
        self._queues, self._report, self._sampler = queues, report, sampler
        self._is_sink = stage.step.traits.role is Role.SINK
        self._union = UnionInput(stage) if len(stage.inputs) > 1 else None
        self._arrivals = ArrivalFrontier.of(stage)
        self._writer = {channel.name: n for n, channel in enumerate(stage.inputs)}

    def wakeup(self, rank_ns: int | None) -> Wakeup | None:  # noqa: D102 - see Node
        return None if rank_ns is None else Wakeup(START_NS, rank_ns)

    def work(self, now_ns: int, *, max_rows: int) -> Handed:  # noqa: D102 - see Node
        message, rows = None, 0
        batches: list[Batch] = []
        used: list[tuple[str, int]] = []
        while message is None or (self._is_sink and rows < max_rows):
            item = self._queues.pop(now_ns, None if self._is_sink else max_rows)
            if item is None:
                break
            channel, message, came_ns = item
            used.append((channel, credit_of(message)))
            rows += message.rows
            message = self._passed(channel, message, came_ns)
            if message.batch is not None:
                batches.append(message.batch)
        if message is None:
            return Handed()
        self._report.counts[READY] += rows
        progress = message.progress
        if self._arrivals is not None:
            progress = progress.with_arrived(self._arrivals.advance())
        batch = concat_batches(batches) if batches else None
        return Handed(batch, progress, used, sum([rows_read for _, rows_read in used]), rows)

    def _passed(self, channel: str, message: Message, came_ns: int) -> Message:
        """Account for a message; return it as the stage passes it on."""
        if self._sampler is not None:
            self._sampler.passed(message.batch, came_ns)
        if self._union is not None:
            message = self._union.passed(channel, message)
        if self._arrivals is not None:
            self._arrivals.hear(self._writer[channel], message)
        return message

    def count(self, report: StageReport, now_ns: int) -> None:  # noqa: D102 - see Node
        del now_ns
        report.in_flight = self._queues.rows

    def waited_ns(self, now_ns: int) -> int:  # noqa: D102 - see Node
        since_ns = self._queues.oldest_ns()
        return 0 if since_ns is None else max(now_ns - since_ns, 0)
