"""The sink behind a gate: when it begins each message of results, and when it is done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.sltuner.deadline import Ints
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.simulate import CostModel

_STEP = 200


class SinkQueue:
    """A sink in a slot of its own, which works off messages in the order of their coming.

    Args:
        name: of the stage.
        cost: what its slices take.
    """

    def __init__(self, name: str, cost: CostModel) -> None:
        self._cost, self._load = cost, cost.load.get(name)
        self._per_row_ns = cost.stages.get(name, cost.per_row_ns)

    def costs(self) -> tuple[float, float, Callable[[int], float]]:
        """Return seconds a result, seconds a slice under a load of 1, and the load at a time."""
        load = self._load
        row_s, slice_s = self._per_row_ns / NS_PER_SECOND, self._cost.per_slice_ns / NS_PER_SECOND
        return row_s, slice_s, (lambda _: 1.0) if load is None else load

    def work(self, came_ns: Ints, counts: Ints, free_ns: int = 0) -> tuple[list[int], list[int]]:
        """Return when each message of results is begun, and when it is done.

        Args:
            came_ns: when each message comes, ascending.
            counts: results in each.
            free_ns: until when it is busy.
        """
        load, per_row_ns, per_slice_ns = self._load, self._per_row_ns, self._cost.per_slice_ns
        begins, ends = [], []
        for at_ns, rows in zip(came_ns.tolist(), counts.tolist(), strict=True):
            begin_ns = at_ns if at_ns > free_ns else free_ns
            work_ns = per_slice_ns + rows * per_row_ns
            free_ns = begin_ns + int(work_ns if load is None else work_ns * load(begin_ns))
            begins.append(begin_ns)
            ends.append(free_ns)
        return begins, ends

    def soonest_done(self, came_ns: Ints) -> Ints:
        """Return when results that come at these times, ascending, can be done at the soonest.

        What has come before the sink's load rises may be in a slice that begins before that: it
        then takes no time here, and nothing but the work on results does.
        """
        load, per_row_ns = self._load, self._per_row_ns
        free_ns, ends = 0.0, []
        for at_ns in came_ns.tolist():
            begin_ns = max(at_ns, free_ns)
            work = 1.0 if load is None else load(int(begin_ns))
            if load is not None and work > load(at_ns):
                work = 0.0
            free_ns = begin_ns + per_row_ns * work
            ends.append(free_ns)
        return np.array(ends, dtype=np.int64)


def _alike(times: Ints, other_times: Ints, counts: Ints, other_counts: Ints) -> int:
    """Return how many messages are the same from the beginning on."""
    size = min(len(times), len(other_times))
    same = times[:size] == other_times[:size]
    same &= counts[:size] == other_counts[:size]
    return size if same.all() else int(same.argmin())


@dataclass(frozen=True)
class _Worked:
    """What the sink did last; arrays, shape (messages,)."""

    came_ns: Ints
    counts: Ints
    begins: Ints
    ends: Ints


class RecentWork:
    """A sink that is asked again and again, and remembers what it was asked last.

    Args:
        sink: which.
    """

    def __init__(self, sink: SinkQueue) -> None:
        none = np.empty(0, dtype=np.int64)
        self._queue, self._last = sink, _Worked(none, none, none, none)

    def work(self, came_ns: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """Return when each message is begun and done; only what has changed is worked out anew."""
        last, size = self._last, len(came_ns)
        head = _alike(came_ns, last.came_ns, counts, last.counts)
        turned = came_ns[head:][::-1], last.came_ns[head:][::-1]
        tail = _alike(*turned, counts[::-1], last.counts[::-1])
        ahead = len(last.came_ns) - size  # of a message of the tail: its place then − that now
        free_ns = int(last.ends[head - 1]) if head else 0
        begins, ends = [last.begins[:head]], [last.ends[:head]]
        done = head
        while done < size:
            stop = min(done + _STEP, size)
            begun, ended = self._queue.work(came_ns[done:stop], counts[done:stop], free_ns)
            begins.append(np.array(begun, dtype=np.int64))
            ends.append(np.array(ended, dtype=np.int64))
            done, free_ns = stop, ended[-1]
            if done > size - tail and free_ns == last.ends[done - 1 + ahead]:
                begins.append(last.begins[done + ahead :])
                ends.append(last.ends[done + ahead :])
                break
        self._last = _Worked(came_ns, counts, np.concatenate(begins), np.concatenate(ends))
        return self._last.begins, self._last.ends
