"""Whether the floor of `sltuner-zipf` is one: attacked by other searches, bounded from below.

For each of three seeds: the slack-ready rows of the clairvoyant plan, as a dynamic program and its
polish find them (`floor/search.py`); what two searches of another kind find, annealing from random
starts and local search from what the deadline leaves, over the same exact evaluator; and how many
rows no schedule can do without. The gap between plan and bound is what they leave open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.frame import Claim, Options, Result
from benchmarks.sltuner import zipf
from benchmarks.sltuner.deadline import OVER_AT_MOST
from benchmarks.sltuner.floor.annealing import attacked
from benchmarks.sltuner.floor.bound import bound
from benchmarks.sltuner.floor.local_search import searched
from benchmarks.sltuner.floor.one_gate import OneGate
from benchmarks.sltuner.floor.search import FULL, QUICK, Effort, floor_plan

SEEDS, SECONDS, EVALUATIONS = 3, 400, 20
QUICK_SEEDS, QUICK_SECONDS, QUICK_EVALUATIONS = 1, 110, 10
BEATEN_BY = 0.01
ATTACKS = ("annealing", "local search")


@dataclass(frozen=True)
class Floor:
    """What was found of one seed: slack-ready rows.

    Attributes:
        plan: of the clairvoyant policy.
        over: its share of the seconds over the deadline.
        annealing, local: of the best plans of the other searches; inf if none keeps the deadline.
        bound: no schedule has fewer that is judged as all are.
        never: nor than this, if no second may be over.
    """

    plan: int
    over: float
    annealing: float
    local: float
    bound: int
    never: int


def run(options: Options) -> Result:
    """Find, attack and bound the floor of each seed."""
    seeds, seconds = (QUICK_SEEDS, QUICK_SECONDS) if options.quick else (SEEDS, SECONDS)
    effort, evaluations = (QUICK, QUICK_EVALUATIONS) if options.quick else (FULL, EVALUATIONS)
    result = Result(
        f"{seconds} s of sltuner-zipf, {seeds} seeds, {evaluations} evaluations for each second "
        "whose hold matters and number of seconds over, for each of the two attacks",
        ["seed", "clairvoyant", "over", *ATTACKS, "bound", "bound, never over", "gap"],
    )
    for seed in range(options.seed, options.seed + seeds):
        one = floor_of(seed, seconds=seconds, effort=effort, evaluations=evaluations)
        gap = f"{one.plan / max(one.bound, 1) - 1:.0%}"
        attacks = dict(zip(ATTACKS, (one.annealing, one.local), strict=True))
        shown = [f"{n:,.0f}" if np.isfinite(n) else "none kept" for n in attacks.values()]
        result.rows.append(
            [seed, f"{one.plan:,}", f"{one.over:.1%}", *shown, one.bound, one.never, gap]
        )
        result.figures[f"seed {seed}"] = {
            "clairvoyant": one.plan,
            "over": one.over,
            **{name: n if np.isfinite(n) else -1.0 for name, n in attacks.items()},
            "bound": one.bound,
            "bound_never_over": one.never,
        }
        result.claims += [
            Claim(f"seed {seed}: share of seconds over", one.over, "<=", OVER_AT_MOST),
            *(
                Claim(
                    f"seed {seed}: slack-ready rows / those that {name} finds",
                    one.plan / max(n, 1),
                    "<=",
                    1 + BEATEN_BY,
                )
                for name, n in attacks.items()
            ),
            Claim(
                f"seed {seed}: slack-ready rows / the bound", one.plan / max(one.bound, 1), ">=", 1
            ),
        ]
    result.notes.append(
        "the bound is of schedules in which what is ready leaves, no pair is lost, and the sink "
        "begins a slice every 0.2 s while it has work: see benchmarks/sltuner/floor/bound.py"
    )
    return result


def floor_of(seed: int, *, seconds: int, effort: Effort, evaluations: int) -> Floor:
    """Return the floor of a seed, attacked and bounded."""
    one = zipf.experiment(seconds)
    gate = OneGate(one, seed=seed)
    first = one.first_second
    holds_ns, _ = floor_plan(gate, first_second=first, effort=effort, seed=seed)
    found = gate.part(0, seconds).evaluate(holds_ns)
    deadline_s = gate.deadline_ns / 1e9
    _, local = searched(gate, first_second=first, evaluations=evaluations, seed=seed)
    least, never = bound(gate, first_second=first)
    return Floor(
        int(found.slack_ready[first:].sum()),
        float(np.mean(found.latency_s[first:] > deadline_s)),
        attacked(gate, first_second=first, evaluations=evaluations, seed=seed),
        local,
        least,
        never,
    )
