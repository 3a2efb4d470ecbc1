"""Outputs of a stage beside its results: late rows, and rows that it diverted.

```
stage ──┬──▶ results
        └──▶ side rows ──▶ …     a row beside the results travels as an event of its own
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from slackwater.runtime.model import Batch, Message, concat_batches
from slackwater.runtime.model.diverted import DivertedRow, columns_of_diverted
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.outputs import StageOutputs

__all__ = ["DivertedOutputs", "SideOutputs"]


class SideOutputs(ABC):
    """Output channels of a stage for side rows. Between slices no row waits here.

    Args:
        channels: channels that carry such rows.
        start_ns: start of the job.
    """

    STATE = Fields("_outputs")

    def __init__(self, channels: Sequence[Channel], *, start_ns: int) -> None:
        self._channels = list(channels)
        self._outputs = [StageOutputs([channel], start_ns=start_ns) for channel in channels]

    def parts(self, message: Message, now_ns: int) -> list[tuple[Channel, Message]]:
        """Return what goes on each channel: its rows, once, and the stage's promise."""
        sends: list[tuple[Channel, Message]] = []
        for channel, outputs in zip(self._channels, self._outputs, strict=True):
            batches = self.batches(channel, now_ns)
            batch = concat_batches(batches) if batches else None
            part = Message(batch, message.progress.with_arrived(None))
            sends += outputs.parts(part, now_ns)
        self.clear()
        return sends

    @abstractmethod
    def batches(self, channel: Channel, now_ns: int) -> list[Batch]:
        """Return the rows of a channel."""

    @abstractmethod
    def clear(self) -> None:
        """Forget the rows, which have left."""


class DivertedOutputs(SideOutputs):
    """Channels of rows that steps of a stage diverted, since they could not use them."""

    def __init__(self, channels: Sequence[Channel], *, start_ns: int) -> None:
        super().__init__(channels, start_ns=start_ns)
        self._rows: dict[str, list[DivertedRow]] = {}

    def take(self, step: str, rows: list[DivertedRow]) -> None:
        """Take rows that a step diverted."""
        if rows:
            self._rows.setdefault(step, []).extend(rows)

    @property
    def has_rows(self) -> bool:
        """Whether rows wait to be sent."""
        return bool(self._rows)

    def batches(self, channel: Channel, now_ns: int) -> list[Batch]:  # noqa: D102
        assert channel.diverted is not None, "it carries diverted rows"
        rows = self._rows.get(channel.diverted)
        if not rows:
            return []
        columns = columns_of_diverted(channel.diverted, rows)
        carried = {name: columns[name] for name in channel.schema.names}
        times_ns = np.array([row.event_time_ns for row in rows], np.int64)
        return [
            Batch(
                event_time_ns=times_ns,
                stimulus_time_ns=np.full(len(rows), now_ns, np.int64),
                columns=carried,
            )
        ]

    def clear(self) -> None:  # noqa: D102
        self._rows.clear()
