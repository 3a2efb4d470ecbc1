"""[ssg] Algorithms 1-3 line by line: one tuple at a time, one thread. Slow, and meant to be.

What the listings leave open or get wrong is settled where it is, with the reason. The lines are
numbered as in the paper; names are the paper's.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import NamedTuple

from slackwater.runtime.model import START_NS


class Event(NamedTuple):
    """A tuple of the paper: its time, who wrote it, and how many of that writer came before."""

    ts: int
    writer: int
    number: int


class Read(NamedTuple):
    """A tuple as it was returned; `is_late`: it came from the reader's priority queue."""

    event: Event
    is_slack_ready: bool
    is_late: bool


Stamp = tuple[int, ...]
NEVER: Stamp = (START_NS,)
"""Before the first tuple. Java would have 0 here, by which every tuple of a time up to 0 would
be ready before all writers have inserted; Def. 2.1 wants a tuple of each stream first."""


def as_printed(event: Event) -> Stamp:
    """Timestamps as the paper compares them: the time alone."""
    return (event.ts,)


def total_order(event: Event) -> Stamp:
    """Timestamps as we compare them: ties break by writer, then as the writer had them."""
    return event


class ScaleGate:
    """[8] as far as it is used: tuples in timestamp order, and how far each reader has come."""

    def __init__(self, readers: int) -> None:
        self._tuples: list[tuple[Stamp, int, Event]] = []  # (timestamp, n-th to be added, tuple)
        self._added = 0
        self._cursors: list[tuple[Stamp, int]] = [(NEVER, -1)] * readers

    def add_tuple(self, event: Event, stamp: Stamp) -> None:
        bisect.insort(self._tuples, (stamp, self._added, event))
        self._added += 1

    def get_head(self, reader: int) -> Event | None:
        # §5.1: "the next tuple with timestamp larger than the timestamp of readerId's last read
        # tuple" would lose what has the same one. Settled: the next in the list behind it.
        stamp, added = self._cursors[reader]
        at = bisect.bisect_left(self._tuples, (stamp, added + 1))
        return self._tuples[at][2] if at < len(self._tuples) else None

    def pass_head(self, reader: int) -> None:
        stamp, added = self._cursors[reader]
        at = bisect.bisect_left(self._tuples, (stamp, added + 1))
        self._cursors[reader] = self._tuples[at][:2]


class LiteralSSG:
    """Algorithm 1: the variables. Readers read and writers write, whatever §4.1 calls them."""

    def __init__(
        self,
        writers: int,
        readers: int,
        slt: int | None,
        stamp: Callable[[Event], Stamp] = total_order,
    ) -> None:
        self.priority_queues: list[list[tuple[Stamp, int, Event]]] = [[] for _ in range(readers)]
        self.slt = slt  # None: ready tuples only, as ScaleGate
        self.max_writer_ts: list[Stamp] = [NEVER] * writers
        self.last_read_ts: list[list[Stamp]] = [[NEVER] * writers for _ in range(readers)]
        self.sg = ScaleGate(readers)
        self._stamp = stamp
        self._ended: set[int] = set()
        self._queued = 0

    def set_slt(self, slt: int | None) -> None:
        """§4.1."""
        self.slt = slt

    def end(self, writer: int) -> None:
        """End of a stream, of which the paper has none: it holds merge_ts back no longer."""
        self._ended.add(writer)

    def insert_ssg_tuple(
        self, event: Event, *, before_adding: Callable[[], object] = lambda: None
    ) -> None:
        """Algorithm 2; `before_adding` runs between lines 9 and 10, as another thread might."""
        ts, writer = self._stamp(event), event.writer
        non_overtaken_readers: list[int] = []  # 1
        for reader, last_read_ts in enumerate(self.last_read_ts):  # 2
            lt = max(last_read_ts)  # 3
            if lt > ts:  # 5
                self._queue(reader, event)  # 6
            else:
                non_overtaken_readers.append(reader)  # 8
        before_adding()
        if non_overtaken_readers:  # 10
            self.sg.add_tuple(event, ts)  # 11
        # 12-20, the second look: with calls that are atomic it never finds anything.
        for reader in non_overtaken_readers:  # 12 (without line 20, which nothing asks for)
            max_ts = max(self.last_read_ts[reader])  # 14
            ltw = self.last_read_ts[reader][writer]  # 16
            # By time alone, as printed, `ts > ltw` loses a time that a writer repeats; §4.1 wants
            # each tuple available to all readers, and in the total order it is.
            if max_ts > ts > ltw:  # 18
                self._queue(reader, event)  # 19
        # Last, so that no tuple is promised before it can be found.
        self.max_writer_ts[writer] = ts  # 21

    def get_ssg_tuple(self, reader: int) -> Read | None:
        """Algorithm 3."""
        # 2 lacks a "not": §5.1 step (1) returns from the queue if there is something in it.
        if self.priority_queues[reader]:
            # A priority queue is in timestamp order; equal ones as they came.
            ts, _, t = self.priority_queues[reader].pop(0)  # 3
            self.last_read_ts[reader][t.writer] = ts  # 4
            return Read(t, ts > self._merge_ts(), is_late=True)  # 6-11
        head = self.sg.get_head(reader)  # 13
        if head is None:  # 14; lines 16-28 do not belong to it, whatever their indentation
            return None  # 15
        ts = self._stamp(head)
        if ts <= self._merge_ts():  # 16, 18
            self._returned(reader, head)  # 21
            return Read(head, is_slack_ready=False, is_late=False)  # 19, 22
        max_ts = max(self.max_writer_ts)[0]  # 23: of tuples; an end is none
        if self.slt is not None and max_ts - head.ts > self.slt:  # 25: a length of time
            self._returned(reader, head)  # 27
            # 28 belongs to the branch: §5.1 steps (3) and (4) return the tuple *if so*, else null.
            return Read(head, is_slack_ready=True, is_late=False)  # 26, 28
        return None  # 29

    def _merge_ts(self) -> Stamp:
        waited_for = [
            ts for writer, ts in enumerate(self.max_writer_ts) if writer not in self._ended
        ]
        return min(waited_for, default=(2**63,))

    def _returned(self, reader: int, event: Event) -> None:
        self.sg.pass_head(reader)
        self.last_read_ts[reader][event.writer] = self._stamp(event)

    def _queue(self, reader: int, event: Event) -> None:
        bisect.insort(self.priority_queues[reader], (self._stamp(event), self._queued, event))
        self._queued += 1
