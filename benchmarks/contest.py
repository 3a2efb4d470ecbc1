"""One flow under a deadline, every policy, one table: what the four `sltuner` experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.clairvoyant import clairvoyant
from benchmarks.deadline import HEADER, Experiment, Outcome, judge, run_all
from benchmarks.frame import Options, Result
from benchmarks.panels import draw


@dataclass(frozen=True)
class Contest:
    """Who takes part.

    Attributes:
        rivals: policies by their names, as in `Tuning.policy`.
        quick_rivals: those of a quick run, which has one round of the clairvoyant search.
        breaking: what must break the deadline, or the test is none; as the policies call
            themselves.
    """

    rivals: Sequence[str]
    quick_rivals: Sequence[str]
    breaking: Sequence[str]

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
        outcomes = run_all(
            one,
            seed=options.seed,
            rivals=self.quick_rivals if is_quick else self.rivals,
            floor=partial(clairvoyant, one, seed=options.seed, rounds=1 if is_quick else 4),
        )
        judge(result, outcomes, breaking=self.breaking, what=what, beats_rivals=not is_quick)
        name = f"{one.name}-{what.replace(' ', '')}" if what else one.name
        result.notes.append(f"drawn: {draw(outcomes, name)}")
        return {outcome.policy: outcome for outcome in outcomes}


def opened(one: Experiment) -> Result:
    """Return the result of an experiment, still empty."""
    return Result(
        f"{one.seconds} s of virtual time, {one.first_second} s to warm up; simulated, one stream "
        "seed",
        HEADER,
    )
