"""One flow under a deadline, every policy, one table: what the four `sltuner` experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.clairvoyant import clairvoyant
from benchmarks.deadline import (
    HEADER,
    Experiment,
    Outcome,
    beside_each_other,
    judge,
    named,
    run,
    run_all,
)
from benchmarks.frame import Options, Result
from benchmarks.panels import draw

SPLIT, LAST_SPLIT, NEWEST = "even split", "even split, last second", "max timestamp"
HELD_SPLIT = "even split, by the clock"
"""The rule that the tuner falls back on, alone: what it does without its models."""


@dataclass(frozen=True)
class Contest:
    """Who takes part, beside the clairvoyant policy and ours. Policies by their names of `Tuning`.

    Attributes:
        low: a static slack that loses order.
        high: one that must break the deadline, as must "max timestamp", or the test is none.
        also: rivals of this contest alone.
        quick_also: rivals that a quick run has too; it has one round of the clairvoyant search.
    """

    low: str
    high: str
    also: Sequence[str] = ()
    quick_also: Sequence[str] = ()

    def rivals(self, *, is_quick: bool) -> list[str]:
        """Return the rivals, in the order of the table."""
        if is_quick:
            return [SPLIT, HELD_SPLIT, *self.quick_also, self.high, NEWEST]
        splits = [SPLIT, HELD_SPLIT, LAST_SPLIT]
        return [*splits, self.low, self.high, NEWEST, "tcp", "k-slack", *self.also]

    def hold(
        self, result: Result, one: Experiment, options: Options, *, what: str = ""
    ) -> dict[str, Outcome]:
        """Run every policy over the same streams, judge and draw; return {policy: its outcome}.

        Args:
            result: to be filled.
            one: what is run.
            options: of the benchmark.
            what: which of several experiments in one result.
        """
        is_quick = options.quick
        rivals = self.rivals(is_quick=is_quick)
        floor, ours, *others = run_all(
            one,
            seed=options.seed,
            rivals=rivals,
            floor=partial(clairvoyant, one, seed=options.seed, rounds=1 if is_quick else 4),
        )
        breaking = [others[rivals.index(name)].policy for name in (self.high, NEWEST)]
        outcomes = [floor, ours, *others]
        judge(result, outcomes, breaking=breaking, what=what, beats_rivals=not is_quick)
        name = f"{one.name}-{what.replace(' ', '')}" if what else one.name
        result.notes.append(f"drawn: {draw(outcomes, name)}")
        return {outcome.policy: outcome for outcome in outcomes}


def sweep(result: Result, one: Experiment, slacks_s: Sequence[int], *, seed: int) -> list[Outcome]:
    """Tell what each constant slack makes of the run, whatever the deadline; return all."""
    tasks = [partial(run, one, named(f"{slack_s}s"), seed=seed) for slack_s in slacks_s]
    outcomes = beside_each_other(tasks)
    for slack_s, outcome in zip(slacks_s, outcomes, strict=True):
        result.figures[f"slack {slack_s} s"] = outcome.figures()
        result.notes.append(
            f"slack {slack_s} s throughout: largest latency {outcome.most_s:.1f} s, over in "
            f"{outcome.over:.1%}, {outcome.slack_ready_rows:,} slack-ready, {outcome.late:,} late"
        )
    return outcomes


def opened(one: Experiment) -> Result:
    """Return the result of an experiment, still empty."""
    return Result(
        f"{one.seconds} s of virtual time, {one.first_second} s to warm up; simulated, one stream "
        "seed",
        HEADER,
    )
