"""What shedding costs, found on some windows: their matches with and without what they lose.

Of a window that is tried it is noted which events that fit something it has, and which of them it
loses. Once it is over its matches are looked for among all of these, and among what is left: what
is not found any more is lost, what is new is false. As many windows are tried as have a quarter of
all events between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from runtime.patterns.scopes import OpenedWindows
from runtime.patterns.settings import Found, HoldsOfTurns, Settings
from runtime.patterns.windowed import WindowMatcher

_ASKED = -1  # no event of a pattern has this number: a window opens once, by us
_ALL_NS = 1 << 61
_AFTER_NS = 1 << 62
ONE_OF = 4
"""Of so many events one may be noted for a window that is tried."""
_MOST_SAVED = 1 << 15
"""Of these; a run begins with as many, so that a short one is judged, too."""

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


@dataclass
class Trial:
    """A window that is tried.

    Attributes:
        events: those of it that fit something, in order.
        stands_for: so many windows, itself and those before it that were not tried.
    """

    events: list[Seen] = field(default_factory=list)
    stands_for: int = 1

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        return [self.stands_for, *([*one[:3], list(one.fits), *one[4:]] for one in self.events)]

    @classmethod
    def of(cls, state: list[Any]) -> Trial:
        """Return one from a snapshot."""
        stands_for, *events = state
        seen = [Seen(n, at, turn, tuple(fits), *rest) for n, at, turn, fits, *rest in events]
        return cls(seen, stands_for)


class Budget:
    """Says which windows are tried: one whenever as many events have come as that costs."""

    def __init__(self) -> None:
        self._left = float(_MOST_SAVED)  # events that may be noted
        self._events = self._fit = 0
        self._passed = 0  # windows since the last that was tried

    def came(self, events: int, fit: int) -> None:
        """Take note of events, and how many of them fit something."""
        self._events += events
        self._fit += fit
        self._left = min(self._left + events / ONE_OF, _MOST_SAVED)

    def takes(self, size: int) -> int:
        """Return for how many windows one that opens now, of so many events, is tried; 0: not.

        At first all are, later a few: without that the first would count too much.
        """
        self._passed += 1
        if self._left < 0 or not self._events:
            return 0
        self._left -= size * self._fit / self._events
        stands_for, self._passed = self._passed, 0
        return stands_for

    def snapshot(self) -> list[float]:
        """Return all state, as plain values."""
        return [self._left, self._events, self._fit, self._passed]

    def restore(self, state: list[float]) -> None:
        """Continue from a snapshot."""
        left, *counts = state
        self._left = left
        self._events, self._fit, self._passed = map(int, counts)


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
    of_all: tuple[int, int, int] = (0, 0, 0)

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

    def standing_for(self, many: int) -> Judged:
        """Return it as one of so many windows."""
        each = (many * self.matches, many * self.lost, many * self.false)
        return self._replace(of_all=each)


def judged(trial: Trial, settings: Settings, holds: HoldsOfTurns) -> Judged:
    """Return what came of a window that is over.

    Args:
        trial: what it had.
        settings: of the pattern.
        holds: of predicates that read earlier events.
    """
    every = _matches(trial.events, settings, holds)
    left = [one for one in trial.events if not one.is_lost]
    found = every if len(left) == len(trial.events) else _matches(left, settings, holds)
    return Judged(1, len(every), len(every - found), len(found - every))


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
