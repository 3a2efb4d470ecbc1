"""One flow under a deadline, every policy, one table: what the `sltuner` experiments share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side
from benchmarks.sltuner.deadline import (
    HEADER,
    OURS,
    Experiment,
    Floats,
    Outcome,
    judge,
    named,
    run,
    run_all,
)
from benchmarks.sltuner.floors import floor_of
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


def draw(outcomes: Sequence[Outcome], name: str) -> Path:
    """Draw the four panels of [ssg] Fig. 12 and 13; return the path of the picture."""
    first = outcomes[0]
    title = f"{name}: deadline {first.deadline_s:g} s"
    picture = Picture(title, (11.0, 7.5), rows=2, columns=2, sharex=True)
    series: list[tuple[str, Callable[[Outcome], Floats]]] = [
        ("latency (Eq. 2), s", lambda one: one.latency_s),
        ("slack, s (sum over the gates)", _slack),
        ("slack-ready rows a second", lambda one: one.slack_ready),
        ("detected events a second", lambda one: one.detected),
    ]
    colours = cycle(mpl.colormaps["tab20"].colors)  # type: ignore[attr-defined]
    for one in sorted(outcomes, key=lambda one: one.policy == OURS):
        look = {"color": next(colours), "linewidth": 0.8, "alpha": 0.6}
        if one.policy == OURS:
            look = {"color": "red", "linewidth": 1.3}
        for panel, (_, values) in zip(picture.panels, series, strict=True):
            drawn = values(one)
            known = np.flatnonzero(~np.isnan(drawn))  # nothing left in the other seconds
            panel.plot(known, drawn[known], label=one.policy, **look)
    for panel, (of_panel, _) in zip(picture.panels, series, strict=True):
        panel.set_title(of_panel)
        panel.axvline(first.first_second, color="grey", linewidth=0.8, linestyle=":")
    latency, slack, *below = picture.panels
    latency.axhline(first.deadline_s, color="black", linewidth=0.8, linestyle="--")
    latency.set_ylim(0, 1.6 * first.deadline_s)
    slack.set_ylim(0, 2.2 * first.deadline_s)
    for panel in below:
        panel.set_xlabel("second of the run (simulated)")
    return picture.save(name, legend="first", columns=2)


def _slack(one: Outcome) -> Floats:
    total: Floats = np.sum(list(one.slack_s.values()), axis=0)
    return total
