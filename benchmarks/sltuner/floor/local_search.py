"""A search for the holds of one gate, second by second, that cost the fewest slack-ready rows.

The run is cut where the gate holds next to nothing; each part is searched alone, once for each
number of seconds that may be over the deadline in it, and these are then shared out. The floor
(`search.py`) only polishes with it; alone (`searched`) it attacks the floor. Then a part
begins with what the deadline leaves in each second, and is mended, and what was taken too much is
given back: one or two stretches of up to three seconds are raised or lowered, and what is no worse
stays (at first a little worse, too). Seeded; no step of it looks at the clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.sltuner.deadline import OVER_AT_MOST, Ints
from benchmarks.sltuner.floor.one_gate import MOST_HOLD_S, OneGate, Part, Seconds
from slackwater.runtime.model import NS_PER_SECOND

GRID_NS, OFFSET_NS = 20_000_000, 7_000_000
"""Holds are so many steps, and 7 ms: sources look every 20 ms, and no hold ends just then."""
MOST_NS = MOST_HOLD_S * NS_PER_SECOND - GRID_NS + OFFSET_NS
RESERVE_S = 0.004
"""What the evaluator may be off by: see tests/benchmarks."""
KEPT_BACK_S = 0.0015
"""What a plan keeps back of the deadline: in two runs the evaluator was off by up to 1.7 ms where
seconds of work piled up in the sink (0.9 in judged seconds), by 0.11 ms elsewhere. Whether a plan
keeps the deadline, its run shows."""
STEPS = (1, 2, 5, 10, 20, 50, 100)
PER_OVER, PER_SECOND_OVER = 100.0, 2_000.0
CALM_S = 0.1
WARM_ROWS = 200.0
"""By how much worse a plan may be at first: of those, one in e stays."""
MARGIN_S = 2.0
"""A hold is searched where the wait and the sink's come so near to the deadline."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Found:
    """The best plan of a part: its holds, and the slack-ready rows; inf if it breaks the rule."""

    holds_ns: Ints
    cost: float


class Task:
    """One part, and what counts in it.

    Args:
        part: of the run.
        deadline_s: of the flow.
        first_second: from which on the run is judged.
        kept_back_s: of the deadline.

    Attributes:
        places: the seconds whose holds matter: rows that leave then may have waited too long.
    """

    def __init__(
        self, part: Part, *, deadline_s: float, first_second: int, kept_back_s: float
    ) -> None:
        self.part, self.limit_s = part, deadline_s - kept_back_s
        self.kept_back_s = kept_back_s
        self.judged: Bools = np.arange(part.first, part.last) >= first_second
        waits_s = np.zeros(part.last - part.first)
        for came_ns, ready_ns in zip(part.came_ns, part.ready_ns, strict=True):
            for later in range(MOST_HOLD_S):  # a row waits in each of these seconds
                at_ns = (came_ns // NS_PER_SECOND + later + 1) * NS_PER_SECOND
                longest_s = (np.minimum(at_ns, ready_ns) - came_ns) / NS_PER_SECOND
                place = np.minimum(came_ns // NS_PER_SECOND + later, part.last - 1) - part.first
                np.maximum.at(waits_s, place, longest_s)
        sink_s = part.evaluate(np.full(len(waits_s), MOST_NS)).sink_s
        matters = waits_s + np.maximum(sink_s, np.append(sink_s[1:], 0)) + MARGIN_S > self.limit_s
        self.places: Ints = np.flatnonzero(matters)

    def cost(self, holds_ns: Ints, may_be_over: int) -> tuple[float, bool]:
        """Return slack-ready rows, with a penalty for what is over; whether nothing is."""
        return self.cost_of(self.part.evaluate(holds_ns), may_be_over)

    def cost_of(self, seconds: Seconds, may_be_over: int) -> tuple[float, bool]:
        """Return the same of seconds that are known."""
        over_s = np.sort((seconds.latency_s - self.limit_s)[self.judged])[::-1][may_be_over:]
        over_s = over_s[over_s > 0]
        rows = float(seconds.slack_ready[self.judged].sum())
        return rows + PER_OVER * len(over_s) + PER_SECOND_OVER * over_s.sum(), not len(over_s)

    def begin(self) -> Ints:
        """Return in each second what the deadline leaves, as the old clairvoyant policy did."""
        size = self.part.last - self.part.first
        seconds = self.part.evaluate(np.full(size, OFFSET_NS))
        for _ in range(4):
            left_s = self.limit_s - (self.part.fixed_s + seconds.sink_s)
            left_s = np.minimum(left_s, np.append(left_s[1:], left_s[-1]))  # the next one's, too
            holds_ns = on_grid(left_s * NS_PER_SECOND)
            seconds = self.part.evaluate(holds_ns)
        return holds_ns


def on_grid(holds_ns: npt.NDArray[np.floating]) -> Ints:
    """Return the longest holds that may be searched and are no longer than these."""
    steps = np.floor((holds_ns - OFFSET_NS) / GRID_NS).astype(np.int64)
    return np.clip(steps * GRID_NS + OFFSET_NS, OFFSET_NS, MOST_NS)


def mended(
    task: Task, holds_ns: Ints, may_be_over: int, *, evaluations: int, rng: np.random.Generator
) -> Found:
    """Return the best that so many steps of local search find from there.

    In the first half what is worse may stay, the less the later it is, so that the search leaves
    the nearest hollow; in the second only what is no worse, from the best so far.
    """
    cost, is_kept = task.cost(holds_ns, may_be_over)
    best, warm = Found(holds_ns, cost if is_kept else float("inf")), True
    for step in range(evaluations):
        share = 2 * step / evaluations
        if share >= 1 and warm and best.cost < float("inf"):
            holds_ns, cost = best.holds_ns, best.cost
        warm = share < 1
        new_ns = moved(holds_ns, task.places, rng)
        new_cost, is_kept = task.cost(new_ns, may_be_over)
        if new_cost > cost:
            worse = (new_cost - cost) / WARM_ROWS ** (1 - share) if warm else float("inf")
            if rng.random() >= math.exp(-worse):
                continue
        holds_ns, cost = new_ns, new_cost
        if is_kept and cost < best.cost:
            best = Found(holds_ns, cost)
    return best if best.cost < float("inf") else Found(holds_ns, float("inf"))


def polished(
    task: Task, found: Found, may_be_over: int, *, evaluations: int, rng: np.random.Generator
) -> Found:
    """Return the best that so many steps find which never make a plan worse, nor break the rule."""
    for _ in range(evaluations):
        new_ns = moved(found.holds_ns, task.places, rng)
        cost, is_kept = task.cost(new_ns, may_be_over)
        if is_kept and cost <= found.cost:
            found = Found(new_ns, cost)
    return found


def moved(holds_ns: Ints, places: Ints, rng: np.random.Generator) -> Ints:
    """Return holds of which one or two stretches, each about one of `places`, are shifted."""
    new_ns = holds_ns.copy()
    for _ in range(int(rng.integers(1, 3))):
        at = int(rng.choice(places))
        length = int(rng.integers(1, 4)) if rng.random() < 0.5 else 1
        step = int(rng.choice(STEPS)) * (1 if rng.random() < 0.5 else -1)
        new_ns[at : at + length] += step * GRID_NS
    return np.clip(new_ns, OFFSET_NS, MOST_NS)


def tasks_of(gate: OneGate, *, first_second: int, kept_back_s: float = KEPT_BACK_S) -> list[Task]:
    """Return the parts in which waiting till rows are ready breaks the deadline."""
    whole = gate.part(0, gate.seconds)
    none = whole.evaluate(np.full(gate.seconds, MOST_NS))
    least = whole.evaluate(np.full(gate.seconds, OFFSET_NS))
    deadline_s = gate.deadline_ns / NS_PER_SECOND
    judged = np.arange(gate.seconds) >= first_second
    is_over = (none.latency_s > deadline_s - RESERVE_S) & judged
    sink_s = np.maximum(none.sink_s, least.sink_s)
    is_idle = np.maximum(sink_s, np.append(0.0, sink_s[:-1])) < CALM_S
    is_border = is_idle & (gate.still_waits_s < CALM_S)
    borders = np.unique([0, *np.flatnonzero(is_border), gate.seconds])
    tasks = []
    for first, last in _stretches(borders, is_over):
        part = gate.part(first, last)
        tasks.append(
            Task(part, deadline_s=deadline_s, first_second=first_second, kept_back_s=kept_back_s)
        )
    return tasks


def _stretches(borders: Ints, is_over: Bools) -> list[tuple[int, int]]:
    found = []
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if is_over[first:last].any():
            found.append((first, last))
    return found


def shared_out(found: Sequence[Sequence[Found]], most: int) -> list[Found]:
    """Return one plan for each part, at least cost, with at most so many seconds over in all.

    Args:
        found: for each part, its best plan with 0, 1, … seconds over.
        most: how many there may be.
    """
    ways: dict[int, tuple[float, list[Found]]] = {0: (0.0, [])}
    for plans in found:
        wider: dict[int, tuple[float, list[Found]]] = {}
        for used, (cost, chosen) in ways.items():
            for over, plan in enumerate(plans):
                total, sum_over = cost + plan.cost, used + over
                if sum_over <= most and total < wider.get(sum_over, (np.inf, []))[0]:
                    wider[sum_over] = (total, [*chosen, plan])
        ways = wider
    if not ways:
        return [plans[-1] for plans in found]  # none keeps the deadline: the run will show it
    return min(ways.values(), key=lambda way: way[0])[1]


def may_be_over(gate: OneGate, *, first_second: int) -> int:
    """Return how many seconds may be over the deadline: as every policy is judged."""
    judged = gate.seconds - first_second
    return int(OVER_AT_MOST * judged + 1e-9)


def searched(
    gate: OneGate, *, first_second: int, evaluations: int, seed: int
) -> tuple[Ints, float]:
    """Return holds by second, shape (seconds,), and the slack-ready rows that they cost.

    Args:
        gate: whose.
        first_second: from which on the run is judged.
        evaluations: for each second whose hold matters, and number of seconds over.
        seed: of the moves.
    """
    most = may_be_over(gate, first_second=first_second)
    holds_ns = np.full(gate.seconds, MOST_NS)
    found, tasks = [], tasks_of(gate, first_second=first_second)
    for number, task in enumerate(tasks):
        rng = np.random.default_rng((seed, number))
        plans = [Found(task.begin(), float("inf"))]
        for over in range(most + 1):
            start = plans[-1].holds_ns
            steps = evaluations * len(task.places)
            plans.append(mended(task, start, over, evaluations=steps, rng=rng))
        found.append(plans[1:])
    chosen = shared_out(found, most)
    for task, plan in zip(tasks, chosen, strict=True):
        holds_ns[task.part.first : task.part.last] = plan.holds_ns
    return holds_ns, sum(plan.cost for plan in chosen)
