"""Gate shared by replicas: its reads are shared out, and put together again.

```
gate     read 1: rows a b c d   ──▶ replica 1: a c   ┐ each is told of every read: its share of
         read 2: rows e, late f ──▶ replica 2: b d   ┘ the rows, which came late, the watermark
```

Each replica's operator gets the reads that it would have had of a gate of its own, with its share
of the rows: so what rows were late, and how far the watermark was, is the same everywhere.
Source: [ssg] Fig. 5 (threads that read one gate); here they are in slots of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import (
    START_NS,
    Arrived,
    Batch,
    GateRead,
    Message,
    Progress,
    ReadTag,
    concat_batches,
)
from slackwater.runtime.model.hashes import even_groups, key_hashes, owners
from slackwater.runtime.model.state import Fields


class ReadSplitter:
    """Gives each replica its part of what a gate has read.

    Args:
        keys: key columns of each port.
        replicas: number of the replicas.
        share: "keys": each gets the rows of its keys; "all": all rows.
    """

    STATE = Fields("_number")

    def __init__(
        self, keys: Sequence[Sequence[str]], *, replicas: int, share: Literal["keys", "all"]
    ) -> None:
        self._keys = keys
        self._replicas = replicas
        self._share = share
        self._number = 0

    def split(self, released: GateRead) -> list[list[tuple[int, Message]]]:
        """Return for each replica its messages of a read, (port, message): at least one each.

        They promise the read's frontier: by slack that is less than its watermark, for late rows
        may follow. At the end there is one for each port, since each channel must hear of it.
        """
        progress = released.progress
        self._number += 1
        # {port: (rows, late ones first; how many are late)} of each replica
        outputs: list[dict[int, tuple[Batch, int]]] = [{} for _ in range(self._replicas)]
        for port, (late, batch) in enumerate(zip(released.late, released.ports, strict=True)):
            rows = [part for part in (late, batch) if part is not None and len(part)]
            if rows:
                late_rows = 0 if late is None else len(late)
                self._add(outputs, port, concat_batches(rows), late_rows)
        ports = range(len(released.ports))
        parts: list[list[tuple[int, Message]]] = []
        for own_parts in outputs:
            total = sum([len(batch) for batch, _ in own_parts.values()])
            targets = ports if progress.is_end else (list(own_parts) or [0])
            messages = []
            for port in targets:
                own, late_rows = own_parts.get(port, (None, 0))
                tag = ReadTag(self._number, total, late_rows, released.watermark_ns)
                messages.append((port, Message(own, progress, tag)))
            parts.append(messages)
        return parts

    def _add(
        self, outputs: list[dict[int, tuple[Batch, int]]], port: int, rows: Batch, late: int
    ) -> None:
        if self._share == "all":
            for own_parts in outputs:
                own_parts[port] = (rows, late)
            return
        columns = [rows.columns[name] for name in self._keys[port]]
        owner = owners(key_hashes(columns, len(rows)), even_groups(self._replicas))
        order = owner.argsort(kind="stable")  # so that late rows stay first, and all in order
        rows = rows.take(order)
        stops = np.bincount(owner, minlength=self._replicas).cumsum().tolist()
        lates = np.bincount(owner[:late], minlength=self._replicas).tolist()
        start = 0
        for own_parts, stop, own_late in zip(outputs, stops, lates, strict=True):
            if stop > start:
                own_parts[port] = (rows.slice(start, stop), own_late)
            start = stop


@dataclass(slots=True)
class _Read:
    """A read that is whole, or what is left of it."""

    late: list[Batch | None]
    ports: list[Batch | None]
    watermark_ns: int
    progress: Progress
    """Of arrivals it says something once all of it has been returned."""

    @property
    def rows(self) -> int:
        return sum([len(batch) for batch in self.ports if batch is not None])

    @property
    def late_rows(self) -> int:
        return sum([len(batch) for batch in self.late if batch is not None])


class ReplicaReads:
    """Reads that a replica puts together: the other end of a `ReadSplitter`.

    Args:
        ports: number of the operator's ports; there is one channel for each.

    Attributes:
        promise_ns: the frontier of what `read` has returned.
        rows_held: rows that have come and not been read.
        ready: rows read so far that the gate had released in order.
        late: rows read so far that had come late to the gate.
    """

    STATE = Fields(
        "_channels",
        "_next",
        "_rest",
        "_watermark_ns",
        "promise_ns",
        "rows_held",
        "ready",
        "late",
        elements={"_rest": _Read},
    )

    def __init__(self, ports: int) -> None:
        self._channels: list[deque[Message]] = [deque() for _ in range(ports)]
        self._next = 1
        self._rest: _Read | None = None
        self._watermark_ns = START_NS
        self.promise_ns = START_NS
        self.rows_held = self.ready = self.late = 0

    def insert(self, port: int, message: Message) -> None:
        """Take a message, in the order of its channel.

        Raises:
            FrameError: it says nothing of the read that it is of.
        """
        if message.tag is None:
            raise FrameError(
                f"a message for port {port} of a replica says nothing of the read that it is of; "
                "only the replica's gate may feed it: run one release of slackwater everywhere"
            )
        self._channels[port].append(message)
        self.rows_held += message.rows

    @property
    def unread(self) -> int:
        """Number of the first read of which nothing has been returned."""
        return self._next

    @property
    def held(self) -> int:
        """Number of the first read that has not been returned to its end."""
        return self._next - (self._rest is not None)

    @property
    def has_more(self) -> bool:
        """Whether another read would return something."""
        return self._rest is not None or self._is_whole()

    def read(self, *, limit: int) -> GateRead | None:
        """Return a whole read, about `limit` rows at most; None if none exists.

        Short reads are put together and long ones cut, where that cannot change a result.
        """
        read, self._rest = self._rest, None
        if read is None:
            if not self._is_whole():
                return None
            read = self._take()
        reads, rows = [read], read.rows + read.late_rows
        # Late rows go before those in order of their own read, and after all reads before it.
        while rows < limit and self._is_whole() and not self._has_late_next():
            reads.append(self._take())
            rows += reads[-1].rows
        if len(reads) > 1:
            read = _together(reads)
        if read.rows > limit:
            read, self._rest = _cut(read, limit)
        self._watermark_ns = max(self._watermark_ns, read.watermark_ns)
        promise_ns, stimulus_ns, newest_ns, arrived = read.progress
        self.promise_ns = max(self.promise_ns, min(promise_ns, self._watermark_ns))
        late = read.late_rows
        self.late += late
        self.ready += read.rows
        self.rows_held -= late + read.rows
        progress = Progress(self.promise_ns, stimulus_ns, newest_ns, arrived)
        return GateRead(read.ports, read.late, self._watermark_ns, progress)

    def _is_whole(self) -> bool:
        """Whether all of the next read is there; the last one comes on every channel."""
        rows, expected, shares, is_end = 0, -1, 0, False
        for channel in self._channels:
            if channel and _tag(channel[0]).number == self._next:
                shares += 1
            for message in channel:
                tag = _tag(message)
                if tag.number != self._next:
                    break
                rows, expected = rows + message.rows, tag.rows
                is_end = is_end or message.progress.is_end
        return rows == expected and (not is_end or shares == len(self._channels))

    def _has_late_next(self) -> bool:
        heads = [_tag(channel[0]) for channel in self._channels if channel]
        return any(tag.late for tag in heads if tag.number == self._next)

    def _take(self) -> _Read:
        late: list[Batch | None] = []
        ports: list[Batch | None] = []
        last: Message | None = None
        arrived: Arrived | None = None
        for channel in self._channels:
            parts: tuple[list[Batch], list[Batch]] = ([], [])
            while channel and _tag(channel[0]).number == self._next:
                message = channel.popleft()
                tag, batch = _tag(message), message.batch
                arrived = message.progress.arrived or arrived
                if batch is not None and tag.late:
                    parts[0].append(batch.slice(0, tag.late))
                if batch is not None and tag.late < message.rows:
                    parts[1].append(batch.slice(tag.late, message.rows))
                if last is None or message.progress.promise_ns >= last.progress.promise_ns:
                    last = message  # of two halves the second has the promise
            late.append(concat_batches(parts[0]) if parts[0] else None)
            ports.append(concat_batches(parts[1]) if parts[1] else None)
        assert last is not None
        self._next += 1
        return _Read(late, ports, _tag(last).watermark_ns, last.progress.with_arrived(arrived))

    def derive(self) -> None:
        """Make a record again of the progress of a read at hand."""
        if self._rest is not None:
            self._rest.progress = Progress.of_plain(self._rest.progress)


def _tag(message: Message) -> ReadTag:
    assert message.tag is not None
    return message.tag


def _together(reads: list[_Read]) -> _Read:
    """Return several reads as one; only the first may have late rows."""
    ports: list[Batch | None] = []
    for parts in zip(*[read.ports for read in reads], strict=True):
        batches = [batch for batch in parts if batch is not None]
        ports.append(concat_batches(batches) if batches else None)
    last = reads[-1]
    arrived = next(
        (arrival for read in reversed(reads) if (arrival := read.progress.arrived)), None
    )
    return _Read(reads[0].late, ports, last.watermark_ns, last.progress.with_arrived(arrived))


def _cut(read: _Read, limit: int) -> tuple[_Read, _Read | None]:
    """Return about `limit` rows of a read in order, and the rest or None."""
    times = np.concatenate([b.event_time_ns for b in read.ports if b is not None])
    pivot_ns = int(np.partition(times, limit)[limit])
    if not bool((times < pivot_ns).any()):
        # Everything up to the limit happened at once; it is not divided.
        later = times[times > pivot_ns]
        if not len(later):
            return read, None
        pivot_ns = int(later.min())
    first: list[Batch | None] = []
    rest: list[Batch | None] = []
    for batch in read.ports:
        stop = 0 if batch is None else int(batch.event_time_ns.searchsorted(pivot_ns))
        first.append(batch.slice(0, stop) if batch is not None and stop else None)
        is_done = batch is None or stop == len(batch)
        rest.append(None if is_done or batch is None else batch.slice(stop, len(batch)))
    watermark_ns = min(pivot_ns, read.watermark_ns)
    none: list[Batch | None] = [None] * len(read.late)
    return (
        _Read(read.late, first, watermark_ns, read.progress.with_arrived(None)),
        _Read(none, rest, read.watermark_ns, read.progress),
    )
