"""The search for the floor: a dynamic program over seconds finds plans, local search polishes them.

```
each wave   program, coarse and wide ─┐
            program, finer cells ─────┴─▶ program around the best ─▶ exact evaluator ─▶ polish
```

No one grain is best: wide steps find other hollows than fine cells do. Each number of seconds over
keeps its best plan, by the evaluator, and these are shared out between the waves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.sltuner.deadline import Ints
from benchmarks.sltuner.floor.hold_program import NEAR, Grain, HoldProgram
from benchmarks.sltuner.floor.local_search import (
    KEPT_BACK_S,
    MOST_NS,
    Found,
    Task,
    may_be_over,
    mended,
    polished,
    shared_out,
    tasks_of,
)
from benchmarks.sltuner.floor.one_gate import OneGate

AGAIN = 6
"""At most so many times the program looks around its best plans."""


@dataclass(frozen=True)
class Effort:
    """How thorough a search is.

    Attributes:
        grains: of the program over all holds.
        around: of the program around the best plans.
        evaluations: of the polish, for each second whose hold matters and number of seconds over.
    """

    grains: tuple[Grain, ...]
    around: Grain
    evaluations: int


ALL_NEAR = tuple(NEAR.tolist())
BY_ROWS = 1_000
"""One region is all: what has the fewest rows stays."""
QUICK = Effort((Grain(600, 10, 0.02, 0.05),), Grain(300, 2, 0.01, 0.02), 4)
FULL = Effort(
    (
        Grain(3_000, 10, 0.02, 0.05),
        Grain(2_000, 10, 0.02, 0.05, region=5, near=ALL_NEAR),
        Grain(1_500, 10, 0.02, 0.05, region=BY_ROWS, near=ALL_NEAR),
        Grain(2_500, 2, 0.005, 0.01, region=20, near=ALL_NEAR),
    ),
    Grain(1_500, 2, 0.005, 0.01),
    15,
)


def floor_plan(
    gate: OneGate,
    *,
    first_second: int,
    effort: Effort,
    seed: int,
    kept_back_s: float = KEPT_BACK_S,
) -> tuple[Ints, float]:
    """Return holds by second, shape (seconds,), and the slack-ready rows that they cost.

    Args:
        gate: whose.
        first_second: from which on the run is judged.
        effort: how thorough.
        seed: of the polish.
        kept_back_s: of the deadline.
    """
    most = may_be_over(gate, first_second=first_second)
    tasks = tasks_of(gate, first_second=first_second, kept_back_s=kept_back_s)
    found = []
    for number, task in enumerate(tasks):
        rng = np.random.default_rng((seed, number))
        found.append(best_of(gate, task, most, effort=effort, rng=rng))
    chosen = shared_out(found, most)
    holds_ns = np.full(gate.seconds, MOST_NS)
    for task, plan in zip(tasks, chosen, strict=True):
        holds_ns[task.part.first : task.part.last] = plan.holds_ns
    return holds_ns, sum(plan.cost for plan in chosen)


def best_of(
    gate: OneGate, task: Task, most: int, *, effort: Effort, rng: np.random.Generator
) -> list[Found]:
    """Return the best plan of a part with at most 0, 1, … `most` seconds over."""
    program = HoldProgram(gate, task, may_be_over=most)
    best: dict[int, Found] = {}
    for grain in effort.grains:
        plans = program.plans(grain, below=_costs(best))
        best = _better(task, best, [plan.holds_ns for plan in plans], most)
    for _ in range(AGAIN):
        before = _costs(best)
        around = [plan.holds_ns for plan in best.values()]
        if around:
            plans = program.plans(effort.around, around=around, below=before)
            best = _better(task, best, [plan.holds_ns for plan in plans], most)
        if before == _costs(best):
            break
    steps = effort.evaluations * len(task.places)
    found: list[Found] = []
    for over in range(most + 1):
        if over in best:
            found.append(polished(task, best[over], over, evaluations=steps, rng=rng))
        else:  # the program found none that the evaluator, too, says keeps the rule
            found.append(mended(task, task.begin(), over, evaluations=steps, rng=rng))
    return found


def _costs(best: dict[int, Found]) -> dict[int, float]:
    return {over: plan.cost for over, plan in best.items()}


def _better(task: Task, best: dict[int, Found], plans: list[Ints], most: int) -> dict[int, Found]:
    """Return the best plan for each number of seconds over, with these among them."""
    best = dict(best)
    for holds_ns in plans:
        seconds = task.part.evaluate(holds_ns)
        for over in range(most + 1):
            cost, is_kept = task.cost_of(seconds, over)
            if is_kept and (over not in best or cost < best[over].cost):
                best[over] = Found(holds_ns, cost)
    return best
