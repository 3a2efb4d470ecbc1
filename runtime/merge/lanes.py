"""Where a gate keeps the rows of one writer until they may leave.

`FifoLane` for a writer whose rows come in event-time order: nothing to sort, a prefix leaves.
`SortedLane` for a channel that mixes writers (a feed of many vehicles) or that may send late
rows: sorted runs of geometric size, merged in pairs.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple

import numpy as np

from runtime.model import END_NS, Batch, Int64Array, concat_batches


class Piece(NamedTuple):
    """Rows [start, stop) of a writer's batch, sorted; not cut out before they are merged."""

    writer: int
    batch: Batch
    start: int
    stop: int

    def cut(self) -> Batch:
        """Return the rows as a batch of their own."""
        return self.batch.slice(self.start, self.stop)


class FifoLane:
    """Rows of one writer, in order."""

    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._chunks: deque[Batch] = deque()
        self._start = 0  # rows of the first chunk that have left
        self.rows = 0
        self.head_ns = END_NS
        """Event time of the oldest row held; END_NS if none."""

    def add(self, batch: Batch) -> None:
        """Append rows that are not older than any held."""
        if not self._chunks:
            self.head_ns = batch.event_time_ns.item(0)
            self._start = 0
        self._chunks.append(batch)
        self.rows += len(batch.event_time_ns)

    def take(self, cut_ns: int, pieces: list[Piece], *, ties: bool) -> None:
        """Move the rows older than `cut_ns` (with `ties`: or equal) to `pieces`."""
        side: Literal["left", "right"] = "right" if ties else "left"
        while self._chunks:
            chunk = self._chunks[0]
            times = chunk.event_time_ns
            rows = times.shape[0]
            stop = int(times.searchsorted(cut_ns, side))
            if stop > self._start:
                pieces.append(Piece(self._writer, chunk, self._start, stop))
                self.rows -= stop - self._start
            if stop < rows:
                self._start = stop
                self.head_ns = times.item(stop)
                return
            self._chunks.popleft()
            self._start = 0
        self.head_ns = END_NS

    def oldest_ns(self, limit: int) -> list[Int64Array]:
        """Return the event times of the oldest rows held: all, or at least `limit`."""
        found: list[Int64Array] = []
        rows, start = 0, self._start
        for chunk in self._chunks:
            found.append(chunk.event_time_ns[start : start + limit])
            rows, start = rows + len(found[-1]), 0
            if rows >= limit:
                break
        return found

    def held(self) -> list[Batch]:
        """Return what is held, in order, without taking it."""
        chunks = list(self._chunks)
        if chunks and self._start:
            chunks[0] = chunks[0].slice(self._start, len(chunks[0]))
        return chunks


class SortedLane:
    """Rows in any order, kept as sorted runs; each run is at least twice as long as the next."""

    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._runs: list[Batch] = []
        self.rows = 0
        self.head_ns = END_NS

    def add(self, batch: Batch) -> None:
        """Add rows in any order. Equal (time, writer) keep the order in which they came."""
        self._runs.append(in_order(batch))
        self.rows += len(batch)
        runs = self._runs
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            newer = runs.pop()
            runs[-1] = in_order(concat_batches([runs[-1], newer]))
        self._find_head()

    def take(self, cut_ns: int, pieces: list[Piece], *, ties: bool) -> None:
        """Move the rows older than `cut_ns` (with `ties`: or equal) to `pieces`, run by run."""
        side: Literal["left", "right"] = "right" if ties else "left"
        kept: list[Batch] = []
        for run in self._runs:
            stop = int(run.event_time_ns.searchsorted(cut_ns, side))
            if stop:
                pieces.append(Piece(self._writer, run, 0, stop))
                self.rows -= stop
            if stop < len(run):
                kept.append(run.slice(stop, len(run)))
        self._runs = kept
        self._find_head()

    def oldest_ns(self, limit: int) -> list[Int64Array]:
        """Return the event times of the oldest rows held: all, or at least `limit`."""
        return [run.event_time_ns[:limit] for run in self._runs]

    def held(self) -> list[Batch]:
        """Return what is held, in the order of its coming within equal keys."""
        return list(self._runs)

    def _find_head(self) -> None:
        self.head_ns = min((run.event_time_ns.item(0) for run in self._runs), default=END_NS)


Lane = FifoLane | SortedLane


def in_order(batch: Batch) -> Batch:
    """Return the rows by (event time, writer), stable."""
    times, writers = batch.event_time_ns, batch.writers
    if len(times) < 2:
        return batch
    if writers is None:
        if bool((times[1:] >= times[:-1]).all()):
            return batch
        return batch.take(times.argsort(kind="stable"))
    return batch.take(np.lexsort((writers, times)))
