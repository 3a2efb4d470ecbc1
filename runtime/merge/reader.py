"""View of one reader on a gate: rows to come, its cut, late rows.

```
lane of a     ├──┼──┤         rows that are ready, of several writers of one port, are merged once
lane of b  ├┼────┼┤           for all reads that have parts of them: a merge of 128 lanes costs a
merged     ═══|═══|═══        millisecond, and a read cut out of its result nothing
```
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from slackwater.runtime.merge.lanes import (
    FifoLane,
    Lane,
    Piece,
    SortedLane,
    in_order,
    prefix_before,
)
from slackwater.runtime.merge.late import LateQueue
from slackwater.runtime.merge.pieces import merge_pieces
from slackwater.runtime.merge.writer import Writer
from slackwater.runtime.model import NO_PROGRESS, START_NS, Batch, GateRead, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.model.times import END_NS

_FEW = 16
_SPARE = 16
"""A read that is cut short may have a sixteenth fewer rows than its limit. To look at each of 128
lanes' rows took longer than to merge them."""
_AHEAD = 131_072
"""Most rows that are merged for reads to come."""
_BEFORE_ALL = -(2**63)  # of a writer's own writers

Cut: TypeAlias = tuple[int, int]
"""(time_ns, ties), a place in the total order: the rows before it may leave.

Of the rows at `time_ns` itself, those of the first `ties` writers in the tie order are before it:
of writer w, all that are older than `time_ns + (w < ties)`.
"""

Key = tuple[int, int, int]  # (event time, writer's place, row's own writer): the total order


class ReaderState:
    """Lanes, late queues and counters of one reader.

    Attributes:
        ready: rows released as ready so far.
        slack_ready: rows released, in order, because the slack had run out.
        late: rows that came, older than this reader had seen.
        late_ready: number of these that were ready by the time they left ([ssg] Algorithm 3, 7).
    """

    STATE = Fields(
        "lanes",
        "_merged",
        "_late_rows",
        "cut",
        "_seen",
        "_watermark_ns",
        "frontier_ns",
        "rows",
        "ready",
        "slack_ready",
        "late",
        "late_ready",
    )

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = writers
        self._ranks = [writer.rank for writer in writers]
        self.lanes: list[Lane] = [
            SortedLane(place) if writer.is_mixed else FifoLane(place)
            for place, writer in enumerate(writers)
        ]
        ports = 1 + max(writer.port for writer in writers)
        self._is_shared = any(writer.is_shared for writer in writers)
        self._is_mixed = [writer.is_mixed for writer in writers]
        # Places; whether their rows are in order; whether rows of one time may be in none.
        self._ports: list[tuple[list[int], bool, bool]] = []
        for port in range(ports):
            places = [place for place, writer in enumerate(writers) if writer.port == port]
            own = [writers[place] for place in places]
            has_ties = any(writer.is_shared and not writer.is_mixed for writer in own)
            is_sorted = len(places) == 1 and not own[0].is_mixed and not has_ties
            self._ports.append((places, is_sorted, has_ties))
        # Ready rows of each port with several writers: nothing that follows comes before them.
        self._merged = [FifoLane(places[0]) for places, _, _ in self._ports]
        self._merges_ports = any(len(places) > 1 for places, _, _ in self._ports)
        self._late_rows = LateQueue([writer.port for writer in writers])
        self._no_late: list[Batch | None] = [None] * ports
        # Oldest event time in each lane, only kept for many writers.
        self._heads = np.full(len(writers), END_NS, dtype=np.int64) if len(writers) > _FEW else None
        self._seen: Key = (START_NS, -1, 0)
        self.cut: Cut = (START_NS, 0)
        """Of the last read: all rows before it have left."""
        self.frontier_ns = START_NS
        """Of the last read: no row of a writer that was not idle is older."""
        self._watermark_ns = START_NS
        self.rows = 0
        self.ready = self.slack_ready = self.late = self.late_ready = 0

    def add(self, place: int, batch: Batch) -> None:
        """Take rows of one writer; those older than this reader has seen are late.

        Source: [ssg] Algorithm 2, lines 2-10, without its race: a slot is one thread.
        """
        times = batch.event_time_ns
        rows = len(times)
        self.rows += rows
        if times.item(0) <= self._seen[0] or (rows > 1 and self._is_mixed[place]):
            on_time = self._divert_late(place, batch)
            if on_time is None:
                return
            batch = on_time
        lane = self.lanes[place]
        lane.add(batch)
        if self._heads is not None:
            self._heads[place] = lane.head_ns

    def _divert_late(self, place: int, batch: Batch) -> Batch | None:
        last_ns, last_place, last_writer = self._seen
        times, rows = batch.event_time_ns, len(batch.event_time_ns)
        bound_ns = last_ns + (place < last_place)
        if batch.writers is None and (rows == 1 or not self._is_mixed[place]):
            late_rows = prefix_before(times, bound_ns)
            if late_rows:
                self._late_rows.add((place, batch, 0, late_rows))
            return batch.slice(late_rows, rows) if late_rows < rows else None
        is_late = times < bound_ns
        if place == last_place and batch.writers is not None:
            is_late |= (times == last_ns) & (batch.writers < last_writer)
        if not is_late.any():
            return batch
        late = in_order(batch.keep(is_late))
        self._late_rows.add((place, late, 0, len(late)))
        return batch.keep(~is_late) if len(late) < rows else None

    @property
    def unready(self) -> int:
        """Rows released before they were ready: [ssg] Eq. 4, Algorithm 3, 10."""
        return self.slack_ready + self.late - self.late_ready

    @property
    def last_key(self) -> Key:
        """Place in the order; rows that then come before it are late."""
        return self._seen

    @property
    def has_late(self) -> bool:
        """Whether late rows are left that a limit has kept back."""
        return bool(self._late_rows.rows)

    def release(self, cut: Cut, ready: Cut, limit: int | None) -> GateRead | None:
        """Return the rows before the cut, in order, late ones apart; None if nothing changed.

        How far the gate is the gate says: a read of a reader has no progress of its own.

        Args:
            cut: the cut, see `Cut`.
            ready: rows before it are ready; its time is the gate's frontier.
            limit: about how many rows at most; None if all.
        """
        released = self._release(cut, ready, limit)
        frontier_ns = min(ready[0], self._watermark_ns)
        if self._late_rows.rows:
            frontier_ns = min(frontier_ns, self._late_rows.oldest_ns())
        if frontier_ns > self.frontier_ns:
            self.frontier_ns = frontier_ns
            if released is None:  # by slack all has left already; what follows waits for this
                released = self.nothing_new()
        return released

    def merge_ahead(self, ready: Cut, limit: int) -> None:
        """Merge rows for several reads, if this one is cut short.

        Args:
            ready: no row follows that comes before this cut.
            limit: limit of the read.
        """
        # One row at a time is asked for where a row may take long, and its writer matters.
        if limit == 1 or not self._merges_ports or self._rows_merged >= limit:
            return
        if self.oldest_ns() > ready[0]:
            return
        ready = self._shorten(ready, max(limit, _AHEAD))
        for (places, is_sorted, has_ties), merged in zip(self._ports, self._merged, strict=True):
            if len(places) > 1 and (pieces := self._take(places, ready)):
                merged.add(self._merged_pieces(pieces, is_sorted=is_sorted, has_ties=has_ties))

    @property
    def _rows_merged(self) -> int:
        return sum([merged.rows for merged in self._merged])

    def _take(self, places: list[int], cut: Cut) -> list[Piece]:
        """Take the rows of a port's lanes that are before a cut."""
        cut_ns, ties = cut
        pieces: list[Piece] = []
        lanes, heads = self.lanes, self._heads
        for place in places if heads is None else _candidates(heads, places, cut_ns):
            lane = lanes[place]
            if lane.head_ns <= cut_ns:
                lane.take(cut_ns + 1 if place < ties else cut_ns, pieces)
                if heads is not None:
                    heads[place] = lane.head_ns
        return pieces

    def _merged_pieces(self, pieces: list[Piece], *, is_sorted: bool, has_ties: bool) -> Batch:
        return merge_pieces(pieces, self._ranks, is_sorted=is_sorted, has_ties=has_ties)

    def _release(self, cut: Cut, ready: Cut, limit: int | None) -> GateRead | None:
        if not self._late_rows.rows:
            return self._release_in_order(cut, ready, limit)
        before = self.rows
        late = self._release_late(ready, limit)
        if limit is not None:
            limit -= before - self.rows
        released, self.cut = None, (START_NS, 0)
        if not self.rows:  # nothing to limit: the watermark goes on, perhaps to the end
            released = self._release_in_order(cut, ready, None)
        elif not self._late_rows.rows and (limit is None or limit > 0):
            released = self._release_in_order(cut, ready, limit)
        if released is None:
            return GateRead(self._no_late, late, self._watermark_ns, NO_PROGRESS)
        released.late = late
        return released

    def _release_in_order(self, cut: Cut, ready: Cut, limit: int | None) -> GateRead | None:
        if limit is not None and self.rows > limit and self.oldest_ns() <= cut[0]:
            if self._merges_ports and cut <= ready and self._rows_merged >= limit:
                # Enough is merged: the lanes of these ports need no look.
                cut = min(cut, (max([merged.newest_ns for merged in self._merged]) + 1, 0))
            cut = self._shorten(cut, limit)
        self.cut = cut_ns, ties = cut
        by_slack = cut > ready
        last, slack_ready, released = self._seen, 0, 0
        ports: list[Batch | None] = []
        for (places, is_sorted, has_ties), merged in zip(self._ports, self._merged, strict=True):
            pieces: list[Piece] = []
            if merged.rows:
                merged.take(cut_ns + 1 if places[0] < ties else cut_ns, pieces)
            pieces += self._take(places, cut)
            if not pieces:
                ports.append(None)
                continue
            if by_slack:
                for piece in pieces:
                    slack_ready += _beyond(ready, piece)
                    key = _last_key(piece)
                    last = key if key > last else last
            rows = self._merged_pieces(pieces, is_sorted=is_sorted, has_ties=has_ties)
            released += len(rows.event_time_ns)
            ports.append(rows)
        watermark_ns = self._come_to(last, cut, ready)
        if released:
            self.rows -= released
            self.slack_ready += slack_ready
            self.ready += released - slack_ready
        elif watermark_ns == self._watermark_ns:
            return None
        self._watermark_ns = watermark_ns
        return GateRead(ports, self._no_late, watermark_ns, NO_PROGRESS)

    def _come_to(self, last: tuple[int, int, int], cut: Cut, ready: Cut) -> int:
        """Note what has been seen up to the cut; return the watermark.

        In order the watermark is the cut; by slack it goes only as far as what was read, so that a
        row between the two is not late: it is what the paper's reader would return next.
        """
        cut_ns, ties = cut
        if cut > ready:
            self._seen = last
            return max(self._watermark_ns, last[0], ready[0])
        reached = (cut_ns, ties - 1, _BEFORE_ALL)
        self._seen = reached if reached > last else last
        return cut_ns if cut_ns > self._watermark_ns else self._watermark_ns

    def _shorten(self, cut: Cut, limit: int) -> Cut:
        """Return an earlier cut that lets about `limit` rows go, or the same one."""
        if limit == 1 and not self._is_shared:  # rows of one time are not divided by their lanes
            oldest = self._after_oldest()
            return oldest if oldest < cut else cut
        cut_ns, _ = cut
        heads, lanes = self._heads, self.lanes
        if heads is not None:
            lanes = [lanes[place] for place in (heads <= cut_ns).nonzero()[0].tolist()]
        candidates = [
            times
            for lane in (*self._merged, *lanes)
            if lane.head_ns <= cut_ns
            for times in lane.oldest_ns(limit + 1)
        ]
        if not candidates:
            return cut
        # Of long runs each n-th row is enough: those between two are at most n - 1 a run.
        step = max(limit // (_SPARE * len(candidates)), 1)
        times = np.concatenate([times[step - 1 :: step] for times in candidates])
        times = times[times < cut_ns]
        most = limit if step == 1 else limit // step - len(candidates)
        if len(times) <= most:
            return cut
        pivot_ns = int(np.partition(times, most)[most])
        if bool((times < pivot_ns).any()):
            return pivot_ns, 0
        # Everything up to the limit happened at once; it cannot be divided.
        return (pivot_ns + 1, 0) if pivot_ns + 1 < cut_ns else cut

    def _after_oldest(self) -> Cut:
        """Return the cut after the oldest row held and its equals."""
        head_ns = self.oldest_ns()
        for (places, _, _), merged in zip(self._ports, self._merged, strict=True):
            if merged.head_ns == head_ns:  # those of one time no longer know their writers
                return head_ns, places[-1] + 1
        if self._heads is not None:
            return head_ns, int(self._heads.argmin()) + 1  # the first of equals, as ties break
        return head_ns, [lane.head_ns for lane in self.lanes].index(head_ns) + 1

    def _release_late(self, ready: Cut, limit: int | None) -> list[Batch | None]:
        """First out, oldest first, and checked once more whether they are ready by now."""
        released: list[Batch | None] = []
        for pieces in self._late_rows.take(limit):
            if not pieces:
                released.append(None)
                continue
            batch = merge_pieces(pieces, self._ranks, is_sorted=False)
            rows = len(batch)
            self.late_ready += rows - sum([_beyond(ready, piece) for piece in pieces])
            self.late += rows
            self.rows -= rows
            released.append(batch)
        return released

    def nothing_new(self) -> GateRead:
        """Return a read without rows, which is as far as the last one."""
        nothing = self._no_late
        return GateRead(nothing, nothing, self._watermark_ns, NO_PROGRESS)

    def oldest_ns(self) -> int:
        """Return the event time of the oldest row held, late ones apart; END_NS: none is."""
        merged_ns = min([merged.head_ns for merged in self._merged])
        if self._heads is not None:
            return min(merged_ns, int(np.minimum.reduce(self._heads)))
        return min(merged_ns, *[lane.head_ns for lane in self.lanes])

    def has_before(self, cut: Cut) -> bool:
        """Whether rows are held before a cut, late ones apart."""
        firsts = [places[0] for places, _, _ in self._ports]
        lanes = chain(zip(firsts, self._merged, strict=True), enumerate(self.lanes))
        return any((lane.head_ns, place) < cut for place, lane in lanes if lane.rows)

    def held(self) -> list[Batch]:
        """Return the rows that it has not had yet, late ones too; in no order."""
        late = [batch.slice(start, stop) for _, batch, start, stop in self._late_rows.held()]
        return [batch for lane in (*self._merged, *self.lanes) for batch in lane.held()] + late

    def rows_of(self, place: int) -> int:
        """Return how many rows of one writer are held, late ones included."""
        return self.lanes[place].rows + self._late_rows.rows_of(place)

    def derive(self) -> None:
        """Look up the oldest event time of each lane."""
        if self._heads is not None:
            self._heads[:] = [lane.head_ns for lane in self.lanes]


def _candidates(heads_ns: Int64Array, places: list[int], cut_ns: int) -> list[int]:
    """Return the lanes of a port, of many, that may have rows before the cut."""
    lanes = (heads_ns[places[0] : places[-1] + 1] <= cut_ns).nonzero()[0]
    return (lanes + places[0]).tolist()


def _beyond(ready: Cut, piece: Piece) -> int:
    """Return how many rows of a piece are not before the ready cut."""
    place, batch, start, stop = piece
    times = batch.event_time_ns
    bound_ns = ready[0] + (place < ready[1])
    if times.item(start) >= bound_ns:
        return stop - start
    return stop - min(prefix_before(times, bound_ns), stop)


def _last_key(piece: Piece) -> Key:
    place, batch, _, stop = piece
    own = 0 if batch.writers is None else batch.writers.item(stop - 1)
    return batch.event_time_ns.item(stop - 1), place, own
