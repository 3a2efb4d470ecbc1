"""Beyond the paper: an estimate that counts work held up upstream, too.

Mace takes it that all that is upstream of an operator takes no time. Where sources that have
nothing to do with each other share a node and one of them is held up before it, that node stands
idle for a while, and Mace counts the time as used. Here each subinterval's work is laid into the
time that its nodes have left, the oldest stimulus first, and no earlier than it gets there:

```
node 0   AAAAAAAAAA          A's second 0 takes two
node 1   .a.a.a.a.aBBB       it comes to node 1 at half the pace; B's later work takes what is left
```

As [mace] Def. 7 has it, what is older goes first, so what is newer changes nothing for it: one pass
over subintervals and operators is enough. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from runtime.errors import SettingError
from runtime.estimate.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["HeldBack", "HeldUp", "held_up"]

DONE = 1e-12
"""Seconds of work that are none: what rounding leaves."""


@dataclass(frozen=True, eq=False)
class HeldUp:
    """What the estimate says.

    Attributes:
        latency_s: shape (d,), of the last result of each subinterval; 0 where it has none.
        finished_s: shape (m, d), when each operator is done with what belongs to a subinterval,
            seconds from the start of the first.
        took_s: for each operator shape (inputs, d), how long after the last of a subinterval's
            rows has come to an input its work on them is done.
    """

    latency_s: FloatArray
    finished_s: FloatArray
    took_s: Sequence[FloatArray] = field(default=())


@dataclass(frozen=True, eq=False)
class HeldBack:
    """When a gate lets the rows of each subinterval go to its operator; shape (d,) each, seconds.

    Attributes:
        rows_s: for each input when the first and the last go.
        results_s: when the first and the last of its results leave, work included.
        waited_s: the longest from a result's stimulus until then.
    """

    rows_s: Sequence[tuple[FloatArray, FloatArray]]
    results_s: tuple[FloatArray, FloatArray]
    waited_s: FloatArray


def held_up(
    graph: QueryGraph,
    work: Workload,
    nodes: list[int],
    capacity: FloatArray,
    *,
    hop_s: FloatArray | None = None,
    gates: Mapping[int, HeldBack] | None = None,
) -> HeldUp:
    """Return what the latency of each subinterval will be, work held up upstream counted.

    O(d · m) times the subintervals over which one's work is spread.

    Args:
        graph: m operators in topological order.
        work: what they have to do, over d subintervals.
        nodes: for each operator the number of its node.
        capacity: shape (n,), C_i of each node, > 0.
        hop_s: shape (n, n), how long an event travels from one node to another; None: no time.
        gates: {number of an operator: when its gate lets rows go}.
    """
    if not (capacity > 0).all():
        raise SettingError(f"a node's capacity must be above 0, not {capacity}")
    steps = _steps(graph, work, nodes, hop_s)
    width_s, d = work.width_s, work.load_s.shape[1]
    free = [_Time(width_s, d) for _ in capacity]
    speed = [float(one) for one in capacity]
    finished_s = np.zeros((len(steps), d))
    latency_s = np.zeros(d)
    came = work.arrivals
    is_sink = [one.name in set(graph.sinks) for one in graph.operators]
    gives = [came[one.name] > 0 for one in graph.operators]
    took_s = [np.zeros((len(step), d)) for step in steps]
    gates = gates or {}
    for p in range(d):
        begins_s, ends_s = p * width_s, (p + 1) * width_s
        first = [begins_s] * len(steps)
        last = [ends_s] * len(steps)
        # Of what a gate held the last to leave need not be what has waited longest: how much
        # longer that is.
        beyond = [0.0] * len(steps)
        for j, step in enumerate(steps):
            node, held = nodes[j], gates.get(j)
            out_first, out_last = np.inf, 0.0
            for n, (feeder, load_s, delay_s) in enumerate(step):
                if held is not None:
                    start, end = held.rows_s[n][0][p], held.rows_s[n][1][p]
                else:
                    start = (begins_s if feeder < 0 else first[feeder]) + delay_s
                    end = (ends_s if feeder < 0 else last[feeder]) + delay_s
                    beyond[j] = max(beyond[j], 0.0 if feeder < 0 else beyond[feeder])
                begun, done = free[node].fill(float(load_s[p]) / speed[node], start, end)
                took_s[j][n, p] = done - end
                out_first, out_last = min(out_first, begun), max(out_last, done)
            finished_s[j, p] = out_last
            if held is not None:
                out_first, out_last = held.results_s[0][p], held.results_s[1][p]
                beyond[j] = held.waited_s[p] - (out_last - ends_s)
            first[j], last[j] = out_first, out_last
            if is_sink[j] and gives[j][p]:
                latency_s[p] = max(latency_s[p], out_last - ends_s + beyond[j])
    return HeldUp(latency_s, finished_s, took_s)


def _steps(
    graph: QueryGraph, work: Workload, nodes: list[int], hop_s: FloatArray | None
) -> list[list[tuple[int, FloatArray, float]]]:
    """Return what each operator gets: (which feeds it, -1 a source; its load; the way's time)."""
    number = {one.name: j for j, one in enumerate(graph.operators)}
    steps = []
    for j, one in enumerate(graph.operators):
        feeders = [number.get(name, -1) for name in one.inputs]
        delays = [
            0.0 if hop_s is None or k < 0 else float(hop_s[nodes[k], nodes[j]]) for k in feeders
        ]
        loads = [
            np.asarray(c * work.arrivals[n]) for c, n in zip(one.cost_s, one.inputs, strict=True)
        ]
        if one.curve is not None:  # all of it comes with what comes last
            shares = np.stack([work.arrivals[name] for name in one.inputs])
            total = np.maximum(shares.sum(axis=0), DONE)
            loads = [work.load_s[j] * share / total for share in shares]
        steps.append(list(zip(feeders, loads, delays, strict=True)))
    return steps


class _Time:
    """What one node has left of each subinterval, in seconds; older work has taken the rest."""

    def __init__(self, width_s: float, count: int) -> None:
        self._width_s = width_s
        self._left = [width_s] * count
        self._next = list(range(count + 1))  # the first at or behind it that has any left

    def fill(self, work_s: float, start_s: float, end_s: float) -> tuple[float, float]:
        """Lay work into the time that is left; it comes evenly from `start_s` to `end_s`.

        Returns:
            When its first and its last event are done.
        """
        width_s = self._width_s
        if work_s <= DONE:
            return start_s, end_s
        span_s = end_s - start_s
        cell = self._from(int(start_s / width_s + 1e-9))
        begun = max(start_s, self._used_until(cell))
        done_s, left_s = end_s, work_s
        while True:
            stop_s = (cell + 1) * width_s
            came_s = work_s if stop_s >= end_s else work_s * max(stop_s - start_s, 0.0) / span_s
            room_s = min(self._left[cell], stop_s - max(start_s, cell * width_s))
            take_s = min(room_s, came_s - (work_s - left_s))
            if take_s > 0:
                self._left[cell] -= take_s
                left_s -= take_s
                if self._left[cell] <= DONE:
                    self._left[cell] = 0.0
                    self._next[cell] = cell + 1
            if left_s <= DONE:
                done_s = max(end_s, self._used_until(cell))
                return begun, done_s
            cell = self._from(cell + 1)

    def _used_until(self, cell: int) -> float:
        """Return until when this subinterval is taken, what is taken of it standing first."""
        return (cell + 1) * self._width_s - self._left[cell]

    def _from(self, cell: int) -> int:
        """Return the first subinterval from this one on that has time left."""
        while len(self._left) <= cell:
            self._left.append(self._width_s)
            self._next.append(len(self._left))
        path = []
        while self._next[cell] != cell:
            path.append(cell)
            cell = self._next[cell]
            if cell >= len(self._left):
                self._left.append(self._width_s)
                self._next.append(len(self._left))
        for one in path:
            self._next[one] = cell
        return cell
