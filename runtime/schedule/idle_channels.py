"""Channels that have said nothing for too long: their gates go on without them.

```
deliver ─▶ heard()     when each channel last spoke, promises without rows included
grant   ─▶ allow()     who has to be silent, for the gate is full of its rows
wake    ─▶ due_ns()    when the first of those that everybody waits for is silent for too long
read    ─▶ mark()      those are not waited for until they speak again
                       where all are silent, and live: time goes on by the clock
```

A silence counts only while its channel could speak and be heard: not while its rows wait to be
taken in or the gate gives it no credit, and not while all inputs pause, as when the network does:
who speaks first then is not the one that is right. Nor is the last of several marked that could
speak, unless rows of one that has ended wait for it. The only input of a gate is: all that it has
sent leaves then, up to the newest event, and nothing as new as that is late afterwards.

Where all channels that have not ended come of live sources with an `idle`, all of them may be
marked. Then the time of the gate goes on with the clock, `idle` after it: what is due by silence
comes in time. What the silence of a network held back is late then.

```
event time   14 ───── newest row           wall clock   w
             14                                         w + idle        all are idle
             14 + 5                                     w + idle + 5    what is due at 19 is called
```

Only channels of sources with an `idle` are here; without one a gate waits for ever, as the paper's
does, and the clock never shows in the results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slackwater.runtime.merge import SlackGate
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Channel

__all__ = ["IdleChannels", "may_be_older"]

_MOVES = 8
"""Times in each `idle` at which time goes on by the clock: what is due comes so much later."""


def may_be_older(channel: Channel) -> bool:
    """Whether its sender may send older rows than it promised, or may be idle."""
    return channel.may_be_late or channel.idle_ns is not None


class IdleChannels:
    """Watches the input channels of one gate. Departs from [ssg], which has no silent writer.

    Args:
        inputs: the channels, in the order of the gate's writers.
        start_ns: wall clock; no channel could have spoken before.

    Attributes:
        marks: how often each channel was marked idle, by writer.
    """

    STATE = Fields("_spoke_ns", "_since_ns", "_word_ns", "_full", "_excused", "_moved_ns", "marks")

    def __init__(self, inputs: Sequence[Channel], *, start_ns: int) -> None:
        self._names = [channel.name for channel in inputs]
        self._idle_ns = [channel.idle_ns for channel in inputs]
        self._by_clock = [channel.by_clock for channel in inputs]
        self._shortest_ns = min([idle for idle in self._idle_ns if idle is not None])
        self._writer = {name: writer for writer, name in enumerate(self._names)}
        self._spoke_ns = [start_ns] * len(inputs)  # by writer: wall clock of its last message
        self._since_ns = [start_ns] * len(inputs)  # by writer: from when its silence counts
        self._word_ns = start_ns  # of anybody's last message
        self._moved_ns = start_ns  # wall clock at which time last went on by it
        self._full: set[int] = set()  # writers without credit, since the gate has enough of them
        self._excused: set[int] = set()  # writers to be waited for again: all had paused
        self.marks = [0] * len(inputs)

    def heard(self, channel: str, now_ns: int) -> None:
        """Note that a message has come."""
        writer = self._writer[channel]
        before_ns, self._word_ns = self._word_ns, now_ns
        if now_ns - before_ns >= self._shortest_ns:
            self._excuse(before_ns, now_ns)
        self._spoke_ns[writer] = self._since_ns[writer] = now_ns

    def _excuse(self, before_ns: int, now_ns: int) -> None:
        """Restart the silence of those who were not overdue when all fell silent."""
        for writer, idle_ns in enumerate(self._idle_ns):
            if idle_ns is None or now_ns - before_ns < idle_ns:
                continue
            if self._spoke_ns[writer] + idle_ns > before_ns:
                self._since_ns[writer] = now_ns
                self._excused.add(writer)

    def note_spoken(self, writer: int, now_ns: int) -> None:
        """Note that a message has entered the gate; its sender may have waited."""
        self._since_ns[writer] = now_ns

    def allow(self, writer: int, now_ns: int, *, may_send: bool) -> None:
        """Note whether the gate gives credit to a writer: without it, it cannot speak."""
        if not may_send:
            self._full.add(writer)
        elif writer in self._full:
            self._full.discard(writer)
            self._since_ns[writer] = now_ns

    def due_ns(self, gate: SlackGate) -> int | None:
        """Return when the next awaited channel is idle; None if never."""
        if self._goes_by_clock(gate):
            return self._moved_ns + max(1, self._shortest_ns // _MOVES)
        return min([due_ns for _, due_ns in self._waited_for(gate)], default=None)

    def mark(self, gate: SlackGate, now_ns: int, *, queued: Collection[str]) -> None:
        """Mark idle whom the gate waits for and who has been silent for too long.

        Args:
            gate: gate of the channels.
            now_ns: time by the clock.
            queued: channels whose messages wait to be taken in: those have spoken.
        """
        while self._excused:
            gate.mark_awake(self._excused.pop())
        while silent := [
            writer
            for writer, due_ns in self._waited_for(gate)
            if due_ns <= now_ns and self._names[writer] not in queued
        ]:
            for writer in silent:
                if not self._may_go_on(gate):
                    return
                gate.mark_idle(writer)
                self.marks[writer] += 1
        if self._goes_by_clock(gate) and now_ns > self._moved_ns:
            self._moved_ns = now_ns
            gate.move_by_clock(self._time_ns(gate, now_ns), now_ns)

    def _goes_by_clock(self, gate: SlackGate) -> bool:
        return gate.all_are_silent and all(self._by_clock[writer] for writer in gate.idle)

    def _time_ns(self, gate: SlackGate, now_ns: int) -> int:
        """Return how far event time is by the clock: as far as any silent channel's."""
        times = [START_NS]
        for writer in gate.idle:
            promised_ns, idle_ns = gate.promised_ns(writer), self._idle_ns[writer]
            if promised_ns > START_NS and idle_ns is not None:
                times.append(promised_ns + now_ns - self._spoke_ns[writer] - idle_ns)
        return max(times)

    def _waited_for(self, gate: SlackGate) -> list[tuple[int, int]]:
        """Return (writer, wall clock at which it is idle) of those that hold the frontier."""
        waited_for: list[tuple[int, int]] = []
        if not self._may_go_on(gate):
            return waited_for
        for writer in gate.holders():
            idle_ns = self._idle_ns[writer]
            if idle_ns is not None and writer not in self._full:
                waited_for.append((writer, self._since_ns[writer] + idle_ns))
        return waited_for

    def _may_go_on(self, gate: SlackGate) -> bool:
        """Whether anything is gained by a gate that does not wait for one more writer.

        The only one there is may be marked: then all that has come leaves. So may the last one
        where time goes on by the clock.
        """
        if len(self._names) == 1 or not gate.has_single_speaker or gate.ended_wait:
            return True
        return all(
            self._by_clock[writer]
            for writer in range(len(self._names))
            if gate.promised_ns(writer) < END_NS
        )
