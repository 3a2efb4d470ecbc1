"""A stage's input queue: one FIFO per input channel, read in stimulus order unless told.

Along one path messages arrive in stimulus order, so the earliest is at the head of some FIFO:
constant time to enqueue and dequeue. Source: [mace] §VI-A, Efficient Implementation, which has
a FIFO per path; a channel behind a gate joins several (docs/papers/).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

from runtime.errors import SettingError
from runtime.expressions.nearest import listed
from runtime.model import Message
from runtime.plan.plan import Channel
from runtime.schedule.order import PathOrder, PathView


def path_queues(channels: Iterable[Channel], order: object) -> PathQueues:
    """Return the queues of a stage: read in the user's order, if that has one for paths."""
    sources = {channel.name: channel.source for channel in channels}
    if callable(getattr(order, "first_path", None)):
        return OrderedPathQueues(sources, cast(PathOrder, order))
    return PathQueues(sources)


class PathQueues:
    """FIFO queues, one per input channel; the message with the earliest stimulus goes first."""

    def __init__(self, channels: Iterable[str]) -> None:
        self._paths: dict[str, deque[tuple[int, Message, int]]] = {c: deque() for c in channels}
        self._messages = 0
        self.rows = 0
        self.wait_ns = 0
        """Time that rows have waited here, summed."""

    def push(self, channel: str, message: Message, now_ns: int) -> None:
        """Queue a message."""
        self._paths[channel].append((stimulus_ns(message), message, now_ns))
        self._messages += 1
        self.rows += message.rows

    def pop(self, now_ns: int) -> tuple[str, Message, int] | None:
        """Take the message that goes next, and when it came; None: all are empty."""
        channel = self._first(now_ns)
        if channel is None:
            return None
        _, message, since_ns = self._paths[channel].popleft()
        self._messages -= 1
        self.rows -= message.rows
        self.wait_ns += message.rows * (now_ns - since_ns)
        return channel, message, since_ns

    def oldest_ns(self) -> int | None:
        """Return when the message came that has waited longest; None when all are empty."""
        return min((path[0][2] for path in self._paths.values() if path), default=None)

    def earliest_stimulus_ns(self) -> int | None:
        """Return the earliest stimulus time queued; None when all are empty."""
        channel = PathQueues._first(self, 0)
        return None if channel is None else self._paths[channel][0][0]

    def waiting(self) -> set[str]:
        """Return the channels that have messages here."""
        return {channel for channel, path in self._paths.items() if path}

    def _first(self, now_ns: int) -> str | None:
        """Return the channel of the message that goes next."""
        del now_ns
        if not self._messages:
            return None
        first: str | None = None
        earliest = 0
        for channel, path in self._paths.items():
            if path and (first is None or path[0][0] < earliest):
                first, earliest = channel, path[0][0]
        return first

    def snapshot(self) -> dict[str, Any]:
        """Return what is queued."""
        return {
            "paths": {channel: list(path) for channel, path in self._paths.items()},
            "rows": self.rows,
            "wait_ns": self.wait_ns,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._paths = {channel: deque(path) for channel, path in state["paths"].items()}
        self._messages = sum(map(len, self._paths.values()))
        self.rows, self.wait_ns = state["rows"], state["wait_ns"]


class OrderedPathQueues(PathQueues):
    """The same, read as an order of the user's says; {channel: the stage that feeds it}."""

    def __init__(self, sources: Mapping[str, str], order: PathOrder) -> None:
        super().__init__(sources)
        self._sources, self._order = dict(sources), order

    def _first(self, now_ns: int) -> str | None:
        heads = [(channel, path[0], len(path)) for channel, path in self._paths.items() if path]
        if len(heads) < 2:
            return heads[0][0] if heads else None
        views = [
            PathView(channel, self._sources[channel], stimulus_ns, came_ns, message.rows, messages)
            for channel, (stimulus_ns, message, came_ns), messages in heads
        ]
        first = self._order.first_path(views, now_ns)
        if first not in views:
            raise SettingError(
                f"order={self._order!r} chose {first!r}, which is none of the paths that it was "
                f"shown ({listed([view.name for view in views])}); let first_path() return one of "
                "them"
            )
        return first.name


def stimulus_ns(message: Message) -> int:
    """Return a message's place in the schedule: its first row's stimulus, or its promise's."""
    if message.batch is not None and message.rows:
        return message.batch.stimulus_time_ns.item(0)
    return message.promise_stimulus_ns


def credit_of(message: Message) -> int:
    """Return what a message costs of its channel's credit; one with no rows costs one."""
    return max(1, message.rows)
