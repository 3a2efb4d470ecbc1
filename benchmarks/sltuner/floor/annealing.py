"""The attack on the floor: simulated annealing from random starts, not from what is known.

Another start (holds drawn at random, not what the deadline leaves), other moves (one second is
drawn anew, or shifted by a normal step that shrinks as it cools), and another rule of what stays
(what is worse may, the sooner the warmer it is). It shares the evaluator, and what a plan costs.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.sltuner.floor.local_search import (
    MOST_NS,
    Found,
    Task,
    may_be_over,
    on_grid,
    shared_out,
    tasks_of,
)
from benchmarks.sltuner.floor.one_gate import OneGate
from slackwater.runtime.model import NS_PER_SECOND

HOT, COLD = 150.0, 1.0
"""Rows by which a plan may be worse: e⁻¹ of those stay."""
WIDE_S, NARROW_S = 2.0, 0.05
DRAWN_ANEW = 0.1


def annealed(task: Task, may: int, *, evaluations: int, rng: np.random.Generator) -> Found:
    """Return the best plan that annealing from a random start finds."""
    most_ns = task.limit_s * NS_PER_SECOND
    holds_ns = np.full(task.part.last - task.part.first, MOST_NS)
    holds_ns[task.places] = on_grid(rng.uniform(0, most_ns, len(task.places)))
    cost, _ = task.cost(holds_ns, may)
    best = Found(holds_ns, float("inf"))
    for step in range(evaluations):
        done = step / evaluations
        wanted_ns = holds_ns.astype(np.float64)
        at = int(rng.choice(task.places))
        if rng.random() < DRAWN_ANEW:
            wanted_ns[at] = rng.uniform(0, most_ns)
        else:
            width_s = WIDE_S * (NARROW_S / WIDE_S) ** done
            wanted_ns[at] += rng.normal(0, width_s) * NS_PER_SECOND
        new_ns = on_grid(np.clip(wanted_ns, 0, MOST_NS))
        new_cost, is_kept = task.cost(new_ns, may)
        warmth = HOT * (COLD / HOT) ** done
        if new_cost > cost and rng.random() >= math.exp((cost - new_cost) / warmth):
            continue
        holds_ns, cost = new_ns, new_cost
        if is_kept and cost < best.cost:
            best = Found(holds_ns, cost)
    return best


def attacked(gate: OneGate, *, first_second: int, evaluations: int, seed: int) -> float:
    """Return the fewest slack-ready rows that annealing finds, judged as all are.

    Args:
        gate: whose.
        first_second: from which on the run is judged.
        evaluations: for each second whose hold matters, and number of seconds over.
        seed: of all that is drawn.
    """
    most, found = may_be_over(gate, first_second=first_second), []
    for number, task in enumerate(tasks_of(gate, first_second=first_second)):
        rng = np.random.default_rng((seed, number))
        steps = evaluations * len(task.places)
        found.append([annealed(task, may, evaluations=steps, rng=rng) for may in range(most + 1)])
    return sum(plan.cost for plan in shared_out(found, most))
