"""`mace-*` on local Ray nodes whose operators take a set time without using a core.

All of Fig. 4 to 8 in one benchmark: Ray starts once, and a run on one node serves two of them. Time
goes eight times as fast as in the paper: periods of 1.2 and 3.6 s, 9,000 events, w = 0.12 s.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.mace.judge import ESTIMATES, HEADER, Judged, claims, of, span_of, tell
from benchmarks.mace.on_ray.judge import (
    EXACT,
    FIRST,
    SPREAD,
    by_second,
    error_by_second,
    estimates_of,
    judged,
    named,
    thirds_s,
)
from benchmarks.mace.on_ray.trial import OnRay, WorkingCluster, drawn, measure
from benchmarks.mace.trial import SAMPLE
from benchmarks.picture import Picture
from slackwater.runtime.foresight import LatencyEstimate

SCALE, QUICK_SCALE = 0.12, 0.07
SEEDS = 5
THIRD = 1 / 3
SHARES = (0.02, SAMPLE, THIRD)
NODES = (4, 8, 13)
DRAWN = (named(FIRST, SAMPLE), named(SPREAD, SAMPLE))
"""Statistics of the picture."""
PAPER = "[mace] Fig. 4, 8: below 3 %; Fig. 5 to 7: within 4 %"


@dataclass(frozen=True)
class Trial:
    """What is run once for a seed.

    Attributes:
        queries, nodes: how many.
        shares: of the events, that statistics are taken from.
    """

    queries: int
    nodes: int
    shares: tuple[float, ...] = (SAMPLE,)


ONE = Trial(1, 1, SHARES)
OPERATORS = Trial(3, 1)
ON_NODES = {nodes: Trial(1, nodes) for nodes in NODES}
TRIALS = (ONE, ON_NODES[4], ON_NODES[8], OPERATORS, ON_NODES[13])
"""The more slices a second, the later: what else runs on the machine may be over by then."""


@dataclass(frozen=True, eq=False)
class Ran:
    """One run, and what had been said of it: {statistics: estimate}."""

    run: OnRay
    estimates: Mapping[str, LatencyEstimate]

    def judged(self, statistics: str) -> Judged:
        """Return the worst latency of all of it beside a prediction."""
        return judged(self.run, self.estimates[statistics], statistics)

    @property
    def least_share(self) -> float:
        """Of the core time that a slot wanted, what the worst off had; 1 if nobody counts it."""
        return min(self.run.core_shares.values(), default=1.0)

    def tell(self, what: str) -> None:
        """Say on stderr what came of it: a benchmark of half an hour is not to look hung."""
        told = [
            f"{name} {one.predicted_s['Mace']:.2f}, {one.predicted_s['held up']:.2f}"
            for name in self.estimates
            for one in [self.judged(name)]
        ]
        print(
            f"{what}: {self.run.worst_s.max():.2f} s, slots had {self.least_share:.0%} of the core "
            f"time that they wanted, or more; Mace, held up: {'; '.join(told)}",
            file=sys.stderr,
            flush=True,
        )


def run(options: Options) -> Result:
    """Predict and measure each seed."""
    seeds = options.seeds(SEEDS, 1)
    scale = QUICK_SCALE if options.quick else SCALE
    trials = TRIALS[1:2] if options.quick else TRIALS
    result = Result(
        f"{75_000 * scale:,.0f} events in some {290 * scale:.0f} s, one pattern for all queries, "
        f"{len(seeds)} seeds, w {scale:g} s; local Ray nodes, operators asleep",
        ["what", "measured", "statistics", "estimate", "seeds", *HEADER],
    )
    found: dict[Trial, list[Ran]] = {trial: [] for trial in trials}
    with WorkingCluster.of(max(trial.nodes for trial in trials)) as cluster:
        for trial in trials:
            for seed in seeds:
                found[trial].append(one_run(cluster, trial, seed, scale=scale))
    _tell_all(result, found, width_s=scale)
    nodes = {n: found[trial] for n, trial in ON_NODES.items() if trial in found}
    result.notes += [PAPER, f"drawn: {draw(nodes)}"]
    return result


def one_run(cluster: WorkingCluster, trial: Trial, seed: int, *, scale: float) -> Ran:
    """Draw one seed, predict it, run it; say on stderr what came of it."""
    queries = drawn(seed, queries=trial.queries, nodes=trial.nodes, scale=scale)
    estimates = estimates_of(queries, trial.shares, width_s=scale, seed=seed)
    ran = Ran(measure(cluster, queries).until(queries.duration_s), estimates)
    ran.tell(f"seed {seed}, {trial.queries} queries on {trial.nodes} nodes")
    return ran


def _tell_all(result: Result, found: Mapping[Trial, list[Ran]], *, width_s: float) -> None:
    if ONE in found:
        _tell_one(result, found[ONE], width_s)
    for trial, each in found.items():
        if trial is not ONE:
            what, median = f"nodes, {trial.nodes}", 0.03
            if trial is OPERATORS:
                what, median = "operators, 42", 0.04
            for name in (named(FIRST, SAMPLE), named(SPREAD, SAMPLE), EXACT):
                rows = [ran.judged(name) for ran in each]
                _tell(result, what, rows, width_s, None if name == EXACT else median)
        name = named(SPREAD, SAMPLE)
        errors = [f"{error_by_second(ran.run, ran.estimates[name]):.1%}" for ran in each]
        shares = [f"{ran.least_share:.0%}" for ran in each]
        result.notes.append(
            f"{trial.queries} queries on {trial.nodes} nodes, seed by seed: median error of the "
            f"seconds with a backlog, {name}, held up: {', '.join(errors)}; the worst off slot had "
            f"of the core time that it wanted: {', '.join(shares)}"
        )


def _tell_one(result: Result, each: list[Ran], width_s: float) -> None:
    """Tell of one query on one node: by size of the sample, and third by third."""
    for how, shares in ((FIRST, SHARES), (SPREAD, SHARES[:2])):
        for share in shares:
            rows = [ran.judged(named(how, share)) for ran in each]
            _tell(result, "training, 1 node", rows, width_s, 0.03 if share >= SAMPLE else None)
    _tell(result, "training, 1 node", [ran.judged(EXACT) for ran in each], width_s)
    name = named(FIRST, THIRD)
    for chunk in (1, 2, 3):
        rows = [
            judged(ran.run, ran.estimates[name], name, between_s=thirds_s(ran.run)[chunk])
            for ran in each
        ]
        _tell(result, f"time, third {chunk}", rows, width_s, 0.04)


def _tell(
    result: Result, what: str, rows: list[Judged], width_s: float, median: float | None = None
) -> None:
    """Add rows of the table; and claim, if that is claimed, the median error of the seeds."""
    statistics = rows[0].statistics
    mine = of(rows, statistics, width_s)
    key = f"{what}, {statistics}"
    tell(result, [what, span_of(mine), statistics], mine, key=key)
    if median is not None:
        for estimate in ESTIMATES:
            result.claims += claims(key, mine, estimate, median=median)[:1]


def draw(found: Mapping[int, Sequence[Ran]]) -> Path:
    """Draw runs on so many nodes: {nodes: a run of each seed}; return the path of the picture."""
    title = "mace-ray: predicted and measured on local Ray nodes"
    picture = Picture(title, (11.0, 4.5), columns=2, width_ratios=(3, 2))
    over_time, by_nodes = picture.panels
    nodes = min(found)
    _over_time(over_time, found[nodes][0], nodes=nodes)
    for shift, statistics, colour in zip((-0.15, 0.15), DRAWN, ("C3", "C0"), strict=True):
        for count, each in found.items():
            errors = [100 * ran.judged(statistics).error("held up") for ran in each]
            at = np.full(len(errors), count + shift)
            by_nodes.plot(at, errors, ".", color=colour, alpha=0.6)
            label = statistics if count == nodes else None
            by_nodes.plot(count + shift, np.median(errors), "_", ms=16, color=colour, label=label)
    by_nodes.axhline(3, color="grey", linewidth=0.8)
    by_nodes.set_xticks(list(found))
    by_nodes.set_xlabel("nodes (14 operators); bar: median of the seeds")
    by_nodes.set_ylabel("error of the worst latency, %")
    by_nodes.set_ylim(bottom=0)
    return picture.save("mace-ray")


def _over_time(panel: Any, ran: Ran, *, nodes: int) -> None:
    run = ran.run
    panel.step(run.begins_s, run.worst_s, where="post", color="0.4", label="measured, worst of 1 s")
    for statistics, colour in zip(DRAWN, ("C3", "C0"), strict=True):
        predicted_s = by_second(run, ran.estimates[statistics])
        panel.step(run.begins_s, predicted_s, where="post", color=colour, label=statistics)
    panel.set_title(f"14 operators on {nodes} nodes, the first seed")
    panel.set(xlabel="stimulus time, s", ylabel="latency, s")
