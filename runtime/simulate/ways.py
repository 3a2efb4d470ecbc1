"""Ways between slots: messages and credit under way, in virtual time.

```
send ──▶ [queue of the link, stimulus order] ──▶ bytes / bytes_per_s ──▶ delay, jitter ──▶ arrive
         where it has a capacity; else at once
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from slackwater.runtime.model import NS_PER_SECOND, Message, Progress
from slackwater.runtime.plan.plan import Channel, Plan
from slackwater.runtime.schedule.queues import PathQueues
from slackwater.runtime.simulate.models import LinkModel

Arrive = Callable[[], None]
Wire = Callable[[Message], Message]
"""Function from a message as sent to the message as received."""


class Timeline(Protocol):
    """Virtual time, with scheduled calls."""

    now_ns: int

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time."""
        ...


class Ways:
    """Ways between the slots of a plan.

    Attributes:
        wire: makes the wire of a channel. None if messages arrive as they were sent. Tests set it
            for all simulations, to a cluster's frames: a message that fails there fails here too.
    """

    wire: ClassVar[Callable[[Channel], Wire] | None] = None

    def __init__(
        self, plan: Plan, model: LinkModel, time: Timeline, rng: np.random.Generator
    ) -> None:
        self._model, self._time, self._rng = model, time, rng
        self._node = {stage: plan.places[slot].node for stage, slot in plan.slots.items()}
        self._free_ns: dict[tuple[str, str], int] = {}  # {(channel, what): its last arrival}
        self._names = [channel.name for channel in plan.channels]
        self._links: dict[tuple[str, str], _Link] = {}  # {(from node, to node): link}, once used
        self._wires: dict[str, Wire] = {}  # {channel: wire}, once used

    def moved(self, plan: Plan) -> None:
        """Use a new plan: channels get new wires."""
        self._node = {stage: plan.places[slot].node for stage, slot in plan.slots.items()}
        self._wires.clear()

    def through_wire(self, channel: Channel, message: Message) -> Message:
        """Return the message as the other slot will receive it.

        Raises:
            FrameError: the message does not fit a frame.
        """
        make = type(self).wire
        if make is None:
            return message
        if channel.name not in self._wires:
            self._wires[channel.name] = make(channel)
        return self._wires[channel.name](message)

    def send(self, channel: Channel, message: Message, arrive: Arrive) -> None:
        """Carry a message to another slot."""
        nodes = self._nodes(channel)
        travel = partial(self._travel, (channel.name, "data"), nodes, arrive)
        link = self._link(nodes)
        if link is None:
            travel()
        else:
            link.send(channel.name, message, travel)

    def send_mark(self, channel: Channel, now_ns: int, arrive: Arrive) -> None:
        """Carry a mark to another slot, after the messages of its channel."""
        nodes = self._nodes(channel)
        follow = partial(self._follow, (channel.name, "data"), arrive)
        link = self._link(nodes)
        if link is None:
            follow()
        else:
            link.send(channel.name, Message(None, Progress(stimulus_ns=now_ns)), follow)

    def _follow(self, way: tuple[str, str], arrive: Arrive) -> None:
        self._time.at(max(self._time.now_ns, self._free_ns.get(way, 0)), arrive)

    def give_back(self, channel: Channel, arrive: Arrive) -> None:
        """Carry credit back to a channel's sender; it takes no capacity."""
        source, target = self._nodes(channel)
        self._travel((channel.name, "credit"), (target, source), arrive)

    def _travel(self, way: tuple[str, str], nodes: tuple[str, str], arrive: Arrive) -> None:
        at_ns = self._time.now_ns + self._model.of(*nodes).travel_ns(self._rng)
        at_ns = max(at_ns, self._free_ns.get(way, 0))
        self._free_ns[way] = at_ns
        self._time.at(at_ns, arrive)

    def _link(self, nodes: tuple[str, str]) -> _Link | None:
        """Return the link between two nodes; None if unlimited, or one node."""
        capacity = self._model.of(*nodes).bytes_per_s
        if nodes[0] == nodes[1] or capacity is None:
            return None
        if nodes not in self._links:
            self._links[nodes] = _Link(capacity, self._names, self._time)
        return self._links[nodes]

    def _nodes(self, channel: Channel) -> tuple[str, str]:
        return self._node[channel.source], self._node[channel.target]


class _Link:
    """Link from one node to another: one message at a time, the earliest stimulus first."""

    def __init__(self, bytes_per_s: float, channels: Iterable[str], time: Timeline) -> None:
        self._bytes_per_s, self._time = bytes_per_s, time
        names = list(channels)
        self._waiting = PathQueues(names)
        self._leaves: dict[str, deque[Arrive]] = {name: deque() for name in names}
        self._is_busy = False

    def send(self, channel: str, message: Message, leave: Arrive) -> None:
        self._waiting.push(channel, message, self._time.now_ns)
        self._leaves[channel].append(leave)
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        waiting = self._waiting.pop(self._time.now_ns)
        self._is_busy = waiting is not None
        if waiting is None:
            return
        channel, message, _ = waiting
        size = 0 if message.batch is None else message.batch.nbytes
        took_ns = round(size / self._bytes_per_s * NS_PER_SECOND)
        leave = self._leaves[channel].popleft()
        self._time.at(self._time.now_ns + took_ns, lambda: self._done(leave))

    def _done(self, leave: Arrive) -> None:
        leave()
        self._next()
