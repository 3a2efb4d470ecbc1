"""A trial: a shedder learns from some windows, drops of others, and what that does to matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from benchmarks.espice.per_window import Match
from benchmarks.espice.streams import BoolArray, Query, Windows
from slackwater.runtime.shedding.shedder import Amount, Shedder
from slackwater.runtime.shedding.windows import FinishedWindows, Places

LATENCY_S = 1.0
F = 0.8
THROUGHPUT = 10_000.0
"""Events/s that streams are replayed with, which the operator just manages, before overload."""


@dataclass(frozen=True)
class Part:
    """A query and windows of its stream."""

    query: Query
    windows: Windows

    @cached_property
    def matches(self) -> list[Match | None]:
        """The match of each window when nothing is dropped."""
        return self.query.matches(self.windows)

    @cached_property
    def finished(self) -> FinishedWindows:
        """What a shedder learns from."""
        pairs, starts = self.windows.pairs, self.windows.starts
        found = [(at, match) for at, match in enumerate(self.matches) if match is not None]
        windows = np.array([at for at, match in found for _ in match], np.int64)
        events = np.array([event for _, match in found for event in match], np.int64)
        of_match = np.array([n for n, (_, match) in enumerate(found) for _ in match], np.int64)
        types, features = self.query.types, self.query.features
        return FinishedWindows(
            self.windows.sizes,
            Places(
                windows,
                types[events],
                events - starts[windows],
                None if features is None else features[events],
            ),
            of_match,
            np.ones(len(self.windows), np.bool_),
            Places(
                pairs.windows,
                types[pairs.events],
                pairs.positions,
                None if features is None else features[pairs.events],
            ),
        )


@dataclass(frozen=True)
class Group:
    """What is judged with one model, and what that is trained on; all of the same types."""

    training: Sequence[Part]
    judged: Sequence[Part]

    @cached_property
    def size(self) -> float:
        """N: the mean number of events of the windows trained on."""
        return float(np.concatenate([part.windows.sizes for part in self.training]).mean())

    @property
    def query(self) -> Query:
        """The query, or one of several that differ in their striker alone."""
        return self.training[0].query

    @property
    def windows(self) -> int:
        """How many windows are trained on."""
        return sum(len(part.windows) for part in self.training)


MakeShedder = Callable[[Group, int], Shedder]
"""What it is to learn from, seed -> a shedder that has learnt nothing yet."""


@dataclass
class Tally:
    """Counts of one run.

    Attributes:
        windows, matches: judged, without shedding.
        lost: matches that are not there with shedding: false negatives.
        made: matches that are there only with shedding: false positives.
        without: windows that had a match and have none at all.
        dropped, pairs: of events in windows.
    """

    windows: int = 0
    matches: int = 0
    lost: int = 0
    made: int = 0
    without: int = 0
    dropped: int = 0
    pairs: int = 0

    def add(self, other: Tally) -> None:
        """Add the counts of another."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def percent(self, count: int) -> float:
        """Return a count in % of the matches without shedding."""
        return 100 * count / self.matches if self.matches else 0.0

    @property
    def negatives(self) -> float:
        """False negatives, %."""
        return self.percent(self.lost)

    @property
    def positives(self) -> float:
        """False positives, %."""
        return self.percent(self.made)

    @property
    def empty(self) -> float:
        """Windows that lost their match and have no other, %."""
        return self.percent(self.without)

    @property
    def share(self) -> float:
        """Pairs that were dropped, %."""
        return 100 * self.dropped / self.pairs if self.pairs else 0.0


@dataclass(frozen=True)
class Surge:
    """How much too much comes in.

    Attributes:
        rate: input by throughput, above 1.
        throughput: events/s that the operator manages.
    """

    rate: float
    throughput: float = THROUGHPUT

    def amount(self, size: float) -> Amount:
        """Return what is to be dropped of windows of so many events.

        Source: [espice] §3.4: x = (R − th) · p_size / R; ρ = ceil(ws / (q_max − f · q_max)).
        """
        most_queued = LATENCY_S * self.throughput
        # Rounded first: (1 − 0.8) · 10,000 is a little below 2,000.
        buffer = round((1 - F) * most_queued, 6)
        return Amount(1 - 1 / self.rate, max(1, int(np.ceil(size / buffer))))


@dataclass
class Runs:
    """What several seeds gave."""

    tallies: list[Tally] = field(default_factory=list)

    def mean(self, name: str) -> float:
        """Return the mean of a figure over seeds."""
        return float(np.mean([getattr(one, name) for one in self.tallies]))

    def deviation(self, name: str) -> float:
        """Return its standard deviation over seeds."""
        return float(np.std([getattr(one, name) for one in self.tallies]))


def judged(group: Group, make: MakeShedder, surge: Surge, *, seed: int) -> Tally:
    """Return what a shedder does to the matches of the windows that are judged.

    Args:
        group: what to learn from, what to judge.
        make: the shedder.
        surge: the overload.
        seed: of its draws.
    """
    shedder = make(group, seed)
    for part in group.training:
        shedder.learn(part.finished)
    shedder.aim(surge.amount(group.size))
    tally, number = Tally(), 0
    for part in group.judged:
        if not len(part.windows):
            continue
        tally.add(compared(part, _dropped(part, shedder, round(group.size), number)))
        number += len(part.windows)
    return tally


def _dropped(part: Part, shedder: Shedder, size: int, first_number: int) -> BoolArray:
    pairs, predicted = part.windows.pairs, part.windows.predicted
    return shedder.drop(
        part.query.types[pairs.events],
        pairs.positions,
        windows=pairs.windows + first_number,
        events=pairs.events,
        sizes=size if predicted is None else predicted,
        features=None if part.query.features is None else part.query.features[pairs.events],
    )


def compared(part: Part, dropped: BoolArray) -> Tally:
    """Return how the matches differ when these pairs are dropped.

    Args:
        part: the query and its windows.
        dropped: shape (pairs,).
    """
    tally = Tally(windows=len(part.windows), dropped=int(dropped.sum()), pairs=len(dropped))
    for before, after in zip(part.matches, part.query.matches(part.windows, dropped), strict=True):
        tally.matches += before is not None
        tally.lost += before is not None and before != after
        tally.made += after is not None and before != after
        tally.without += before is not None and after is None
    return tally
