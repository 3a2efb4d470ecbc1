"""A stage's input queue: one FIFO per input channel, read in stimulus order unless told.

Constant time to enqueue and dequeue. Source: [mace] §VI-A, Efficient Implementation, which has
a FIFO per path, each in stimulus order; a channel after a gate joins several, and its rows are in
event-time order (docs/decisions/2026-11-23-stimulus-order.md).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np

from slackwater.runtime.model import NO_PROGRESS, Message
from slackwater.runtime.model.state import Fields
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.order import PathOrder, PathView, choice

_FEW = 32
"""Rows of which Python finds the least sooner than NumPy does."""


def path_queues(channels: Iterable[Channel], order: object) -> PathQueues:
    """Return a stage's queues, read in the user's order if that chooses paths."""
    channels = list(channels)
    sources = {channel.name: channel.feeder for channel in channels}
    if callable(getattr(order, "first_path", None)):
        stage = channels[0].target if channels else ""
        return OrderedPathQueues(sources, cast(PathOrder, order), stage=stage)
    return PathQueues(sources)


class Path:
    """Queue of one channel: first in, first out.

    After a gate rows come in event-time order, so what comes later may have the earlier stimulus.
    It lends its urgency to what stands before it: nothing on a channel overtakes, and until those
    are gone it cannot go on.
    """

    STATE = Fields("messages", "_least", "told")

    __slots__ = ("_least", "messages", "place", "told")

    def __init__(self, place: int = 0) -> None:
        self.place = place  # among the channels of its stage
        self.messages: deque[tuple[int, Message, int]] = deque()
        # The stimuli that are earlier than all after them, ascending: the first is the least.
        self._least: deque[int] = deque()
        self.told = NO_PROGRESS  # of the last message taken

    def push(self, message: Message, now_ns: int) -> None:
        """Queue a message."""
        earliest_ns, least = stimulus_ns(message), self._least
        while least and least[-1] > earliest_ns:
            least.pop()
        least.append(earliest_ns)
        self.messages.append((earliest_ns, message, now_ns))

    def pop(self, max_rows: int | None = None) -> tuple[Message, int]:
        """Take the first message, or so many of its rows, and when it came."""
        earliest_ns, message, since_ns = self.messages.popleft()
        least = self._least
        if earliest_ns == least[0]:
            least.popleft()
        if max_rows is not None and message.rows > max_rows:
            message, rest = message.split(max_rows, self.told)
            earliest_ns = stimulus_ns(rest)
            if not least or earliest_ns <= least[0]:
                least.appendleft(earliest_ns)
            self.messages.appendleft((earliest_ns, rest, since_ns))
        self.told = message.progress.with_arrived(None)
        return message, since_ns

    @property
    def earliest_ns(self) -> int:
        """The earliest stimulus time of what waits; something must."""
        return self._least[0]


class PathQueues:
    """FIFO queues, one per input channel; that with the earliest stimulus goes first."""

    STATE = Fields("_by_place", "_messages", "rows", "wait_ns")

    def __init__(self, channels: Iterable[str]) -> None:
        self._paths = {channel: Path(place) for place, channel in enumerate(channels)}
        self._names, self._by_place = list(self._paths), list(self._paths.values())
        # Heap of (earliest stimulus, place) of paths with messages; some entries are out of date.
        self._heads: list[tuple[int, int]] = []
        self._messages = 0
        self.rows = 0
        self.wait_ns = 0
        """Time that rows have waited here, summed."""

    def push(self, channel: str, message: Message, now_ns: int) -> None:
        """Queue a message."""
        path = self._paths[channel]
        before_ns = path.earliest_ns if path.messages else None
        path.push(message, now_ns)
        self._note(path, before_ns)
        self._messages += 1
        self.rows += message.rows

    def pop(self, now_ns: int, max_rows: int | None = None) -> tuple[str, Message, int] | None:
        """Take the message that goes next, and when it came; None if all are empty.

        Of one with more than `max_rows` rows so many are taken, and the rest stays first.
        """
        channel = self._first(now_ns)
        if channel is None:
            return None
        path = self._paths[channel]
        before, before_ns = len(path.messages), path.earliest_ns
        message, since_ns = path.pop(max_rows)
        if path.messages:
            self._note(path, before_ns)
        self._messages -= before - len(path.messages)
        self.rows -= message.rows
        self.wait_ns += message.rows * (now_ns - since_ns)
        return channel, message, since_ns

    @property
    def has_any(self) -> bool:
        """Whether a message waits here."""
        return self._messages > 0

    def oldest_ns(self) -> int | None:
        """Return when the message came that has waited longest; None if all are empty."""
        return min((p.messages[0][2] for p in self._paths.values() if p.messages), default=None)

    def earliest_stimulus_ns(self) -> int | None:
        """Return the earliest stimulus time queued; None if all are empty."""
        if not self._messages:
            return None
        return None if self._first_head() is None else self._heads[0][0]

    def promised_ns(self, channel: str) -> int | None:
        """Return the promise of the last message queued on a channel; None if none is."""
        messages = self._paths[channel].messages
        return messages[-1][1].progress.promise_ns if messages else None

    def rows_until(self, stimulus_ns: int, most: int) -> int:
        """Return the rows, up to `most`, of messages that begin by a stimulus."""
        rows = 0
        for path in self._paths.values():
            for earliest_ns, message, _ in path.messages:
                if earliest_ns > stimulus_ns or rows >= most:
                    break
                rows += message.rows
        return min(rows, most)

    def waiting(self) -> set[str]:
        """Return the channels that have messages here."""
        return {channel for channel, path in self._paths.items() if path.messages}

    def _first(self, now_ns: int) -> str | None:
        """Return the channel of the message that goes next."""
        del now_ns
        return self._first_head() if self._messages else None

    def _first_head(self) -> str | None:
        """Return the channel with the earliest stimulus; of equals the first."""
        heads, paths = self._heads, self._by_place
        while heads:
            earliest_ns, place = heads[0]
            path = paths[place]
            if path.messages and path.earliest_ns == earliest_ns:
                return self._names[place]
            heapq.heappop(heads)
        return None

    def _note(self, path: Path, before_ns: int | None) -> None:
        """Note that the earliest stimulus of a path with messages may be another one."""
        if (earliest_ns := path.earliest_ns) != before_ns:
            heapq.heappush(self._heads, (earliest_ns, path.place))

    def derive(self) -> None:
        """Find the earliest stimulus of each path."""
        self._heads = [
            (path.earliest_ns, path.place) for path in self._paths.values() if path.messages
        ]
        heapq.heapify(self._heads)


class OrderedPathQueues(PathQueues):
    """Queues read in a user's order; `sources`: {channel: subject that feeds it}."""

    def __init__(self, sources: Mapping[str, Subject], order: PathOrder, *, stage: str) -> None:
        super().__init__(sources)
        self._stage = stage
        self._sources, self._order = dict(sources), order

    def _first(self, now_ns: int) -> str | None:
        heads = [(channel, path) for channel, path in self._paths.items() if path.messages]
        if len(heads) < 2:
            return heads[0][0] if heads else None
        views = [
            PathView(
                channel,
                self._sources[channel],
                path.earliest_ns,
                came_ns,
                message.rows,
                len(path.messages),
            )
            for channel, path in heads
            for _, message, came_ns in (path.messages[0],)
        ]
        at = f"stage {self._stage!r}"
        return choice(self._order.first_path, views, now_ns, at=at).name


def stimulus_ns(message: Message) -> int:
    """Return a message's place in the schedule: its earliest row's stimulus, or its promise's."""
    if message.batch is None or not message.rows:
        return message.progress.stimulus_ns
    stimuli_ns = message.batch.stimulus_time_ns
    if message.rows == 1:
        return stimuli_ns.item(0)
    if message.rows <= _FEW:
        least: int = min(stimuli_ns.tolist())
        return least
    return int(np.minimum.reduce(stimuli_ns))


def credit_of(message: Message) -> int:
    """Return what a message costs of its channel's credit; one with no rows costs one."""
    return max(1, message.rows)
