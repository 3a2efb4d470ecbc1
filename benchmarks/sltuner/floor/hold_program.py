"""A dynamic program over seconds: the holds of one gate that cost the fewest slack-ready rows.

All that the seconds to come need to know of a plan's past is in a `States` row: where its cut is
(`hold_tables.py`), until when the sink is busy, how long results take that have come and are to be
begun in a coming second, how many seconds were over so far, and the rows so far. Each second every
state is tried with every hold worth it, bin by bin, all of them at once; of those that then are
nearly the same the one with the fewest rows stays.

What it says of a plan is near what the evaluator says, not the same: the evaluator is the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.sltuner.deadline import Floats, Ints
from benchmarks.sltuner.floor.hold_tables import BIN_S, BINS, Counts, Tables
from benchmarks.sltuner.floor.local_search import GRID_NS, MOST_NS, OFFSET_NS, Task
from benchmarks.sltuner.floor.one_gate import RIGHT, OneGate
from slackwater.runtime.model import NS_PER_SECOND

AHEAD = 12
"""Seconds ahead in which what has come may be begun; later ones count as the last."""
OFFSET_S = OFFSET_NS / NS_PER_SECOND
MOST_STEPS = (MOST_NS - OFFSET_NS) // GRID_NS
NEAR = np.concatenate([np.arange(40), np.arange(40, 120, 4), np.arange(120, 300, 15)])
"""Holds tried: so many steps of 20 ms below what the deadline leaves; finest where it binds."""
FEW_NEAR = np.array((0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 35, 45, 60, 80, 105, 135, 170, 215, 270))
"""Likewise, but fewer: the same width then reaches further."""
BEYOND = np.array((10, 25, 50, 100, 150, 200, 300, MOST_STEPS))
"""And above, for a second that may be over."""
AROUND = np.array((-50, -20, -10, -5, -3, -2, -1, 0, 1, 2, 3, 5, 10, 20, 50))
"""Around plans that are known."""


@dataclass(frozen=True)
class Grain:
    """How fine the program looks.

    Attributes:
        width: states that stay, for each number of seconds over.
        rows, free_s, wait_s: states are nearly the same whose cut, time until the sink is free,
            and longest wait to come fall into one cell of this size.
        region: so many cells each way are a region, whose best stay before another's second best.
        near: the holds tried, in steps below what the deadline leaves.
    """

    width: int
    rows: int
    free_s: float
    wait_s: float
    region: int = 10
    near: tuple[int, ...] = tuple(FEW_NEAR.tolist())


@dataclass(frozen=True)
class States:
    """Plans as a second begins; arrays, shape (states,) but for `waits_s`.

    Attributes:
        cut: right rows that have left.
        free_s: until when the sink is busy.
        waits_s: shape (states, AHEAD), how long results take that begin so many seconds from now.
        over: seconds over the deadline so far.
        rows: slack-ready rows so far.
        parent: the state a second ago.
        steps: the hold that led here, in steps of 20 ms.
    """

    cut: Counts
    free_s: Floats
    waits_s: Floats
    over: Counts
    rows: Counts
    parent: Counts
    steps: Counts

    def take(self, places: Ints) -> States:
        """Return some of them, in this order."""
        return States(*(getattr(self, name)[places] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Planned:
    """A plan that the program found: its holds, shape (seconds,), and what it says of it."""

    holds_ns: Ints
    over: int
    rows: int


class HoldProgram:
    """The program over one part of a run.

    It takes left rows to leave as they are ready, whatever the hold: they are the late side.

    Args:
        gate: whose.
        task: the part, and what counts in it.
        may_be_over: how many seconds at most.
    """

    def __init__(self, gate: OneGate, task: Task, *, may_be_over: int) -> None:
        self._tables, self._task = Tables(gate, task.part), task
        self._most = may_be_over
        self._limit_s = task.limit_s - task.part.fixed_s
        self._to_come = self._forced()

    def plans(
        self,
        grain: Grain,
        *,
        around: Sequence[Ints] = (),
        below: Mapping[int, float] | None = None,
    ) -> list[Planned]:
        """Return the best plan for each number of seconds over that one was found of.

        Args:
            grain: how fine.
            around: holds, shape (seconds,) each; then only holds near theirs are tried.
            below: {seconds over: rows of a known plan}: only fewer are of use.
        """
        worth = np.array([(below or {}).get(o, np.inf) for o in range(self._most + 1)])
        near = (np.array(around, dtype=np.int64) - OFFSET_NS) // GRID_NS if around else None
        none = np.zeros(1, dtype=np.int32)
        states = States(none, np.zeros(1), np.zeros((1, AHEAD)), none, none, none, none)
        past = []
        for second in range(self._tables.seconds):
            wanted = None if near is None else np.unique(near[:, second, None] + AROUND)
            states = self._after(states, second, wanted, grain)
            states = states.take(np.flatnonzero(states.over <= self._most))
            states = states.take(np.flatnonzero(states.rows < worth[states.over]))
            if not len(states.cut):
                return []
            states = self._kept(states, grain)
            past.append((states.parent, states.steps))
        found = []
        for over in range(self._most + 1):
            own = np.flatnonzero(states.over == over)
            if len(own):
                place = int(own[states.rows[own].argmin()])
                found.append(Planned(_holds(past, place), over, int(states.rows[place])))
        return found

    def _forced(self) -> Counts:
        """Return how many rows from each on must leave early, were the sink idle; (rows + 1,)."""
        part = self._task.part
        came_ns, ready_ns = part.came_ns[RIGHT], part.ready_ns[RIGHT]
        forced = (ready_ns - came_ns) / NS_PER_SECOND > self._task.limit_s
        behind = forced[::-1].cumsum()[::-1]
        return np.append(behind, 0).astype(np.int32)

    def _tried(
        self, states: States, second: int, wanted: Ints | None, grain: Grain
    ) -> tuple[Ints, Counts]:
        """Return (place of the state, steps of the hold) of all that is tried in a second."""
        # Until the second is over no row can be older than this: longer holds are all alike.
        oldest_s = second + 1 - self._tables.came_s[states.cut]
        longest = np.floor(oldest_s / BIN_S).astype(np.int32) + 1
        left_s = self._limit_s[second] - states.waits_s[:, 0] - OFFSET_S
        left = np.floor(left_s / BIN_S).astype(np.int32)
        steps = left[:, None] + np.concatenate([-np.array(grain.near), BEYOND])
        if wanted is not None:
            steps = np.broadcast_to(wanted, (len(left), len(wanted)))
        steps = np.minimum(np.clip(steps, 1, MOST_STEPS), np.maximum(longest, 1)[:, None])
        steps = np.sort(steps, axis=1).astype(np.int32)
        is_new = np.ones(steps.shape, dtype=np.bool_)
        is_new[:, 1:] = steps[:, 1:] != steps[:, :-1]
        own, which = np.nonzero(is_new)
        return own, steps[own, which]

    def _after(self, states: States, second: int, wanted: Ints | None, grain: Grain) -> States:
        own, steps = self._tried(states, second, wanted, grain)
        tables, run = self._tables, _Second(self._tables, states.take(own), second)
        begin = second * BINS
        run.leave(begin, 0.0, tables.come[np.maximum(begin - steps, 0)])
        for place in range(begin, begin + BINS):
            run.arrive(place)
            due = tables.come[np.maximum(place + 1 - steps, 0)]
            run.leave(place, OFFSET_S, due)
        is_judged = bool(self._task.judged[second])
        is_over = run.gate_s + run.waits_s[:, 0] > self._limit_s[second]
        waits_s = np.roll(run.waits_s, -1, axis=1)
        waits_s[:, -1] = 0
        return States(
            run.cut,
            run.free_s,
            waits_s,
            states.over[own] + (is_over & is_judged).astype(np.int32),
            states.rows[own] + (run.rows if is_judged else 0),
            own.astype(np.int32),
            steps,
        )

    def _kept(self, states: States, grain: Grain) -> States:
        """Return those that stay: of nearly the same the best, and not too many."""
        score = states.rows + self._to_come[states.cut]
        key = _key(states, grain, 1)
        order = np.lexsort((states.free_s, score, key))
        first = np.append(True, np.diff(key[order]) != 0)
        places = order[first]
        # Few rows so far can mean many to come: the best of each region stay, then the second best.
        region = _key(states, grain, grain.region)[places]
        by_region = np.lexsort((score[places], region))
        places, region = places[by_region], region[by_region]
        starts = np.flatnonzero(np.append(True, np.diff(region) != 0))
        sizes = np.diff(np.append(starts, len(places)))
        rank = np.arange(len(places)) - np.repeat(starts, sizes)
        kept = []
        for over in range(self._most + 1):
            own = np.flatnonzero(states.over[places] == over)
            own = own[np.lexsort((score[places[own]], rank[own]))][: grain.width]
            kept.append(places[own])
        return states.take(np.concatenate(kept))


def _key(states: States, grain: Grain, times: int) -> Ints:
    """Return the cell of each state, cells so many times as large as the grain says."""
    free = np.maximum(states.free_s / (grain.free_s * times), 0).astype(np.int64)
    wait = (states.waits_s[:, :3].max(axis=1) / (grain.wait_s * times)).astype(np.int64)
    cut = states.cut.astype(np.int64) // (grain.rows * times)
    over = states.over.astype(np.int64)
    key: Ints = ((over * 100_000 + cut) * 10_000 + free) * 1_000 + wait
    return key


class _Second:
    """Many states at once, led through the bins of a second."""

    def __init__(self, tables: Tables, states: States, second: int) -> None:
        self._tables, self._second = tables, second
        self.cut, self.free_s = states.cut, states.free_s
        self.waits_s = states.waits_s.copy()
        self._flat_s = self.waits_s.reshape(-1)
        self._begins = np.arange(len(self.cut)) * AHEAD
        self.gate_s = np.zeros(len(self.cut))
        self.rows = np.zeros(len(self.cut), dtype=np.int32)

    def arrive(self, place: int) -> None:
        """What comes in a bin: left rows find what has left, and right rows may be ready."""
        tables = self._tables
        cut = np.maximum(self.cut, tables.ready[place])
        column = tables.busy[cut]
        new = tables.new[place]
        results = new[column] - new[np.minimum(tables.kept[self.cut], column)]
        lost = tables.newest_s[self.cut] - tables.left_s[place] > tables.within_s
        results[lost] = 0
        if place:
            before = tables.pairs[place - 1]
            results += before[column] - before[tables.busy[self.cut]]
        self._let_go(cut, place * BIN_S)
        self._work(results, place * BIN_S + tables.passing_s)

    def leave(self, place: int, after_s: float, due: Counts) -> None:
        """Rows leave that have waited for the hold."""
        tables = self._tables
        cut = np.maximum(self.cut, due)
        left = tables.pairs[place if after_s else max(place - 1, 0)]
        results = left[tables.busy[cut]] - left[tables.busy[self.cut]]
        # None of them is ready: what is ready leaves first, in `arrive`.
        self.rows += cut - self.cut
        at_s = place * BIN_S + after_s
        self._let_go(cut, at_s)
        self._work(results, at_s + tables.passing_s)

    def _let_go(self, cut: Counts, at_s: float) -> None:
        waited_s = np.where(cut > self.cut, at_s - self._tables.came_s[self.cut], 0.0)
        np.maximum(self.gate_s, waited_s, out=self.gate_s)
        self.cut = cut

    def _work(self, results: Counts, came_s: float) -> None:
        tables = self._tables
        own = np.flatnonzero(results)
        begin_s = np.maximum(self.free_s[own], came_s)
        # A sink that is still busy long after the part takes its last known load on.
        load = tables.load[np.minimum((begin_s / BIN_S).astype(np.int64), len(tables.load) - 1)]
        end_s = begin_s + (tables.slice_s + results[own] * tables.row_s) * load
        self.free_s[own] = end_s
        later = np.minimum(begin_s.astype(np.int64) - self._second, AHEAD - 1)
        at = self._begins[own] + later
        self._flat_s[at] = np.maximum(self._flat_s[at], end_s - came_s)


def _holds(past: list[tuple[Counts, Counts]], place: int) -> Ints:
    steps = []
    for parent, own in reversed(past):
        steps.append(int(own[place]))
        place = int(parent[place])
    return np.array(steps[::-1], dtype=np.int64) * GRID_NS + OFFSET_NS
