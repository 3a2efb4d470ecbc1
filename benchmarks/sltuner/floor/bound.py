"""How few slack-ready rows any schedule can have: from below, by what none can help.

```
results  C ── could be done by then, had every row left as it came ───┐
         N ── are there by then, had every row left as late as it may ─┴─ the sink's wait, at least
```

A row that would be ready only after the deadline, less what the sink then takes at least, leaves
before it is ready in every schedule. How late rows may leave bounds the results that are there, and
so the sink's wait from below; that again bounds how late rows may leave: both are mended in turn
until they stand. No schedule is built, and holds, slacks, and what changes when do not matter. A
second that may be over has no bound at all; every choice of such seconds is tried.

It holds for schedules in which what is ready leaves, no pair is lost (with `keep="slack"` a few
are), and the sink begins a slice at least every `SLICE_S` while it has work.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.sltuner.deadline import Ints
from benchmarks.sltuner.floor.local_search import RESERVE_S, Task, may_be_over, tasks_of
from benchmarks.sltuner.floor.one_gate import LEFT, RIGHT, OneGate
from slackwater.runtime.model import END_NS, NS_PER_SECOND

SLICE_S = 0.2
POINTS = 50
"""In each second the sink's wait is bounded at so many moments."""
TURNS = 12


class Relaxed:
    """A part of a run under the relaxation: only rows of the right side are counted.

    Args:
        gate: whose.
        task: the part, and what counts in it.
    """

    def __init__(self, gate: OneGate, task: Task) -> None:
        part = task.part
        self._first, self._size = part.first, part.last - part.first
        self._judged = task.judged
        allowed_s = task.limit_s + task.kept_back_s + RESERVE_S - part.fixed_s
        self._allowed_ns = (allowed_s * NS_PER_SECOND).astype(np.int64)
        self._came_ns, self._ready_ns = part.came_ns[RIGHT], part.ready_ns[RIGHT]
        self._ready_in = self._place(self._ready_ns)
        # A row that comes before, or is ready after what is judged may leave outside of it.
        self._counts = self._judged[self._place(self._came_ns)] & self._judged[self._ready_in]
        self._counts &= self._ready_ns < part.last * NS_PER_SECOND
        left, right = part.pairs
        self._left_came_ns = gate.came_ns[LEFT][left]
        self._left_ns = gate.ready_ns[LEFT][left]  # they are the late side: ready as they come
        self._row = right - part.rows[RIGHT].start
        self._right_ns = gate.came_ns[RIGHT][right]  # of those before this part
        soonest = np.sort(np.maximum(self._left_came_ns, self._right_ns)) + gate.passing_ns
        done_ns = gate.sink.soonest_done(soonest)
        moments = (np.arange(self._size * POINTS + 1) / POINTS + part.first) * NS_PER_SECOND
        self._moments_ns = moments.astype(np.int64)
        self._could = np.searchsorted(done_ns, self._moments_ns, side="right")
        self._passing_ns = gate.passing_ns

    def rows(self, over: Sequence[int] = ()) -> int:
        """Return how many rows leave before they are ready in every schedule.

        Args:
            over: the seconds, by place, that may be over the deadline.
        """
        left_ns = self._left_for_the_gate_ns(over)
        early = self._ready_ns - self._came_ns > left_ns[self._ready_in]
        return int(np.count_nonzero(early & self._counts))

    def binding(self) -> list[int]:
        """Return the seconds, by place, in which some row could wait too long."""
        left_ns = self._left_for_the_gate_ns(())
        found = []
        for place in range(self._size):
            end_ns = (place + self._first + 1) * NS_PER_SECOND
            there = (self._came_ns < end_ns) & (self._ready_ns >= end_ns - NS_PER_SECOND)
            longest_ns = (np.minimum(self._ready_ns, end_ns) - self._came_ns)[there]
            if longest_ns.max(initial=0) > left_ns[place]:
                found.append(place)
        return found

    def _left_for_the_gate_ns(self, over: Sequence[int]) -> Ints:
        """Return the longest that a row may wait that leaves in a second; shape (seconds,)."""
        free = np.isin(np.arange(self._size), over) | ~self._judged
        sink_ns = np.zeros(self._size, dtype=np.int64)
        for _ in range(TURNS):
            left_ns = np.where(free, END_NS, self._allowed_ns - sink_ns)
            longer_ns = np.maximum(sink_ns, self._sink_ns(self._last_ns(left_ns)))
            if (longer_ns == sink_ns).all():
                break
            sink_ns = longer_ns
        return left_ns

    def _last_ns(self, left_ns: Ints) -> Ints:
        """Return when each row leaves at the latest."""
        came_ns, ready_ns = self._came_ns, self._ready_ns
        last_ns = came_ns.copy()
        second = came_ns // NS_PER_SECOND
        for later in range(int((ready_ns - came_ns).max(initial=0) // NS_PER_SECOND) + 2):
            now = second + later
            wait_ns = left_ns[np.clip(now - self._first, 0, self._size - 1)]
            until_ns = np.minimum((now + 1) * NS_PER_SECOND, ready_ns)
            until_ns = np.where(until_ns - came_ns > wait_ns, came_ns + wait_ns, until_ns)
            is_then = until_ns >= now * NS_PER_SECOND
            last_ns = np.where(is_then, np.maximum(last_ns, until_ns), last_ns)
        return np.minimum(last_ns, ready_ns)

    def _sink_ns(self, last_ns: Ints) -> Ints:
        """Return how long the sink takes at least for a result it begins, shape (seconds,)."""
        right_ns = np.where(self._row >= 0, last_ns[np.maximum(self._row, 0)], self._right_ns)
        there_ns = np.sort(np.maximum(self._left_ns, right_ns)) + self._passing_ns
        # What begins now is at most the next after all that could be done. If it had come later
        # than this, fewer would be there now than have come for certain.
        following = np.append(there_ns, END_NS)[np.minimum(self._could, len(there_ns))]
        wait_ns = np.maximum(self._moments_ns - following, 0)
        around = int(SLICE_S * POINTS) + 1
        certain = sliding_window_view(wait_ns, around).min(axis=1)
        found = np.zeros(self._size, dtype=np.int64)
        place = np.arange(len(certain)) // POINTS
        whole = np.arange(len(certain)) % POINTS <= POINTS - around
        np.maximum.at(found, place[whole], certain[whole])
        return found

    def _place(self, at_ns: Ints) -> Ints:
        return np.clip(at_ns // NS_PER_SECOND - self._first, 0, self._size - 1)


def bound(gate: OneGate, *, first_second: int) -> tuple[int, int]:
    """Return how many rows no schedule can do without: judged as all are, and never over."""
    most = may_be_over(gate, first_second=first_second)
    least: dict[int, int] = {0: 0}  # {seconds over so far: rows}
    never = 0
    for task in tasks_of(gate, first_second=first_second):
        relaxed = Relaxed(gate, task)
        rows = [relaxed.rows()]
        never += rows[0]
        binding = relaxed.binding()
        rows += [
            min([relaxed.rows(over) for over in combinations(binding, size)], default=0)
            for size in range(1, most + 1)
        ]
        wider: dict[int, int] = {}
        for used, so_far in least.items():
            for over, own in enumerate(rows[: most - used + 1]):
                total = so_far + own
                wider[used + over] = min(total, wider.get(used + over, total))
        least = wider
    return min(least.values()), never
