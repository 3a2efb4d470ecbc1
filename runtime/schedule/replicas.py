"""Stages around replicas: a gate shares rows out; after them streams meet again.

```
join.gate ─┬─▶ join.1 ─┐
           └─▶ join.2 ─┴─▶ filter or sink, which has no gate
 SharedGateNode       UnionInput
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Message, Progress
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.progress import Frontier


class UnionInput:
    """Several channels into a stage without a gate: rows pass as they come.

    What it promises is the least of their promises. Each row keeps its writer, the hash of its key,
    or is given the channel's rank; so a gate further on finds the same order however the channels
    took turns.
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
        if batch is not None and batch.writers is None:
            writers = np.full(message.rows, self._ranks[channel], dtype=np.int64)
            batch = batch.with_(writers=writers)
        promise_ns, _ = frontier.minimum()
        own = Progress(promise_ns, progress.stimulus_ns, frontier.newest_ns, progress.arrived)
        return Message(batch, own)
