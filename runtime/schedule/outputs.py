"""What of a stage's message goes on which channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.model import END_NS, Batch, Message
from runtime.plan.plan import Channel


class StageOutputs:
    """The output channels of a stage, and when each last carried something."""

    def __init__(self, outputs: Sequence[Channel], *, start_ns: int) -> None:
        # (channel, names of its columns, its place in `_sent_ns`)
        self._outputs = [(c, c.schema.names, at) for at, c in enumerate(outputs)]
        self._sent_ns = [start_ns] * len(outputs)

    def parts(self, message: Message, now_ns: int) -> Sequence[tuple[Channel, Message]]:
        """Return what goes on each channel: its columns only; nothing it has no use for."""
        sends: list[tuple[Channel, Message]] = []
        batch = message.batch
        for channel, names, at in self._outputs:
            part = message
            if batch is not None:
                columns = {name: batch.columns[name] for name in names}
                writers = batch.writers if channel.has_writers else None
                part = Message(
                    Batch(
                        batch.event_time_ns, batch.stimulus_time_ns, columns, writers, batch.marks
                    ),
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

    def snapshot(self) -> dict[str, Any]:
        """Return when each channel last carried something."""
        return {"sent_ns": list(self._sent_ns)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._sent_ns = list(state["sent_ns"])
