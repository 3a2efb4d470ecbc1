"""What of a stage's message goes on which channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.model import END_NS, START_NS, Batch, Message
from runtime.plan.plan import Channel


class StageOutputs:
    """The output channels of a stage, and when each last carried something.

    Attributes:
        tells_arrivals: whether one of them tells how far arrivals have come.
    """

    def __init__(self, outputs: Sequence[Channel], *, start_ns: int) -> None:
        # (channel, names of its columns, its place in `_sent_ns`)
        self._outputs = [(c, c.schema.names, at) for at, c in enumerate(outputs)]
        self.tells_arrivals = any(channel.tells_arrivals for channel in outputs)
        self._sent_ns = [start_ns] * len(outputs)
        self._promise_ns = START_NS  # of the last message
        self._silent_until_ns = self._until_ns()

    def parts(self, message: Message, now_ns: int) -> Sequence[tuple[Channel, Message]]:
        """Return what goes on each channel: its columns only; nothing it has no use for."""
        batch, arrived, promise_ns = message.batch, message.arrived, message.promise_ns
        if batch is None and now_ns < self._silent_until_ns and promise_ns != END_NS:
            self._promise_ns = promise_ns
            return ()
        sends: list[tuple[Channel, Message]] = []
        # Whom nobody tells of arrivals is told nothing by a message that says nothing else.
        is_of_arrivals = arrived is not None and message.promise_ns == self._promise_ns
        self._promise_ns = message.promise_ns
        for channel, names, at in self._outputs:
            part = message
            if batch is not None:
                columns = {name: batch.columns[name] for name in names}
                writers = batch.writers if channel.has_writers else None
                part = Message(
                    Batch(
                        batch.event_time_ns,
                        batch.stimulus_time_ns,
                        columns,
                        writers,
                        batch.marks,
                        batch.arrivals if channel.tells_arrivals else None,
                    ),
                    message.promise_ns,
                    message.promise_stimulus_ns,
                    arrived=arrived if channel.tells_arrivals else None,
                )
            elif arrived is None or not channel.tells_arrivals:
                is_too_soon = now_ns - self._sent_ns[at] < channel.promise_gap_ns
                if message.promise_ns != END_NS and (
                    not channel.needs_promises or is_too_soon or is_of_arrivals
                ):
                    continue
                if arrived is not None:
                    part = Message(None, message.promise_ns, message.promise_stimulus_ns)
            self._sent_ns[at] = now_ns
            sends.append((channel, part))
        self._silent_until_ns = self._until_ns()
        return sends

    def _until_ns(self) -> int:
        """Return until when no channel has use for a promise alone."""
        if self.tells_arrivals:
            return START_NS
        ends = [
            self._sent_ns[at] + channel.promise_gap_ns
            for channel, _, at in self._outputs
            if channel.needs_promises
        ]
        return min(ends, default=END_NS)

    def snapshot(self) -> dict[str, Any]:
        """Return when each channel last carried something, and what was promised."""
        return {"sent_ns": list(self._sent_ns), "promise_ns": self._promise_ns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._sent_ns, self._promise_ns = list(state["sent_ns"]), state["promise_ns"]
        self._silent_until_ns = self._until_ns()
