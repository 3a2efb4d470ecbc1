"""One reader's view of a gate: what it has not had yet, how far it has come, what came late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from runtime.merge.lanes import FifoLane, Lane, Piece, SortedLane, in_order
from runtime.merge.pieces import merge_pieces
from runtime.model import START_NS, Batch
from runtime.model.times import END_NS
from runtime.operators.contract import Released

if TYPE_CHECKING:
    from runtime.merge.gate import Writer

_FEW = 16


class Cut(NamedTuple):
    """A place in the total order: the rows before it may leave.

    Of the rows at `time_ns` itself, those of writers before `writer` in the tie order are before
    the cut; `writer`'s own too if `is_inclusive`. -1: none of them.
    """

    time_ns: int
    writer: int
    is_inclusive: bool

    def has_ties_of(self, writer: int) -> bool:
        """Whether this writer's rows at the very time of the cut are before it."""
        return writer < self.writer or (writer == self.writer and self.is_inclusive)


Key = tuple[int, int, int]  # (event time, writer's place, row's own writer): the total order


class ReaderState:
    """Lanes, late queues and counters of one reader.

    Attributes:
        ready: rows released as ready so far.
        slack_ready: rows released, in order, because the slack had run out.
        late: rows that came behind what this reader had seen.
        late_ready: of those, how many were ready by the time they left ([ssg] Algorithm 3, 7).
    """

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = writers
        self._ranks = [writer.rank for writer in writers]
        self.lanes: list[Lane] = [
            SortedLane(place) if writer.is_mixed else FifoLane(place)
            for place, writer in enumerate(writers)
        ]
        ports = 1 + max(writer.port for writer in writers)
        self._places: list[list[int]] = [
            [place for place, writer in enumerate(writers) if writer.port == port]
            for port in range(ports)
        ]
        self._late: list[list[Piece]] = [[] for _ in range(ports)]
        self._has_late = False
        self._no_late: list[Batch | None] = [None] * ports
        # Oldest event time in each lane, only kept for many writers.
        self._heads = np.full(len(writers), END_NS, dtype=np.int64) if len(writers) > _FEW else None
        self._seen: Key = (START_NS, -1, 0)
        self._watermark_ns = START_NS
        self.rows = 0
        self.ready = self.slack_ready = self.late = self.late_ready = 0

    def add(self, place: int, batch: Batch) -> None:
        """Take rows of one writer; those behind what this reader has seen are late.

        Source: [ssg] Algorithm 2, lines 2-10, without its race: a slot is one thread.
        """
        times = batch.event_time_ns
        self.rows += len(times)
        if times.item(0) <= self._seen[0] or self._writers[place].is_mixed:
            batch = self._divert_late(place, batch)
            if not len(batch):
                return
        lane = self.lanes[place]
        lane.add(batch)
        if self._heads is not None:
            self._heads[place] = lane.head_ns

    def _divert_late(self, place: int, batch: Batch) -> Batch:
        seen_ns, seen_place, seen_writer = self._seen
        times = batch.event_time_ns
        is_late = times < seen_ns
        if place < seen_place:
            is_late |= times == seen_ns
        elif place == seen_place and batch.writers is not None:
            is_late |= (times == seen_ns) & (batch.writers < seen_writer)
        if not is_late.any():
            return batch
        late = in_order(batch.keep(is_late))
        self._has_late = True
        self._late[self._writers[place].port].append(Piece(place, late, 0, len(late)))
        return batch.keep(~is_late)

    def release(self, cut: Cut, ready: Cut, limit: int | None) -> Released | None:
        """Return the rows before the cut, in order, late ones apart; None if nothing changed."""
        late = self._release_late(ready) if self._has_late else self._no_late
        if limit is not None and self.rows > limit:
            cut = self._shorten(cut, limit)
        by_slack = cut is not ready and cut > ready
        ports: list[Batch | None] = []
        last: Key = self._seen
        slack_ready = found = 0
        for places in self._places:
            pieces = self._taken(places, cut)
            if not pieces:
                ports.append(None)
                continue
            if by_slack:
                slack_ready += sum(_beyond(ready, piece) for piece in pieces)
                last = max(last, *(_last_key(piece) for piece in pieces))
            is_sorted = len(places) == 1 and not self._writers[places[0]].is_mixed
            merged = merge_pieces(pieces, self._ranks, is_sorted=is_sorted)
            found += len(merged.event_time_ns)
            ports.append(merged)
        self.rows -= found
        self.slack_ready += slack_ready
        self.ready += found - slack_ready
        # In order the watermark is the cut; by slack it goes only as far as what was read, so
        # that a row between the two is not late: it is what the paper's reader would return next.
        if by_slack:
            watermark_ns = max(self._watermark_ns, last[0], ready.time_ns)
        else:
            last = (cut.time_ns, cut.writer - (not cut.is_inclusive), -(2**63))
            watermark_ns = max(self._watermark_ns, cut.time_ns)
        self._seen = max(self._seen, last)
        if not found and watermark_ns == self._watermark_ns and late is self._no_late:
            return None
        self._watermark_ns = watermark_ns
        return Released(ports, late, watermark_ns, START_NS)

    def _taken(self, places: list[int], cut: Cut) -> list[Piece]:
        pieces: list[Piece] = []
        time_ns = cut.time_ns
        for place in self._candidates(places, time_ns):
            lane = self.lanes[place]
            if lane.head_ns <= time_ns:
                lane.take(time_ns, pieces, ties=cut.has_ties_of(place))
                if self._heads is not None:
                    self._heads[place] = lane.head_ns
        return pieces

    def _candidates(self, places: list[int], cut_ns: int) -> Sequence[int]:
        if self._heads is None:
            return places
        heads = self._heads if len(self._places) == 1 else self._heads[places[0] : places[-1] + 1]
        found = np.flatnonzero(heads <= cut_ns)
        return (found + places[0]).tolist()

    def _shorten(self, cut: Cut, limit: int) -> Cut:
        """Return an earlier cut that lets about `limit` rows go, or the same one."""
        candidates = [
            times
            for lane in self.lanes
            if lane.head_ns <= cut.time_ns
            for times in lane.oldest_ns(limit + 1)
        ]
        if not candidates:
            return cut
        times = np.concatenate(candidates)
        times = times[times < cut.time_ns]
        if len(times) <= limit:
            return cut
        pivot_ns = int(np.partition(times, limit)[limit])
        if bool((times < pivot_ns).any()):
            return Cut(pivot_ns, -1, False)
        # Everything up to the limit happened at once; it cannot be divided.
        return Cut(pivot_ns + 1, -1, False) if pivot_ns + 1 < cut.time_ns else cut

    def _release_late(self, ready: Cut) -> list[Batch | None]:
        """First out, in order, and checked once more whether it is ready by now."""
        self._has_late = False
        released: list[Batch | None] = []
        for port, queue in enumerate(self._late):
            if not queue:
                released.append(None)
                continue
            queue.sort(key=lambda piece: piece.writer)
            self.late_ready += sum(len(p.batch) - _beyond(ready, p) for p in queue)
            batch = merge_pieces(queue, self._ranks, is_sorted=False)
            self.late += len(batch)
            self.rows -= len(batch)
            released.append(batch)
            self._late[port] = []
        return released

    def snapshot(self) -> dict[str, Any]:
        """Return all state; batches are frozen and shared."""
        return {
            "lanes": [lane.held() for lane in self.lanes],
            "late": [list(queue) for queue in self._late],
            "seen": self._seen,
            "watermark_ns": self._watermark_ns,
            "counts": (self.rows, self.ready, self.slack_ready, self.late, self.late_ready),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot, into a fresh state of the same writers."""
        for place, held in enumerate(state["lanes"]):
            for batch in held:
                self.lanes[place].add(batch)
            if self._heads is not None:
                self._heads[place] = self.lanes[place].head_ns
        self._late = [list(queue) for queue in state["late"]]
        self._has_late = any(self._late)
        self._seen = tuple(state["seen"])
        self._watermark_ns = state["watermark_ns"]
        self.rows, self.ready, self.slack_ready, self.late, self.late_ready = state["counts"]


def _beyond(ready: Cut, piece: Piece) -> int:
    """Return how many rows of a piece are not before the ready cut."""
    side: Literal["left", "right"] = "right" if ready.has_ties_of(piece.writer) else "left"
    before = int(piece.batch.event_time_ns.searchsorted(ready.time_ns, side))
    return piece.stop - min(max(before, piece.start), piece.stop)


def _last_key(piece: Piece) -> Key:
    batch, last = piece.batch, piece.stop - 1
    own = 0 if batch.writers is None else int(batch.writers[last])
    return int(batch.event_time_ns[last]), piece.writer, own
