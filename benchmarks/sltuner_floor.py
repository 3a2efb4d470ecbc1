"""Whether the floor of `sltuner-zipf` is one: attacked by another search, bounded from below.

For each of three seeds: the slack-ready rows of the clairvoyant plan, as the search over the
evaluator finds them; what annealing from random starts finds with as many evaluations; and how many
rows no schedule can do without. The gap between plan and bound is what the two leave open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import sltuner_zipf
from benchmarks.annealing import attacked
from benchmarks.bound import bound
from benchmarks.clairvoyant import EVALUATIONS
from benchmarks.deadline import OVER_AT_MOST
from benchmarks.frame import Claim, Options, Result
from benchmarks.local_search import searched
from benchmarks.one_gate import OneGate

SEEDS, SECONDS, ROUNDS = 3, 400, 4
QUICK_SEEDS, QUICK_SECONDS, QUICK_ROUNDS = 1, 110, 1
BEATEN_BY = 0.01


@dataclass(frozen=True)
class Floor:
    """What was found of one seed: slack-ready rows.

    Attributes:
        plan: of the clairvoyant policy.
        over: its share of the seconds over the deadline.
        attack: of the best plan of the other search.
        bound: no schedule has fewer that is judged as all are.
        never: nor than this, if no second may be over.
    """

    plan: int
    over: float
    attack: float
    bound: int
    never: int


def run(options: Options) -> Result:
    """Find, attack and bound the floor of each seed."""
    seeds, seconds = (QUICK_SEEDS, QUICK_SECONDS) if options.quick else (SEEDS, SECONDS)
    evaluations = EVALUATIONS * (QUICK_ROUNDS if options.quick else ROUNDS)
    result = Result(
        f"{seconds} s of sltuner-zipf, {seeds} seeds, {evaluations} evaluations for each second "
        "whose hold matters and number of seconds over, for the search and for the attack alike",
        ["seed", "clairvoyant", "over", "annealing", "bound", "bound, never over", "gap"],
    )
    for seed in range(options.seed, options.seed + seeds):
        one = floor_of(seed, seconds=seconds, evaluations=evaluations)
        gap = f"{one.plan / max(one.bound, 1) - 1:.0%}"
        attack = f"{one.attack:,.0f}" if np.isfinite(one.attack) else "none kept"
        result.rows.append(
            [seed, f"{one.plan:,}", f"{one.over:.1%}", attack, one.bound, one.never, gap]
        )
        result.figures[f"seed {seed}"] = {
            "clairvoyant": one.plan,
            "over": one.over,
            "annealing": one.attack if np.isfinite(one.attack) else -1.0,
            "bound": one.bound,
            "bound_never_over": one.never,
        }
        result.claims += [
            Claim(f"seed {seed}: share of seconds over", one.over, "<=", OVER_AT_MOST),
            Claim(
                f"seed {seed}: slack-ready rows / those that annealing finds",
                one.plan / max(one.attack, 1),
                "<=",
                1 + BEATEN_BY,
            ),
            Claim(
                f"seed {seed}: slack-ready rows / the bound", one.plan / max(one.bound, 1), ">=", 1
            ),
        ]
    result.notes.append(
        "the bound is of schedules in which what is ready leaves, no pair is lost, and the sink "
        "begins a slice every 0.2 s while it has work: see benchmarks/bound.py"
    )
    return result


def floor_of(seed: int, *, seconds: int, evaluations: int) -> Floor:
    """Return the floor of a seed, attacked and bounded."""
    one = sltuner_zipf.experiment(seconds)
    gate = OneGate(one, seed=seed)
    first = one.first_second
    holds_ns, _ = searched(gate, first_second=first, evaluations=evaluations, seed=seed)
    found = gate.part(0, seconds).evaluate(holds_ns)
    deadline_s = gate.deadline_ns / 1e9
    attack = attacked(gate, first_second=first, evaluations=evaluations, seed=seed)
    least, never = bound(gate, first_second=first)
    return Floor(
        int(found.slack_ready[first:].sum()),
        float(np.mean(found.latency_s[first:] > deadline_s)),
        attack,
        least,
        never,
    )
