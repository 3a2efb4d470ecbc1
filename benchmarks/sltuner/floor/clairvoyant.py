"""The floor of every policy: it knows the run, and is judged as all others are.

One gate behind its sources: the holds of each second that a dynamic program and the exact evaluator
(`search.py`, `one_gate.py`) find, run once in the simulator. Other flows: in each second
what the rest of the path leaves of the deadline, and several gates on a path share it in the way,
in steps of 0.1 s, that has the fewest slack-ready rows; what the rest takes depends a little on
the holds, so a few runs lead to the last one.

Judged as all others: one second in a hundred may be over, and it uses them where that saves most.
A floor that allowed itself less than the policies it is held against would be none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.sltuner.deadline import (
    LIMITS,
    OVER_AT_MOST,
    Experiment,
    Floats,
    Ints,
    MakePolicy,
    Outcome,
    run,
)
from benchmarks.sltuner.floor.arrivals import NotAloneError
from benchmarks.sltuner.floor.local_search import KEPT_BACK_S, RESERVE_S
from benchmarks.sltuner.floor.one_gate import OneGate
from benchmarks.sltuner.floor.planned_slack import PlannedSlack
from benchmarks.sltuner.floor.search import FULL, QUICK, Effort, floor_plan
from slackwater.runtime.control import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.tune import Paths, SlackPolicy
from slackwater.runtime.tune.decide.policies import StaticSlack

STEP_S = 0.1
MARGIN_NS = 2 * LIMITS.source_gap_ns
"""What a row may wait beyond its hold until the slot looks."""
Holds = dict[int, dict[Subject, int]]


@dataclass(frozen=True)
class Known:
    """What a run has shown; arrays by second.

    Attributes:
        rest_s: {step: latency + comm}, gates at 0.
        skew_s: {gate: max_ts − merge_ts at the end of the second}.
        rows: {gate: rows that would leave as slack-ready in it under no slack}.
    """

    rest_s: Mapping[Subject, Floats]
    skew_s: Mapping[Subject, Floats]
    rows: Mapping[Subject, Floats]


def clairvoyant(experiment: Experiment, *, seed: int, rounds: int) -> Outcome:
    """Return what the best policy makes of the run.

    Args:
        experiment: what is run.
        seed: of its streams.
        rounds: how thorough: above 1 the search is the full one; or how often the holds are mended
            by what the last run has shown; ≥ 1.
    """
    try:
        gate = OneGate(experiment, seed=seed)
    except NotAloneError:
        return _by_rounds(experiment, seed=seed, rounds=rounds)
    return _searched(experiment, gate, seed=seed, effort=FULL if rounds > 1 else QUICK)


def _searched(experiment: Experiment, gate: OneGate, *, seed: int, effort: Effort) -> Outcome:
    first_second = experiment.first_second
    for kept_back_s in (KEPT_BACK_S, RESERVE_S):
        holds_ns, _ = floor_plan(
            gate, first_second=first_second, effort=effort, seed=seed, kept_back_s=kept_back_s
        )
        outcome = run(experiment, planned(gate, holds_ns), seed=seed)
        if outcome.over <= OVER_AT_MOST:  # else the evaluator was off by more than was kept back
            break
    return outcome


def planned(gate: OneGate, holds_ns: Ints) -> MakePolicy:
    """Return the policy that sets these holds, shape (seconds,)."""
    return _planned(
        {second: {Subject(gate.gate): ns} for second, ns in enumerate(holds_ns.tolist())}
    )


def _by_rounds(experiment: Experiment, *, seed: int, rounds: int) -> Outcome:
    paths = Paths.of(FlowGraph.of(experiment.plan(seed)))
    size = experiment.seconds
    rows = dict.fromkeys(paths.tuned, np.zeros(size))
    if len(paths.tuned) > 1:  # else there is nothing to split
        low = run(experiment, _static(ReleaseRule.slack(0)), seed=seed)
        rows = {
            gate: _series(low.samples, gate, size, lambda one: one.slack_ready)
            for gate in paths.tuned
        }
    outcome = run(experiment, _static(READY_ONLY), seed=seed)
    skew = {gate: _series(outcome.samples, gate, size, _skew_s) for gate in paths.tuned}
    less_ns: dict[int, int] = {}  # {second: what was too much there}
    best: Outcome | None = None
    for _ in range(rounds):
        rest = {
            step: _series(outcome.samples, step, size, _took_s)
            for step in paths.inputs
            if step not in paths.tuned
        }
        holds = _holds(paths, Known(rest, skew, rows), outcome.deadline_s, less_ns)
        outcome = run(experiment, _planned(holds), seed=seed)
        is_better = best is None or _key(outcome) < _key(best)
        best = outcome if is_better else best
        for second in np.flatnonzero(outcome.latency_s > outcome.deadline_s):
            excess_ns = int((outcome.latency_s[second] - outcome.deadline_s) * NS_PER_SECOND)
            for near in (int(second) - 1, int(second)):
                less_ns[near] = less_ns.get(near, 0) + excess_ns
    assert best is not None, "there is at least one round"
    return best


def _key(outcome: Outcome) -> tuple[float, int]:
    """Return what makes a run better: it keeps the deadline, as that is judged, at least cost."""
    return max(outcome.over - OVER_AT_MOST, 0.0), outcome.slack_ready_rows


def _holds(paths: Paths, known: Known, deadline_s: float, less_ns: Mapping[int, int]) -> Holds:
    """Return {second: {gate: how long it may hold a row}}."""
    seconds = len(next(iter(known.rest_s.values())))
    margin_s = MARGIN_NS / NS_PER_SECOND
    grid = np.arange(0, deadline_s + STEP_S / 2, STEP_S)
    splits = list(product(grid, repeat=len(paths.tuned) - 1))
    holds: Holds = {}
    for second in range(seconds):
        soon = slice(second, second + 2)  # a hold that is lowered lets go in the next second
        rest = {step: float(values[soon].max()) for step, values in known.rest_s.items()}
        left_s = deadline_s - margin_s - less_ns.get(second, 0) / NS_PER_SECOND
        ways = [_way(paths, known, second, rest, left_s, split) for split in splits]
        _, _, best = min(ways, key=lambda way: way[:2])
        holds[second] = {gate: int(s * NS_PER_SECOND) for gate, s in best.items()}
    return holds


def _way(
    paths: Paths,
    known: Known,
    second: int,
    rest: Mapping[Subject, float],
    left_s: float,
    split: Sequence[float],
) -> tuple[float, float, dict[Subject, float]]:
    """Return (slack-ready rows, −seconds held, {gate: hold}): `split`, and the rest to the last.

    A gate waits no longer than its skew, whatever it may.
    """
    *first, last = paths.tuned
    hold = dict(zip(first, split, strict=True))
    skew = {gate: float(known.skew_s[gate][second : second + 2].max()) for gate in paths.tuned}
    waits = {gate: min(hold[gate], skew[gate]) for gate in first}
    hold[last] = max(left_s - paths.latency_ns({**rest, **waits}), 0.0)
    if split:
        over_s = paths.latency_ns({**rest, **waits, last: min(hold[last], skew[last])}) - left_s
        if over_s > 1e-9:
            return float("inf"), over_s, hold
    lost = sum(known.rows[g][second] for g in paths.tuned if skew[g] > hold[g])
    return float(lost), -sum(hold.values()), hold


def _series(
    samples: Sequence[StageSample], step: Subject, size: int, what: Callable[[StageSample], float]
) -> Floats:
    """Return a number of one step by second, shape (size,); 0 where it was not heard."""
    values = np.zeros(size)
    for sample in samples:
        if sample.subject == step and sample.second < size:
            values[sample.second] = what(sample)
    return values


def _skew_s(sample: StageSample) -> float:
    return sample.skew_ns / NS_PER_SECOND


def _took_s(sample: StageSample) -> float:
    return sample.took_ns / NS_PER_SECOND


def _static(rule: ReleaseRule) -> MakePolicy:
    def policy(plan: Plan) -> SlackPolicy:
        return StaticSlack(Paths.of(FlowGraph.of(plan)), rule)

    return policy


def _planned(holds: Holds) -> MakePolicy:
    def policy(plan: Plan) -> SlackPolicy:
        del plan
        return PlannedSlack(holds)

    return policy
