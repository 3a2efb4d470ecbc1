"""What shedding costs, found on some windows: their matches with and without what they lose.

Of a window that is tried it is noted which events that fit something it has, and which of them it
loses. Once it is over its matches are looked for among all of these, and among what is left: what
is not found any more is lost, what is new is false. How many windows are tried is limited by the
events that they have between them (`Budget`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from runtime.model import Int64Array
from runtime.patterns.scopes import OpenedWindows
from runtime.patterns.settings import Found, HoldsOfTurns, Settings
from runtime.patterns.windowed import WindowMatcher
from runtime.shedding.draws import draws_of_windows

_ASKED = -1  # no event of a pattern has this number: a window opens once, by us
_ALL_NS = 1 << 61
_AFTER_NS = 1 << 62
LATER_ONE_OF = 64
"""Of so many events one may be noted for a window that is tried, when enough are known."""
_SEED = 1
_AHEAD, _LEAST = 16, 1 / 256
"""Windows that what is left has to do for; a window is tried with this chance at least."""
_ENOUGH = 400
"""Matches that were judged: a share of them is known to 5 points."""

Parts = tuple[tuple[int, int], ...]
"""Of each event of a match its place in the stream, and the number of what it is."""


class Seen(NamedTuple):
    """An event that fits something; see `KeyMatcher.take`."""

    number: int
    time_ns: int
    turn: int
    fits: tuple[int, ...]
    values: dict[str, Any] | None
    is_lost: bool
    known: tuple[int, ...] = (0,)
    """See `EventKinds`."""


@dataclass
class Trial:
    """A window that is tried.

    Attributes:
        events: those of it that fit something, in order.
        stands_for: so many windows: see `Budget`.
    """

    events: list[Seen] = field(default_factory=list)
    stands_for: float = 1.0

    def hits(self, matches: list[Parts], first: int) -> list[tuple[Int64Array, Int64Array]]:
        """Return what is known of the events of matches, and their positions behind `first`."""
        of_turn = {one.turn: one for one in self.events}
        own = [[of_turn[turn] for turn, _ in parts] for parts in matches]
        return [
            (
                np.array([one.known for one in events], dtype=np.int64).T,
                np.array([one.number - first for one in events], dtype=np.int64),
            )
            for events in own
        ]

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        events = ([*one[:3], list(one.fits), *one[4:6], list(one.known)] for one in self.events)
        return [self.stands_for, *events]

    @classmethod
    def of(cls, state: list[Any]) -> Trial:
        """Return one from a snapshot."""
        stands_for, *events = state
        seen = [
            Seen(n, at, turn, tuple(fits), values, is_lost, tuple(known))
            for n, at, turn, fits, values, is_lost, known in events
        ]
        return cls(seen, stands_for)


class Budget:
    """Says which windows are tried, so that they have no more events than may be noted.

    Each with a chance, the same for all that open at that time, and less when little is left: one
    that is tried with the chance p stands for 1 / p windows. So all count alike: to try whichever
    comes when there is room would take the first of a burst, which fares otherwise than the rest.
    Of each 1 / p windows it is one, at a place that is drawn: so they are spread evenly.

    Args:
        one_of: of so many events one may be noted, until enough is known.
        saved: so many may be noted at once, and at the beginning.
    """

    def __init__(self, *, one_of: int, saved: int) -> None:
        self._one_of, self._saved = one_of, saved
        self._left = float(saved)  # events that may be noted
        self._events = self._fit = 0
        self._matches = 0  # judged so far
        self._noted: float | None = None  # events of a window that was tried, in the mean
        self._strides = 0  # so far: in each one window is tried
        self._at = 0.0  # how much of this one is behind

    def came(self, events: int, fit: int) -> None:
        """Take note of events, and how many of them fit something."""
        self._events += events
        self._fit += fit
        one_of = self._one_of if self._matches < _ENOUGH else LATER_ONE_OF
        self._left = min(self._left + events / one_of, self._saved)

    def judged(self, what: Judged, noted: int) -> None:
        """Take note of a window that was judged, of so many events."""
        self._matches += what.matches
        self._noted = noted if self._noted is None else self._noted + (noted - self._noted) / 16

    def takes(self, size: int) -> float:
        """Return for how many windows one that opens now, of so many events, is tried; 0: not."""
        if not self._events:
            return 0.0
        each = max(size * self._fit / self._events if self._noted is None else self._noted, 1.0)
        chance = min(max(self._left / (_AHEAD * each), _LEAST), 1.0)
        begin, self._at = self._at, self._at + chance
        is_tried = begin <= self._drawn < self._at
        if self._at >= 1:
            self._at, self._strides = self._at - 1, self._strides + 1
            is_tried = is_tried or self._drawn < self._at
        if not is_tried:
            return 0.0
        self._left -= each
        return 1 / chance

    @property
    def _drawn(self) -> float:
        """The place in this stride at which a window is tried."""
        return float(draws_of_windows(np.array([self._strides]), seed=_SEED).item())

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        known = [self._left, self._events, self._fit, self._matches, self._noted]
        return [*known, self._strides, self._at]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        *known, self._strides, self._at = state
        self._left, self._events, self._fit, self._matches, self._noted = known


class Judged(NamedTuple):
    """What shedding did to the matches of windows.

    Attributes:
        windows: that were judged.
        matches: of them, had nothing been dropped.
        lost: of these, those that were not found.
        false: matches that were found, and are none.
        of_all: matches, lost and false ones, each for as many windows as its own stands for.
    """

    windows: int = 0
    matches: int = 0
    lost: int = 0
    false: int = 0
    of_all: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def shared(self, which: int) -> int:
        """Return lost (1) or false (2) matches, as many of these as of those of all windows."""
        every = self.of_all[0]
        return round(self.matches * self.of_all[which] / every) if every else 0

    def plus(self, other: Judged) -> Judged:
        """Return both together."""
        mine, its = self.of_all, other.of_all
        return Judged(
            self.windows + other.windows,
            self.matches + other.matches,
            self.lost + other.lost,
            self.false + other.false,
            (mine[0] + its[0], mine[1] + its[1], mine[2] + its[2]),
        )

    def standing_for(self, many: float) -> Judged:
        """Return it as one of so many windows."""
        each = (many * self.matches, many * self.lost, many * self.false)
        return self._replace(of_all=each)


def judged(trial: Trial, settings: Settings, holds: HoldsOfTurns) -> tuple[Judged, list[Parts]]:
    """Return what came of a window that is over, and the matches that it should have had.

    Args:
        trial: what it had.
        settings: of the pattern.
        holds: of predicates that read earlier events.
    """
    every = _matches(trial.events, settings, holds)
    left = [one for one in trial.events if not one.is_lost]
    found = every if len(left) == len(trial.events) else _matches(left, settings, holds)
    return Judged(1, len(every), len(every - found), len(found - every)), sorted(every)


def _matches(events: list[Seen], settings: Settings, holds: HoldsOfTurns) -> set[Parts]:
    """Return the matches of one window that has these events."""
    if not events:
        return set()
    matcher = WindowMatcher(replace(settings, scope=OpenedWindows(_ASKED, span_ns=_ALL_NS)), holds)
    matcher.open(0, events[0].time_ns, (_ASKED,))
    found: list[Found] = []
    for one in events:
        found += matcher.take(one.number, one.time_ns, one.turn, one.fits, one.values)
    found += matcher.waiting.decided(_AFTER_NS)
    return {one.parts for one in found}
