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

Behind a gate there are two times. What has waited is old, and goes before all that is newer, but is
there only when it is let go:

```
let go     at 5, of stimulus 3     ─▶ takes the time from 5 on
a source   of stimulus 4           ─▶ takes what was left before 5, and then what 3 leaves
```

What lets it go may itself be newer than that, and be laid later. Then the pass before says when it
is there (`before`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["HeldBack", "HeldUp", "held_up"]

DONE = 1e-12
"""Seconds of work that are none: what rounding leaves."""

WAYS = 4
"""Events whose ways differ by less than a subinterval by so many are taken for one stream."""


@dataclass(frozen=True, eq=False)
class HeldUp:
    """What the estimate says.

    Attributes:
        latency_s: shape (d,), of the last result of each subinterval; 0 where it has none.
        finished_s: shape (m, d), when each operator is done with what belongs to a subinterval,
            seconds from the start of the first.
        took_s: for each operator shape (inputs, d), how long after the last of a subinterval's
            rows has come to an input its work on them is done.
        parts: for each subinterval and operator what came of it, for the next pass.
    """

    latency_s: FloatArray
    finished_s: FloatArray
    took_s: Sequence[FloatArray] = field(default=())
    parts: Sequence[Sequence[Sequence[_Part]]] = field(default=())

    def behind_s(self, width_s: float) -> float:
        """Return the longest that any event has waited, all the way, its own way left out."""
        most_s = 0.0
        for p, each in enumerate(self.parts):
            waits_s = [part.last_s - part.way_s for parts in each for part in parts]
            most_s = max(most_s, max(waits_s, default=0.0) - (p + 1) * width_s)
        return most_s


@dataclass(frozen=True, eq=False)
class HeldBack:
    """What a gate lets go to its operator when. Subintervals are then those of that time.

    Attributes:
        counts: for each input shape (d,), rows that go in a subinterval.
        let_go_s: shape (d,), the earliest stimulus of what comes to the gate as they go: by that
            the work on them counts.
        urgency_s: shape (d,), the earliest stimulus of the results that leave in a subinterval: by
            that their channel counts further down.
    """

    counts: Sequence[FloatArray]
    let_go_s: FloatArray
    urgency_s: FloatArray


def held_up(
    graph: QueryGraph,
    work: Workload,
    nodes: list[int],
    capacity: FloatArray,
    *,
    hop_s: FloatArray | None = None,
    gates: Mapping[int, HeldBack] | None = None,
    before: HeldUp | None = None,
) -> HeldUp:
    """Return what the latency of each subinterval will be, work held up upstream counted.

    O(d · m) times the subintervals over which one's work is spread.

    Args:
        graph: m operators in topological order.
        work: what they have to do, over d subintervals.
        nodes: for each operator the number of its node.
        capacity: shape (n,), C_i of each node, > 0.
        hop_s: shape (n, n), how long an event travels from one node to another; None: no time.
        gates: {number of an operator: what its gate lets go}. What is behind it is then counted in
            `work` by when it leaves that gate, and `latency_s` is counted from there.
        before: of a pass before this: when that comes which is laid later than what it feeds. None:
            then it comes as its gate lets it go.
    """
    if not (capacity > 0).all():
        raise SettingError(f"a node's capacity must be above 0, not {capacity}")
    gates = gates or {}
    steps = _steps(graph, work, nodes, hop_s, gates)
    width_s, d = work.width_s, work.load_s.shape[1]
    free = [_Time(width_s, d) for _ in capacity]
    speed = [float(one) for one in capacity]
    finished_s = np.zeros((len(steps), d))
    took_s = [np.zeros((len(step), d)) for step in steps]
    latency_s = np.zeros(d)
    sinks = set(graph.sinks)
    is_sink = [one.name in sinks for one in graph.operators]
    gives = [work.arrivals[one.name] > 0 for one in graph.operators]
    out: list[list[list[_Part]]] = [[[] for _ in steps] for _ in range(d)]
    for p, j in _order(steps, nodes, gates, d, width_s):
        begins_s, ends_s = p * width_s, (p + 1) * width_s
        outside = [_Part(0.0, begins_s, ends_s, 1.0)]
        made: dict[int, _Part] = {}  # {its way, in parts of a subinterval: what took it}
        for n, fed in enumerate(steps[j]):
            parts: Sequence[_Part] = [] if fed.feeder < 0 else out[p][fed.feeder]
            parts = parts or _before(before, p, fed.feeder) or outside
            took_s[j][n, p] = -max(part.last_s for part in parts) - fed.hop_s
            done_s = 0.0
            for done in fed.worked_off(parts, p, free[nodes[j]], speed[nodes[j]]):
                key = round(done.way_s / width_s * WAYS)
                made[key] = done if key not in made else made[key].joined(done)
                done_s = max(done_s, done.last_s)
            took_s[j][n, p] += done_s
        out[p][j] = list(made.values())
        finished_s[j, p] = max(part.last_s for part in out[p][j])
        if is_sink[j] and gives[j][p]:
            latency_s[p] = max(latency_s[p], finished_s[j, p] - ends_s)
    return HeldUp(latency_s, finished_s, took_s, out)


def _before(before: HeldUp | None, p: int, operator: int) -> Sequence[_Part]:
    """Return what came of an operator in the pass before, if there is one that went so far."""
    if operator < 0 or before is None or p >= len(before.parts):
        return ()
    return before.parts[p][operator]


def _order(
    steps: list[list[_Feed]],
    nodes: list[int],
    gates: Mapping[int, HeldBack],
    d: int,
    width_s: float,
) -> Iterator[tuple[int, int]]:
    """Yield (subinterval, operator) in the order in which nodes do the work: oldest first."""
    if not gates:
        yield from ((p, j) for p in range(d) for j in range(len(steps)))
        return
    begins_s = np.arange(d) * width_s
    gone: list[FloatArray] = []
    urgency: list[FloatArray] = []
    behind: list[bool] = []
    for j, step in enumerate(steps):
        feeders = [fed.feeder for fed in step if fed.feeder >= 0]
        behind.append(j in gates or any(behind[one] for one in feeders))
        own = begins_s if not feeders else np.min([gone[one] for one in feeders], axis=0)
        urgency.append(gates[j].let_go_s if j in gates else np.asarray(own))
        for one in feeders:
            if one in gates and nodes[one] == nodes[j]:
                # Where its results leave in its own slot, a burst goes on behind each of them.
                urgency[one] = np.minimum(urgency[one], own)
        gone.append(gates[j].urgency_s if j in gates else np.asarray(own))
    keys = np.stack(urgency)
    operators, places = np.indices(keys.shape).reshape(2, -1)
    cells = np.floor(keys / width_s + 1e-9)
    # Of one subinterval what is behind a gate goes first: a row's results before the next row.
    sides = np.broadcast_to(~np.array(behind)[:, None], keys.shape)
    for at in np.lexsort((operators, places, keys.ravel(), sides.ravel(), cells.ravel())):
        yield int(places[at]), int(operators[at])


class _Part(NamedTuple):
    """Events of one subinterval that came about the same way: what is far comes apart.

    Attributes:
        way_s: how long they have travelled, and were worked on themselves.
        first_s: when the first is there.
        last_s: the last.
        rows: how many they are.
    """

    way_s: float
    first_s: float
    last_s: float
    rows: float

    def joined(self, other: _Part) -> _Part:
        return _Part(
            self.way_s,
            min(self.first_s, other.first_s),
            max(self.last_s, other.last_s),
            self.rows + other.rows,
        )


@dataclass(frozen=True, slots=True)
class _Feed:
    """One input of an operator.

    Attributes:
        feeder: the operator that it comes from; -1: from outside.
        load_s: shape (d,), what it has to do for that.
        rows: shape (d,), how many it puts out for that.
        hop_s: how long an event travels.
        alone_s: how long it takes by itself, where it finds nothing before it.
    """

    feeder: int
    load_s: FloatArray
    rows: FloatArray
    hop_s: float
    alone_s: float

    def worked_off(self, parts: Sequence[_Part], p: int, free: _Time, speed: float) -> list[_Part]:
        """Lay the work of subinterval `p` into a node's time; return what comes of each part."""
        load_s, rows, hop_s = float(self.load_s[p]) / speed, float(self.rows[p]), self.hop_s
        alone_s = self.alone_s / speed
        total = sum([part.rows for part in parts])
        found = []
        for way_s, first_s, last_s, came in parts:
            share = came / total if total > 0 else 1.0 / len(parts)
            begun_s, done_s = free.fill(load_s * share, first_s + hop_s, last_s + hop_s)
            if load_s > DONE:  # else no row came; what waits counts its own work in the queue
                begun_s = max(begun_s, first_s + hop_s + alone_s)
                done_s = max(done_s, last_s + hop_s + alone_s)
            found.append(_Part(way_s + hop_s + alone_s, begun_s, done_s, rows * share))
        return found


def _steps(
    graph: QueryGraph,
    work: Workload,
    nodes: list[int],
    hop_s: FloatArray | None,
    gates: Mapping[int, HeldBack],
) -> list[list[_Feed]]:
    """Return the inputs of each operator."""
    number = {one.name: j for j, one in enumerate(graph.operators)}
    steps = []
    for j, one in enumerate(graph.operators):
        feeders = [number.get(name, -1) for name in one.inputs]
        delays = [
            0.0 if hop_s is None or k < 0 else float(hop_s[nodes[k], nodes[j]]) for k in feeders
        ]
        came = list(gates[j].counts) if j in gates else [work.arrivals[n] for n in one.inputs]
        loads = [np.asarray(c * n) for c, n in zip(one.cost_s, came, strict=True)]
        rows = [np.asarray(s * n) for s, n in zip(one.selectivity, came, strict=True)]
        if one.curve is not None:  # all of it comes with what comes last
            shares = np.stack(came)
            shares = shares / np.maximum(shares.sum(axis=0), DONE)
            loads = [work.load_s[j] * share for share in shares]
            rows = [work.arrivals[one.name] * share for share in shares]
        if j in gates:  # what waits has come already: it is there as it is let go
            feeders, delays = [-1] * len(feeders), [0.0] * len(delays)
        alone = [one.alone_s] * len(feeders)
        parts = zip(feeders, loads, rows, delays, alone, strict=True)
        steps.append([_Feed(*each) for each in parts])
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
