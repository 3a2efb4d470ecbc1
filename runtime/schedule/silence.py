"""Channels that have said nothing for too long: their gates go on without them.

```
deliver ─▶ heard()     when each channel last spoke, promises without rows included
wake    ─▶ due_ns()    when the first of those that everybody waits for is silent for too long
read    ─▶ mark()      those hold nobody back until they speak again
```

The last one is never marked: nobody is left who could go on, and if all inputs pause, as when the
network does, what comes then is not late. Only channels of sources with an `idle` are here; without
one a gate waits for ever, as the paper's does, and the clock never shows in the results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from runtime.flow.plan import Channel
from runtime.merge import SlackGate


class SilentChannels:
    """Watches the input channels of one gate. Departs from [ssg], which has no silent writer.

    Args:
        inputs: the channels, in the order of the gate's writers.
        start_ns: wall clock; before it nobody could have spoken.

    Attributes:
        marks: {source: how often its channel was marked idle}.
    """

    def __init__(self, inputs: Sequence[Channel], *, start_ns: int) -> None:
        self._names = [channel.name for channel in inputs]
        self._sources = [channel.source for channel in inputs]
        self._idle_ns = [channel.idle_ns for channel in inputs]
        self._heard_ns = {channel.name: start_ns for channel in inputs}  # {channel: wall clock}
        self.marks: dict[str, int] = {}

    def heard(self, channel: str, now_ns: int) -> None:
        """Note that a message has come."""
        self._heard_ns[channel] = now_ns

    def due_ns(self, gate: SlackGate) -> int | None:
        """Return when the next of those that the gate waits for is idle; None: never."""
        return min([due_ns for _, due_ns in self._waited_for(gate)], default=None)

    def mark(self, gate: SlackGate, now_ns: int, *, queued: Collection[str]) -> None:
        """Mark idle whom the gate waits for and who has been silent for too long.

        Args:
            gate: the gate.
            now_ns: wall clock.
            queued: channels whose messages wait to be taken in: those have spoken.
        """
        while silent := [
            writer
            for writer, due_ns in self._waited_for(gate)
            if due_ns <= now_ns and self._names[writer] not in queued
        ]:
            for writer in silent:
                if gate.only_one_speaks:
                    return
                gate.mark_idle(writer)
                source = self._sources[writer]
                self.marks[source] = self.marks.get(source, 0) + 1

    def _waited_for(self, gate: SlackGate) -> list[tuple[int, int]]:
        """Return (writer, wall clock at which it is idle) of those that hold the frontier."""
        waited_for: list[tuple[int, int]] = []
        if gate.only_one_speaks:
            return waited_for
        for writer in gate.holders():
            idle_ns = self._idle_ns[writer]
            if idle_ns is not None:
                waited_for.append((writer, self._heard_ns[self._names[writer]] + idle_ns))
        return waited_for
