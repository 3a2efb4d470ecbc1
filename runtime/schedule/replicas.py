"""Stages around replicas: a gate shares rows out; after them streams meet again.

```
join.gate ─┬─▶ join.1 ─┐
           └─▶ join.2 ─┴─▶ filter or sink, which has no gate
 ReplicaOutputs       UnionInput
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.merge import Partitioner
from slackwater.runtime.model import GateRead, Message, Progress
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Channel, Stage
from slackwater.runtime.plan.steps import GateStep
from slackwater.runtime.progress import Frontier


class ReplicaOutputs:
    """Reads of a shared gate for its replicas; between slices no read waits here."""

    STATE = Fields("_partitioner")

    def __init__(self, stage: Stage, step: GateStep) -> None:
        replicas, share = step.traits.sharing
        self._partitioner = Partitioner(step.traits.port_keys, replicas=replicas, share=share)
        # {(which replica, which of its ports): the channel there}
        self._outputs = {(one.replica, one.port): one for one in stage.outputs}
        self._sends: list[tuple[Channel, Message]] = []

    def partition(self, released: GateRead) -> int:
        """Deal a read; return how many rows it has. `take` has what goes out."""
        for replica, own_parts in enumerate(self._partitioner.partition(released)):
            self._sends += [(self._outputs[replica, port], message) for port, message in own_parts]
        return sum([len(b) for b in (*released.late, *released.ports) if b is not None])

    def take(self) -> list[tuple[Channel, Message]]:
        """Return what goes on which channel, once."""
        sends, self._sends = self._sends, []
        return sends


class UnionInput:
    """Several channels into a stage without a gate: rows pass as they come.

    What it promises is the least of their promises. Each row is given the channel's rank as its
    writer, so that a gate further on finds the same order however the channels took turns.
    """

    STATE = Fields("_frontier")

    def __init__(self, stage: Stage) -> None:
        self._ranks = {channel.name: channel.rank for channel in stage.inputs}
        self._writers = {name: writer for writer, name in enumerate(self._ranks)}
        self._frontier = Frontier(len(self._writers))

    def passed(self, channel: str, message: Message) -> Message:
        """Return a message as the stage passes it on."""
        progress, frontier = message.progress, self._frontier
        frontier.advance(self._writers[channel], progress.promise_ns)
        frontier.newest_ns = max(frontier.newest_ns, progress.newest_ns)
        batch = message.batch
        if batch is not None:
            writers = np.full(message.rows, self._ranks[channel], dtype=np.int64)
            batch = batch.with_(writers=writers)
        promise_ns, _ = frontier.minimum()
        told = Progress(promise_ns, progress.stimulus_ns, frontier.newest_ns, progress.arrived)
        return Message(batch, told)
