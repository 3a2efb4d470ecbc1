"""A choice of events, what may not come between them, and what they have to lie in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.patterns.stamped import ABOVE, BELOW, Moment, Stamped

Choice: TypeAlias = tuple[tuple[Stamped, ...], ...]
"""Of each place its events; among those of one place any order will do."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A window by event time, [start, end)."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """From the first event of a match on, so long; its end is in it."""

    span_ns: int


@dataclass(frozen=True, slots=True)
class Opened:
    """From an event on, so long; its end is not in it. The event may be of the match."""

    by: Stamped
    span_ns: int


Scope: TypeAlias = Edges | Stretch | Opened


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked.

    Attributes:
        places: the choice.
        barred: of each place what may not come between the place before and it; of the first: none.
        behind: what may not come from the last event to the end of the scope.
        scope: what it lies in.

    What is barred has no event of the choice.
    """

    places: Choice
    barred: tuple[tuple[Stamped, ...], ...]
    behind: tuple[Stamped, ...]
    scope: Scope

    @property
    def all_events(self) -> list[Stamped]:
        """All of the choice."""
        return [one for some in self.places for one in some]

    @property
    def until(self) -> Moment:
        """The latest that the scope may end."""
        scope = self.scope
        if isinstance(scope, Edges):
            return scope.end_ns, BELOW
        if isinstance(scope, Stretch):
            return earliest_end(self.all_events)[0] + scope.span_ns, ABOVE
        return earliest_end([scope.by, *self.all_events])[0] + scope.span_ns, BELOW


def latest_begin(events: Iterable[Stamped]) -> Moment:
    """Return from when on all of them may have happened."""
    return max(one.begin for one in events)


def earliest_end(events: Iterable[Stamped]) -> Moment:
    """Return until when none of them need have happened."""
    return min(one.end for one in events)
