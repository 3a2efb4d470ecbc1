"""Arrivals at a stage: the least over its writers, and before what it holds.

```
a tells 9   ─┐                     every row that arrived before 7 has gone on:
b tells 8   ─┴▶ gate holds 7 ──▶   7                     b may send 8, and 7 is still here
```
Who has told nothing yet is waited for: a source tells nothing before its first row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from slackwater.runtime.model import END_NS, START_NS, Arrived, Batch, Message
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.progress import Frontier
from slackwater.runtime.sources.arrivals import ArrivalTeller


class ArrivalFrontier:
    """Frontier of the arrivals that a stage's writers have told. It never runs back.

    Args:
        writers: number of all writers.
    """

    STATE = Fields("_frontier", "_ahead", "_stimulus_ns", "_since_ns", "_reached_ns")

    def __init__(self, writers: int) -> None:
        self._writers, self._frontier = writers, Frontier(writers)
        # Of each the rows that it has sent ahead of all: (their newest arrival, how many).
        self._ahead: list[deque[tuple[int, int]]] = [deque() for _ in range(writers)]
        self._stimulus_ns = START_NS
        self._since_ns = START_NS
        self._reached_ns = START_NS

    @classmethod
    def of(cls, stage: Stage) -> ArrivalFrontier | None:
        """Return the frontier of a stage's inputs; None if none of them tells of arrivals."""
        inputs = stage.inputs
        return (
            cls(len(inputs))
            if any("arrivals" in channel.row_fields for channel in inputs)
            else None
        )

    def hear(self, writer: int, message: Message) -> None:
        """Take what a message of a writer tells."""
        if (arrived := message.progress.arrived) is not None:
            self._frontier.advance(writer, arrived.ns)
            self._frontier.newest_ns = max(self._frontier.newest_ns, arrived.ns)
            self._stimulus_ns = max(self._stimulus_ns, arrived.stimulus_ns)
            self._since_ns = max(self._since_ns, arrived.since_ns)
        if message.progress.is_end:
            self._frontier.advance(writer, END_NS)
        if message.batch is not None and message.rows and message.batch.arrivals is not None:
            newest_ns = int(message.batch.arrivals[:, 0].max())
            self._ahead[writer].append((newest_ns, message.rows))

    def rows_ahead(self, writer: int) -> int:
        """Return about how many rows of a writer wait for others to come as far."""
        return sum([rows for _, rows in self._ahead[writer]])

    def holders(self, *, idle: Collection[int] = ()) -> list[int]:
        """Return the writers that everybody waits for; none if all have ended, or are idle."""
        waited = [n for n in range(self._writers) if n not in idle]
        promises_ns = self._frontier.promises_ns
        least_ns = min([promises_ns[writer] for writer in waited], default=END_NS)
        if least_ns == END_NS:
            return []
        return [writer for writer in waited if promises_ns[writer] == least_ns]

    def advance(self, held: Iterable[Batch] = (), *, idle: Collection[int] = ()) -> Arrived | None:
        """Return how far arrivals have come, if that is further than what was returned before.

        Args:
            held: rows that have come here, and not gone on.
            idle: writers that are not waited for until they speak again.
        """
        self._frontier.wait_for_all_but(idle)
        reached_ns, holder = self._frontier.minimum()
        if holder == self._writers:
            return None  # who is idle may still wake up
        if reached_ns == END_NS:
            reached_ns = self._frontier.newest_ns
        if reached_ns <= self._reached_ns:
            return None
        for batch in held:
            if batch.arrivals is not None and len(batch):
                reached_ns = min(reached_ns, int(batch.arrivals[:, 0].min()))
        if reached_ns <= self._reached_ns:
            return None
        self._reached_ns = reached_ns
        for ahead in self._ahead:
            while ahead and ahead[0][0] < reached_ns:
                ahead.popleft()
        return Arrived(reached_ns, self._stimulus_ns, self._since_ns)


def teller_of(stage: Stage, step: SourceStep) -> ArrivalTeller | None:
    """Return what tells of a source's arrivals; None if no stage uses them."""
    if stage.arrivals is None:
        return None
    every_ns, speed = stage.arrivals.every_ns, step.source.speed
    return ArrivalTeller(every_ns, rank=stage.number, speed=speed)
