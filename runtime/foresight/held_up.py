"""Estimate that counts work held up upstream, too; it goes beyond the paper.

Mace assumes that all work upstream of an operator takes no time. If independent sources share a
node and one of them is held up before it, the node is idle for a while, and Mace counts that time
as used. Here each subinterval's work is laid into the free time of its nodes, the oldest stimulus
first, and no earlier than it arrives:

```
node 0   AAAAAAAAAA          A's second 0 takes two
node 1   .a.a.a.a.aBBB       it reaches node 1 at half the pace; B's later work takes the rest
```

By [mace] Def. 7 older work goes first, so newer work does not delay it: one pass over subintervals
and operators is enough. The estimate runs no flow.

After a gate there are two times. A row that has waited is old, and goes before all newer rows, but
it arrives only when the gate releases it:

```
released   at 5, of stimulus 3     ─▶ takes the time from 5 on
a source   of stimulus 4           ─▶ takes the free time before 5, then the rest after 3
```

The row that makes the gate release it may itself be newer, and be laid later. Then the previous
pass says when it arrives (`before`).
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
"""Seconds of work that count as zero: rounding errors."""

WAYS = 4
"""Streams whose ways differ by less than a subinterval divided by this count as one stream."""


@dataclass(frozen=True, eq=False)
class HeldUp:
    """Result of the estimate.

    Attributes:
        latency_s: shape (d,), latency of the last result of each subinterval; 0: it has no result.
        finished_s: shape (m, d), time when each operator finishes a subinterval's work, seconds
            from the start of the first.
        took_s: an array for each operator, shape (inputs, d): time from the arrival of a
            subinterval's last row at an input to the end of the work on its rows.
        parts: results of each subinterval and operator, for the next pass.
    """

    latency_s: FloatArray
    finished_s: FloatArray
    took_s: Sequence[FloatArray] = field(default=())
    parts: Sequence[Sequence[Sequence[_Part]]] = field(default=())

    def behind_s(self, width_s: float) -> float:
        """Return the longest wait of any event on its whole path, without its own way."""
        most_s = 0.0
        for p, each in enumerate(self.parts):
            waits_s = [part.last_s - part.way_s for parts in each for part in parts]
            most_s = max(most_s, max(waits_s, default=0.0) - (p + 1) * width_s)
        return most_s


@dataclass(frozen=True, eq=False)
class HeldBack:
    """Rows that a gate releases to its operator, by subintervals of their release.

    Attributes:
        counts: an array for each input, shape (d,): rows released in each subinterval.
        first_release_s: shape (d,), earliest stimulus of the arrivals that make the gate
            release rows: the work on those rows has this rank.
        urgency_s: shape (d,), earliest stimulus of the results that leave in a subinterval: their
            channel has this rank downstream.
    """

    counts: Sequence[FloatArray]
    first_release_s: FloatArray
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
    """Return the latency of each subinterval, with work held up upstream.

    O(d · m) times the subintervals over which the work of one is spread.

    Args:
        graph: m operators in topological order.
        work: their work, over d subintervals.
        nodes: number of each operator's node.
        capacity: shape (n,), C_i of each node, > 0.
        hop_s: shape (n, n), travel time of an event from one node to another; None if it takes no
            time.
        gates: {number of an operator: releases of its gate}. `work` then counts work downstream by
            the time when it leaves that gate, and `latency_s` counts from there.
        before: result of the previous pass, for operators that are laid later than those that they
            feed. None if their results arrive as the gate releases rows.

    Raises:
        SettingError: a capacity is not above 0.
    """
    if not (capacity > 0).all():
        raise SettingError(f"a node's capacity must be above 0, not {capacity}")
    gates = gates or {}
    steps = _steps(graph, work, nodes, hop_s, gates)
    width_s, d = work.width_s, work.load_s.shape[1]
    free = [_Time(width_s, d) for _ in capacity]
    speed = [float(each) for each in capacity]
    finished_s = np.zeros((len(steps), d))
    took_s = [np.zeros((len(step), d)) for step in steps]
    latency_s = np.zeros(d)
    sinks = set(graph.sinks)
    is_sink = [name in sinks for name in graph.names]
    gives = [work.arrivals[name] > 0 for name in graph.names]
    out: list[list[list[_Part]]] = [[[] for _ in steps] for _ in range(d)]
    for p, j in _order(steps, nodes, gates, d, width_s):
        begins_s, ends_s = p * width_s, (p + 1) * width_s
        outside = [_Part(0.0, begins_s, ends_s, 1.0)]
        made: dict[int, _Part] = {}  # {way, in parts of a subinterval: its part}
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
    """Return the parts of an operator in the previous pass; empty: they are unknown."""
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
    is_after: list[bool] = []  # whether an operator is after a gate
    for j, step in enumerate(steps):
        feeders = [fed.feeder for fed in step if fed.feeder >= 0]
        is_after.append(j in gates or any(is_after[feeder] for feeder in feeders))
        own = begins_s if not feeders else np.min([gone[feeder] for feeder in feeders], axis=0)
        urgency.append(gates[j].first_release_s if j in gates else np.asarray(own))
        for feeder in feeders:
            if feeder in gates and nodes[feeder] == nodes[j]:
                # Its results leave in its own slot, so the burst continues after each of them.
                urgency[feeder] = np.minimum(urgency[feeder], own)
        gone.append(gates[j].urgency_s if j in gates else np.asarray(own))
    keys = np.stack(urgency)
    operators, places = np.indices(keys.shape).reshape(2, -1)
    cells = np.floor(keys / width_s + 1e-9)
    # In a subinterval, operators after a gate go first: a row's results before the next row.
    sides = np.broadcast_to(~np.array(is_after)[:, None], keys.shape)
    for at in np.lexsort((operators, places, keys.ravel(), sides.ravel(), cells.ravel())):
        yield int(places[at]), int(operators[at])


class _Part(NamedTuple):
    """Events of one subinterval with ways of about equal length.

    Attributes:
        way_s: time for which each has travelled and was worked on.
        first_s: arrival of the first.
        last_s: arrival of the last.
        rows: number of the events.
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
    """Input of an operator.

    Attributes:
        feeder: number of the operator that feeds it; -1: a source.
        load_s: shape (d,), work on its events.
        rows: shape (d,), results of its events.
        hop_s: travel time of an event.
        alone_s: time of an event that waits for no other.
    """

    feeder: int
    load_s: FloatArray
    rows: FloatArray
    hop_s: float
    alone_s: float

    def worked_off(self, parts: Sequence[_Part], p: int, free: _Time, speed: float) -> list[_Part]:
        """Lay the work of subinterval `p` into a node's time; return the parts after it."""
        load_s, rows, hop_s = float(self.load_s[p]) / speed, float(self.rows[p]), self.hop_s
        alone_s = self.alone_s / speed
        total = sum([part.rows for part in parts])
        results = []
        for way_s, first_s, last_s, came in parts:
            share = came / total if total > 0 else 1.0 / len(parts)
            begun_s, done_s = free.fill(load_s * share, first_s + hop_s, last_s + hop_s)
            if (
                load_s > DONE
            ):  # else no row arrived; rows that wait count their own work in the queue
                begun_s = max(begun_s, first_s + hop_s + alone_s)
                done_s = max(done_s, last_s + hop_s + alone_s)
            results.append(_Part(way_s + hop_s + alone_s, begun_s, done_s, rows * share))
        return results


def _steps(
    graph: QueryGraph,
    work: Workload,
    nodes: list[int],
    hop_s: FloatArray | None,
    gates: Mapping[int, HeldBack],
) -> list[list[_Feed]]:
    """Return the inputs of each operator."""
    number = {name: j for j, name in enumerate(graph.names)}
    steps = []
    for j, operator in enumerate(graph.operators):
        feeders = [number.get(name, -1) for name in operator.inputs]
        delays = [
            0.0 if hop_s is None or k < 0 else float(hop_s[nodes[k], nodes[j]]) for k in feeders
        ]
        came = list(gates[j].counts) if j in gates else [work.arrivals[n] for n in operator.inputs]
        loads = [np.asarray(c * n) for c, n in zip(operator.cost_s, came, strict=True)]
        rows = [np.asarray(s * n) for s, n in zip(operator.selectivity, came, strict=True)]
        if operator.curve is not None:  # all work comes with the event that arrives last
            shares = np.stack(came)
            shares = shares / np.maximum(shares.sum(axis=0), DONE)
            loads = [work.load_s[j] * share for share in shares]
            rows = [work.arrivals[operator.name] * share for share in shares]
        if j in gates:  # rows in the gate have travelled already: they start at their release
            feeders, delays = [-1] * len(feeders), [0.0] * len(delays)
        alone = [operator.alone_s] * len(feeders)
        parts = zip(feeders, loads, rows, delays, alone, strict=True)
        steps.append([_Feed(*each) for each in parts])
    return steps


class _Time:
    """Free time of one node in each subinterval, after older work, in seconds."""

    def __init__(self, width_s: float, count: int) -> None:
        self._width_s = width_s
        self._left = [width_s] * count
        self._next = list(range(count + 1))  # {subinterval: the first from it on with free time}

    def fill(self, work_s: float, start_s: float, end_s: float) -> tuple[float, float]:
        """Lay work into the free time; it arrives evenly from `start_s` to `end_s`.

        Returns:
            Times when its first and its last event are done.
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
        # Used time comes first in a subinterval.
        return (cell + 1) * self._width_s - self._left[cell]

    def _from(self, cell: int) -> int:
        """Return the first subinterval from this one on with free time."""
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
        for passed in path:
            self._next[passed] = cell
        return cell
