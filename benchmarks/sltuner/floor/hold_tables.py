"""What a dynamic program over holds asks of one part of a run: counts by bins of 20 ms.

Buses (left) are the late side and leave nearly as they come; loops (right) wait. A plan's past is,
for all that follows, its *cut*: how many right rows have left, in the order of their coming. What
a bin then gives the sink is a difference of two counts:

```
            right rows, by coming ──▶
 left rows  . . . . . . . | . . . .       above: what came before this bin
 by bin     . . . . . . . | n n n .  ◀── as the cut moves on: rows that leave find those above
    │       i i i i i i i |              as a bin's left rows come: they find what has left
    ▼                    cut
```
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.sltuner.deadline import LIMITS, Floats, Ints
from benchmarks.sltuner.floor.one_gate import LEFT, RIGHT, OneGate, Part
from slackwater.runtime.model import NS_PER_SECOND

BIN_NS = LIMITS.source_gap_ns
BINS = NS_PER_SECOND // BIN_NS
"""In a second: sources look once in each."""
BIN_S = BIN_NS / NS_PER_SECOND

Counts = npt.NDArray[np.int32]


class Tables:
    """The counts of a part; bins and seconds from its beginning.

    Args:
        gate: whose.
        part: which.

    Attributes:
        seconds, size: of the part: seconds and bins.
        come: shape (size + 1,), right rows that have come before each bin.
        ready: shape (size,), right rows that are ready within each bin, all before them too.
        came_s: shape (right rows + 1,), when each comes; the end of the part behind the last.
        busy: shape (right rows + 1,), how many pairs' right rows are before each row; the place of
            a column of the next two.
        pairs: shape (size, busy rows + 1), pairs of the left rows that have left by a bin, its own
            too, with the right rows before a column.
        new: the same of the bin's own left rows.
        kept: shape (right rows + 1,), the column of the first right row that the join still has
            when the row before the cut was the newest that left.
        left_s: shape (size,), the mean event time of the bin's left rows; inf if it has none.
        newest_s: shape (right rows + 1,), the event time of the row before the cut.
        within_s: of the join; inf if it loses no pair.
        load, row_s, slice_s: of the sink: its load, shape (bins,), and the seconds that a result
            and a slice take under a load of 1.
    """

    def __init__(self, gate: OneGate, part: Part) -> None:
        self.seconds = part.last - part.first
        self.size = self.seconds * BINS
        self._first_ns = part.first * NS_PER_SECOND
        came_ns, ready_ns = part.came_ns[RIGHT], part.ready_ns[RIGHT]
        bins = np.arange(self.size + 1)
        self.come = np.searchsorted(self._bin_of(came_ns), bins).astype(np.int32)
        ready = np.maximum.accumulate(self._bin_of(ready_ns))
        self.ready = np.searchsorted(ready, bins[:-1], side="right").astype(np.int32)
        self.came_s = np.append((came_ns - self._first_ns) / NS_PER_SECOND, float(self.seconds))
        self._count_pairs(gate, part)
        self._times(gate, part)
        self.row_s, self.slice_s, load = gate.sink.costs()
        later_s = np.arange(self.size + 20 * BINS) * BIN_S + part.first
        self.load: Floats = np.array([load(round(s * NS_PER_SECOND)) for s in later_s])
        self.passing_s = gate.passing_ns / NS_PER_SECOND

    def _bin_of(self, at_ns: Ints) -> Ints:
        return (at_ns - self._first_ns) // BIN_NS

    def _count_pairs(self, gate: OneGate, part: Part) -> None:
        left, right = part.pairs
        rows, column = np.unique(right, return_inverse=True)
        # Buses from before this part have left before its first bin, and so count in it.
        place = np.clip(self._bin_of(gate.ready_ns[LEFT][left]), 0, self.size)
        counts = np.zeros((self.size + 1, len(rows) + 1), dtype=np.int32)
        np.add.at(counts, (place, column + 1), 1)
        self.new: Counts = counts[:-1].cumsum(axis=1, dtype=np.int32)
        self.pairs: Counts = self.new.cumsum(axis=0, dtype=np.int32)
        own = np.arange(len(part.came_ns[RIGHT]) + 1) + part.rows[RIGHT].start
        self.busy = np.searchsorted(rows, own).astype(np.int32)
        self._rows = rows

    def _times(self, gate: OneGate, part: Part) -> None:
        times_ns = gate.times_ns[RIGHT]
        before = np.arange(len(self.busy)) + part.rows[RIGHT].start - 1
        newest_ns = np.where(before >= 0, times_ns[np.maximum(before, 0)], 0)
        self.newest_s: Floats = (newest_ns - self._first_ns) / NS_PER_SECOND
        self.within_s = gate.within_ns / NS_PER_SECOND if gate.loses_pairs else float("inf")
        self.kept: Counts = np.zeros(len(self.busy), dtype=np.int32)
        if gate.loses_pairs:
            busy_ns = times_ns[self._rows]
            self.kept = np.searchsorted(busy_ns, newest_ns - gate.within_ns).astype(np.int32)
        place = self._bin_of(part.ready_ns[LEFT])
        inside = (place >= 0) & (place < self.size)
        count = np.bincount(place[inside], minlength=self.size)
        own_s = (part.times_ns[LEFT][inside] - self._first_ns) / NS_PER_SECOND
        total_s = np.bincount(place[inside], weights=own_s, minlength=self.size)
        self.left_s: Floats = np.where(count > 0, total_s / np.maximum(count, 1), np.inf)
