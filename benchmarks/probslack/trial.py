"""A policy over a stream, in simulation: the share of windows that missed something, the slack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.frame import Options
from benchmarks.probslack.streams import MS, Stream
from runtime.closing import Closing, WindowEnds
from runtime.closing.oracle import oracle
from runtime.closing.probslack import ProbSlack
from runtime.closing.simple import ByTime, EventDriven

FREQUENCIES_MS = (5, 10, 15, 20, 25, 30, 35, 40)
LENGTH_MS = 10_000
"""l: the paper has none for its simulations; that of its prototype (§4.4)."""
SEEDS, QUICK_SEEDS = 50, 2
T = 10_000
_AT_ONCE = 4_096  # rows: so often the share is looked at


@dataclass(frozen=True)
class Outcome:
    """What a policy came to over one stream.

    Attributes:
        mer: the share of windows that missed something, Eq. 1.
        slack_ms: the mean slack, Eq. 2 by window.
        worst_mer: the largest share at any time since the hundredth window.
        windows: how many.
        most_slack_ms: the longest.
    """

    mer: float
    slack_ms: float
    worst_mer: float
    windows: int
    most_slack_ms: float


def seeds_of(options: Options) -> range:
    """Return the seeds of a run, 50 as in the paper."""
    return range(options.seed, options.seed + (QUICK_SEEDS if options.quick else SEEDS))


def windows_of(frequency_ms: float, length_ms: float = LENGTH_MS) -> WindowEnds:
    """Return the windows of a query ⟨f, l⟩."""
    return WindowEnds(round(length_ms * MS), round(frequency_ms * MS))


def policies(miss: float) -> dict[str, Closing]:
    """Return the policies of §4.1 but the oracle; and ours with all that we add to the paper's."""
    return {
        "event-driven": EventDriven(),
        "ignore": ByTime(0),
        "mean delay": ByTime(),
        "ProbSlack": paper(miss),
        "extended": extended(miss),
    }


def paper(miss: float) -> ProbSlack:
    """Return ProbSlack as in the paper: T = 10⁴, jumping, ε 1; nothing before the first T."""
    return ProbSlack(miss, fit_rows=T, first_rows=T)


def extended(miss: float) -> ProbSlack:
    """Return ProbSlack with a sliding fit that begins early, and ε fitted to the budget."""
    return ProbSlack(miss, fit_rows=T, sliding=True, scale=None)


def tried(policy: Closing, stream: Stream, windows: WindowEnds) -> Outcome:
    """Return what a policy comes to."""
    run = policy.begin(windows)
    shares, slacks = [], []
    for begin in range(0, len(stream.types), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        run.observe(stream.types[part], stream.event_time_ns[part], stream.arrival_ns[part])
        counts = run.counts()
        if counts.windows >= 100:
            shares.append(counts.missed_share)
        closed = run.closings()
        if len(closed.end_ns):
            slacks.append(int((closed.closed_at_ns - closed.end_ns).max()))
    counts = run.counts()
    return Outcome(
        counts.missed_share,
        counts.mean_slack_ns / MS,
        max(shares, default=counts.missed_share),
        counts.windows,
        max(slacks, default=0) / MS,
    )


def oracle_of(stream: Stream, windows: WindowEnds, miss: float, tick_ns: int = MS) -> Outcome:
    """Return what the oracle comes to."""
    found = oracle(windows, stream.event_time_ns, stream.arrival_ns, miss=miss, tick_ns=tick_ns)
    slack_ns = found.closed_at_ns - found.end_ns
    mer = float(found.missed.mean())
    return Outcome(mer, float(slack_ns.mean()) / MS, mer, len(slack_ns), float(slack_ns.max()) / MS)


def all_tried(stream: Stream, windows: WindowEnds, miss: float) -> dict[str, Outcome]:
    """Return what each policy comes to, the oracle among them."""
    found = {name: tried(policy, stream, windows) for name, policy in policies(miss).items()}
    return {**found, "oracle": oracle_of(stream, windows, miss)}


@dataclass(frozen=True)
class Range:
    """What several runs came to: mean, least, most."""

    mean: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ({self.least:.1f}–{self.most:.1f})"

    def to_json(self) -> dict[str, float]:
        """Return it as plain JSON values."""
        return {"mean": self.mean, "min": self.least, "max": self.most}


def range_of(values: Iterable[float]) -> Range:
    """Return mean, least and most of at least one value."""
    all_of = np.array(list(values))
    return Range(float(all_of.mean()), float(all_of.min()), float(all_of.max()))


def gain_ms(found: Mapping[str, Outcome], policy: str) -> float:
    """Return by how much the slack of a policy is below event-driven's."""
    return found["event-driven"].slack_ms - found[policy].slack_ms
