"""Where a gate keeps the rows of one writer until they may leave.

`FifoLane` for a writer whose rows come in event-time order: nothing to sort, a prefix leaves.
`SortedLane` for a channel that mixes writers (a feed of many vehicles) or that may send late
rows: sorted runs of geometric size, merged in pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Int64Array,
    concat_batches,
    stable_order_of_pairs,
)
from slackwater.runtime.model.state import Fields

Piece: TypeAlias = tuple[int, Batch, int, int]
"""(writer, batch, start, stop): rows [start, stop) of a writer's batch, sorted; at least one.

Not cut out before they are merged. A plain tuple: each small read makes some.
"""


MOST_TIES = 4
"""With a tie in each four rows, as windows have, all rows are sorted by time and writer at once."""


class FifoLane:
    """Rows of one writer, in order.

    It packs itself: rows of a chunk that have left are not saved.
    """

    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._chunks: deque[Batch] = deque()
        self._start = 0  # rows of the first chunk that have left
        self.rows = 0
        self.head_ns = END_NS
        """Event time of the oldest row held; END_NS if none."""

    def add(self, batch: Batch) -> None:
        """Append rows that are not older than any held."""
        times = batch.event_time_ns
        if not self._chunks:
            self.head_ns = times.item(0)
        self._chunks.append(batch)
        self.rows += len(times)

    def take(self, bound_ns: int, pieces: list[Piece]) -> None:
        """Move the rows older than `bound_ns` to `pieces`."""
        chunks = self._chunks
        while chunks and self.head_ns < bound_ns:
            chunk, start = chunks[0], self._start
            times = chunk.event_time_ns
            is_whole = times.item(-1) < bound_ns
            stop = len(times) if is_whole else int(times.searchsorted(bound_ns))
            pieces.append((self._writer, chunk, start, stop))
            self.rows -= stop - start
            if is_whole:
                chunks.popleft()
                self._start = 0
                self.head_ns = chunks[0].event_time_ns.item(0) if chunks else END_NS
            else:
                self._start = stop
                self.head_ns = times.item(stop)

    @property
    def newest_ns(self) -> int:
        """Event time of the newest row held; START_NS if none."""
        return self._chunks[-1].event_time_ns.item(-1) if self._chunks else START_NS

    def oldest_ns(self, limit: int) -> list[Int64Array]:
        """Return the event times of the oldest rows held: all, or at least `limit`."""
        parts: list[Int64Array] = []
        rows, start = 0, self._start
        for chunk in self._chunks:
            parts.append(chunk.event_time_ns[start : start + limit])
            rows, start = rows + len(parts[-1]), 0
            if rows >= limit:
                break
        return parts

    def held(self) -> list[Batch]:
        """Return what is held, in order, without taking it."""
        chunks = list(self._chunks)
        if chunks and self._start:
            chunks[0] = chunks[0].slice(self._start, len(chunks[0]))
        return chunks

    def snapshot(self) -> list[Batch]:
        """Return what is held."""
        return self.held()

    def restore(self, state: Sequence[Batch]) -> None:
        """Hold what was held."""
        for batch in state:
            self.add(batch)


class SortedLane:
    """Rows in any order, kept as sorted runs, each twice the next."""

    STATE = Fields("_runs", "rows", "head_ns")

    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._runs: list[Batch] = []
        self.rows = 0
        self.head_ns = END_NS

    def add(self, batch: Batch) -> None:
        """Add rows in any order. Equal (time, writer) keep the order in which they came."""
        newer = in_order(batch)
        self.rows += len(newer)
        self.head_ns = min(self.head_ns, newer.event_time_ns.item(0))
        runs = self._runs
        while runs and len(runs[-1]) < 2 * len(newer):
            newer = in_order(concat_batches([runs.pop(), newer]))
        runs.append(newer)

    def take(self, bound_ns: int, pieces: list[Piece]) -> None:
        """Move the rows older than `bound_ns` to `pieces`, run by run."""
        rest: list[Batch] = []
        for run in self._runs:
            stop = prefix_before(run.event_time_ns, bound_ns)
            if stop:
                pieces.append((self._writer, run, 0, stop))
                self.rows -= stop
            if stop < len(run):
                rest.append(run.slice(stop, len(run)))
        self._runs = rest
        self.head_ns = min([run.event_time_ns.item(0) for run in rest], default=END_NS)

    def oldest_ns(self, limit: int) -> list[Int64Array]:
        """Return the event times of the oldest rows held: all, or at least `limit`."""
        return [run.event_time_ns[:limit] for run in self._runs]

    def held(self) -> list[Batch]:
        """Return what is held, in the order of its coming within equal keys."""
        return list(self._runs)


Lane = FifoLane | SortedLane


def prefix_before(times_ns: Int64Array, bound_ns: int) -> int:
    """Return how many of some sorted times are older than the bound.

    Most often all of them; and a bound past the end of time does not fit an int64 to search for.
    """
    if times_ns.item(-1) < bound_ns:
        return len(times_ns)
    return int(times_ns.searchsorted(bound_ns))


def in_order(batch: Batch) -> Batch:
    """Return the rows by (event time, writer), stable."""
    times, writers = batch.event_time_ns, batch.writers
    if len(times) < 2:
        return batch
    if writers is None:
        if bool((times[1:] >= times[:-1]).all()):
            return batch
        return batch.take(times.argsort(kind="stable"))
    if times.item(0) == times.item(-1) and bool((times == times[0]).all()):  # results of a window
        return batch.take(stable_order_of_pairs(times, writers))
    return batch.take(order_of_writers(times, writers))


def order_of_writers(times_ns: Int64Array, writers: Int64Array) -> Int64Array:
    """Return the positions of rows by (time, writer), stable, shape (rows,).

    Rows come as a few runs in order of time, which a stable argsort finds and merges. Results of a
    join have few ties: only those are sorted by writer.
    """
    order = times_ns.argsort(kind="stable")
    times_ns = times_ns.take(order)
    is_tied = times_ns[1:] == times_ns[:-1]
    ties = np.count_nonzero(is_tied)
    if not ties:
        return order
    if ties * MOST_TIES > len(order):
        return order.take(stable_order_of_pairs(times_ns, writers.take(order)))
    in_ties = np.append(is_tied, False)
    in_ties[1:] |= is_tied
    places = in_ties.nonzero()[0]
    tied = order.take(places)
    order[places] = tied.take(stable_order_of_pairs(times_ns.take(places), writers.take(tied)))
    return order
