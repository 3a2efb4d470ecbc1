"""Late queue of a reader: rows older than it had seen, oldest first.

Source: the priority queues of [ssg] Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.runtime.merge.lanes import Piece, SortedLane
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.state import Fields

_ALL_NS = END_NS + 1


class LateQueue:
    """Late rows of all writers of a gate.

    Most often all that there are leave at the next read, so they are only noted. Not before a
    read cannot have them all are they sorted into lanes: then each read costs what it takes.

    Args:
        ports: the port of each writer, by its place.

    Attributes:
        rows: number of rows held.
    """

    STATE = Fields("rows", "_new", "_lanes", elements={"_lanes": SortedLane})

    def __init__(self, ports: Sequence[int]) -> None:
        self.rows = 0
        self._ports = ports
        self._new: list[Piece] = []
        self._lanes: dict[int, SortedLane] = {}  # {place: what did not fit into a read}

    def add(self, piece: Piece) -> None:
        """Keep the rows of a piece."""
        _, _, start, stop = piece
        self._new.append(piece)
        self.rows += stop - start

    def take(self, limit: int | None) -> list[list[Piece]]:
        """Return about the `limit` oldest rows, all if None; more if they share a time.

        Returns:
            The pieces of each port in tie order, and of one writer in the order of their coming.
        """
        pieces: list[list[Piece]] = [[] for _ in range(max(self._ports) + 1)]
        fits = limit is None or self.rows <= limit
        if fits and not self._lanes:
            self._new.sort(key=lambda piece: piece[0])
            for piece in self._new:
                pieces[self._ports[piece[0]]].append(piece)
            self._new = []
            self.rows = 0
            return pieces
        self._sort_in()
        bound_ns = _ALL_NS if limit is None or fits else self._bound_ns(limit)
        for place in sorted(self._lanes):
            lane, before = self._lanes[place], self._lanes[place].rows
            lane.take(bound_ns, pieces[self._ports[place]])
            self.rows -= before - lane.rows
            if not lane.rows:
                del self._lanes[place]
        return pieces

    def oldest_ns(self) -> int:
        """Return the oldest event time held; END_NS for none."""
        heads = [lane.head_ns for lane in self._lanes.values()]
        heads += [batch.event_time_ns.item(start) for _, batch, start, _ in self._new]
        return min(heads, default=END_NS)

    def rows_of(self, place: int) -> int:
        """Return how many rows of one writer are held."""
        if not self.rows:
            return 0
        lane = self._lanes.get(place)
        new = sum([stop - start for own, _, start, stop in self._new if own == place])
        return new + (0 if lane is None else lane.rows)

    def held(self) -> list[Piece]:
        """Return what is held, to be added again elsewhere."""
        sorted_in = [
            (place, batch, 0, len(batch))
            for place, lane in self._lanes.items()
            for batch in lane.held()
        ]
        return [*sorted_in, *self._new]

    def _sort_in(self) -> None:
        for place, batch, start, stop in self._new:
            if place not in self._lanes:
                self._lanes[place] = SortedLane(place)
            self._lanes[place].add(batch.slice(start, stop))
        self._new = []

    def _bound_ns(self, limit: int) -> int:
        """Return the time before which there are about `limit` rows, of more than that many."""
        lanes = self._lanes.values()
        if limit == 1:
            return min([lane.head_ns for lane in lanes]) + 1
        times = np.concatenate([own for lane in lanes for own in lane.oldest_ns(limit + 1)])
        pivot_ns = int(np.partition(times, limit)[limit])
        # Everything up to the limit may have happened at once; it cannot be divided.
        return pivot_ns if bool((times < pivot_ns).any()) else pivot_ns + 1
