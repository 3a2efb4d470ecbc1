"""One flow under a deadline, every policy, one table: what the `sltuner` experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.frame import Options, Result
from benchmarks.side_by_side import side_by_side
from benchmarks.sltuner.deadline import (
    HEADER,
    Experiment,
    Outcome,
    judge,
    named,
    run,
    run_all,
)
from benchmarks.sltuner.floors import floor_of
from benchmarks.sltuner.panels import draw
from benchmarks.sltuner.rival_policies import HELD_SPLIT, LAST_SPLIT

SPLIT, NEWEST = "even split", "largest delay"
HELD = (HELD_SPLIT, "trend-following", "decaying maximum")
"""Rules that split the deadline by the clock, and expect something of the rest of the path."""
ALSO_HELD = ("slowly decaying maximum", "steady trend", "last second, by the clock")
"""The other rules that the tuner lets run along, in full runs only."""


@dataclass(frozen=True)
class Contest:
    """Policies of the contest by name, beside ours.

    Attributes:
        low: a static slack that loses order.
        high: one that must break the deadline, as must "largest delay", or the test is none; None:
            neither must.
        also: rivals of this contest alone.
        quick_also: rivals that a quick run has too.
    """

    low: str
    high: str | None = None
    also: Sequence[str] = ()
    quick_also: Sequence[str] = ()

    def rivals(self, *, is_quick: bool) -> list[str]:
        """Return the rivals, in the order of the table."""
        breaking = [NEWEST] if self.high is None else [self.high, NEWEST]
        if is_quick:
            return [SPLIT, *HELD, *self.quick_also, *breaking]
        others = [LAST_SPLIT, self.low, *breaking, "aimd", "fixed wait", *self.also]
        return [SPLIT, *HELD, *ALSO_HELD, *others]

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
        outcomes = run_all(one, seed=options.seed, rivals=rivals)
        must_break = [] if self.high is None else [self.high, NEWEST]
        breaking = [outcomes[1 + rivals.index(name)].policy for name in must_break]
        name = f"{one.name}-{what.replace(' ', '')}" if what else one.name
        judge(
            result,
            outcomes,
            floor=floor_of(name, options),
            breaking=breaking,
            what=what,
            beats_rivals=not is_quick,
        )
        result.notes.append(f"drawn: {draw(outcomes, name)}")
        return {outcome.policy: outcome for outcome in outcomes}


def sweep(result: Result, one: Experiment, slacks_s: Sequence[int], *, seed: int) -> list[Outcome]:
    """Tell what each constant slack makes of the run, whatever the deadline; return all."""
    tasks = [partial(run, one, named(f"{slack_s}s"), seed=seed) for slack_s in slacks_s]
    outcomes = side_by_side(tasks, what="runs")
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
