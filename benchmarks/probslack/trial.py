"""A policy over a stream, in simulation: the share of windows that missed something, the slack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.frame import Options
from benchmarks.probslack.oracle import oracle
from benchmarks.probslack.streams import MS, Stream
from slackwater.runtime.closing.policy import Closing, FloatArray
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.settings import FIRST_ROWS
from slackwater.runtime.closing.simple import ByTime, EventDriven
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array

FREQUENCIES_MS = (5, 10, 15, 20, 25, 30, 35, 40)
LENGTH_MS = 10_000
"""l: the paper has none for its simulations; that of its prototype (§4.4)."""
SEEDS, QUICK_SEEDS = 50, 2
T = 10_000
FEW_WINDOWS = 100
"""A share of fewer says nothing: one of them is more than the budget."""
_AT_ONCE = 2_048  # rows: so often the share is looked at


@dataclass(frozen=True, eq=False)
class Course:
    """How far a policy had come after each few rows. All of shape (looks,), sums so far.

    Attributes:
        at_ns: the arrival of the last row by then.
        windows, missed: how many had closed; were known to have missed something.
        slack_ns: the sum of their slack.
    """

    at_ns: Int64Array
    windows: Int64Array
    missed: Int64Array
    slack_ns: Int64Array

    def shares(self) -> FloatArray:
        """Return the share of windows that had missed something by each look; of few, the last."""
        enough = self.windows >= min(FEW_WINDOWS, self.windows[-1])
        shares: FloatArray = self.missed[enough] / np.maximum(self.windows[enough], 1)
        return shares


@dataclass(frozen=True)
class Outcome:
    """What a policy came to over one stream.

    Attributes:
        mer: the share of windows that missed something, Eq. 1.
        slack_ms: the mean slack, Eq. 2 by window.
        worst_mer: the largest share at any time since the hundredth window.
        windows: how many.
    """

    mer: float
    slack_ms: float
    worst_mer: float
    windows: int


def seeds_of(options: Options, *, most: int = SEEDS) -> range:
    """Return the seeds of a run, 50 as in the paper unless that is too many."""
    return options.seeds(most, QUICK_SEEDS)


def windows_of(frequency_ms: float, length_ms: float = LENGTH_MS) -> WindowEnds:
    """Return the windows of a query ⟨f, l⟩."""
    return WindowEnds(round(length_ms * MS), round(frequency_ms * MS))


def simple_policies() -> dict[str, Closing]:
    """Return the policies of §4.1 that nothing is promised by."""
    return {"event-driven": EventDriven(), "ignore": ByTime(0), "mean delay": ByTime()}


def paper(miss: float) -> ProbSlack:
    """Return ProbSlack as in the paper: T = 10⁴, jumping, ε 1; P_miss as it is printed."""
    return ProbSlack(miss, fit_rows=T, first_rows=T, conditional=False)


def conditioned(miss: float) -> ProbSlack:
    """Return the same, but with the chance given that nothing has come."""
    return replace(paper(miss), conditional=True)


def extensions(miss: float) -> dict[str, Closing]:
    """Return the paper's with each of what we add to its estimates alone, and with all of it."""
    as_printed = paper(miss)
    return {
        "+ early fit": replace(as_printed, first_rows=FIRST_ROWS),
        "+ sliding fit": replace(as_printed, sliding=True),
        "+ fitted ε": replace(as_printed, scale=None),
        "extended": extended(miss),
    }


def extended(miss: float) -> ProbSlack:
    """Return ProbSlack with a sliding fit that begins early, and ε fitted to the budget."""
    return replace(paper(miss), first_rows=FIRST_ROWS, sliding=True, scale=None)


def followed(
    policy: Closing, stream: Stream, windows: WindowEnds, *, at_once: int = _AT_ONCE
) -> Course:
    """Return how a policy goes, looked at after each so many rows."""
    run = policy.begin(windows)
    looks = []
    for begin in range(0, len(stream.types), at_once):
        part = slice(begin, begin + at_once)
        run.observe(stream.types[part], stream.event_time_ns[part], stream.arrival_ns[part])
        counts = run.counts()
        looks.append(
            (int(stream.arrival_ns[part][-1]), counts.windows, counts.missed, counts.slack_ns)
        )
    at_ns, closed, missed, slack_ns = np.array(looks, dtype=np.int64).T
    return Course(at_ns, closed, missed, slack_ns)


def outcome_of(course: Course) -> Outcome:
    """Return what it came to."""
    windows = max(int(course.windows[-1]), 1)
    return Outcome(
        int(course.missed[-1]) / windows,
        int(course.slack_ns[-1]) / windows / MS,
        float(course.shares().max()),
        int(course.windows[-1]),
    )


def tried(policy: Closing, stream: Stream, windows: WindowEnds) -> Outcome:
    """Return what a policy comes to."""
    return outcome_of(followed(policy, stream, windows))


def oracle_of(stream: Stream, windows: WindowEnds, miss: float, tick_ns: int = MS) -> Outcome:
    """Return what the oracle comes to."""
    found = oracle(windows, stream.event_time_ns, stream.arrival_ns, miss=miss, tick_ns=tick_ns)
    slack_ns = found.closed_at_ns - found.end_ns
    mer = float(found.missed.mean())
    return Outcome(mer, float(slack_ns.mean()) / MS, mer, len(slack_ns))


def all_tried(
    policies: Mapping[str, Closing],
    stream: Stream,
    windows: WindowEnds,
    miss: float,
    *,
    tick_ns: int = MS,
) -> dict[str, Outcome]:
    """Return what each policy comes to, and last the oracle."""
    found = {name: tried(policy, stream, windows) for name, policy in policies.items()}
    return {**found, "oracle": oracle_of(stream, windows, miss, tick_ns)}


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
