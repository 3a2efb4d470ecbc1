"""A case is a choice of events, its scope, and the events barred from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.patterns.stamped import ABOVE, BELOW, Moment, Stamped

Choice: TypeAlias = tuple[tuple[Stamped, ...], ...]
"""The events of each place; those of one place may be in any order."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A window by event time, [start, end)."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch from the first event of a match on; its end is in it."""

    span_ns: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A window that an event opens; its end is not in it.

    The event may be of the match.
    """

    by: Stamped
    span_ns: int


Scope: TypeAlias = Edges | Stretch | Opened


@dataclass(frozen=True, slots=True)
class Case:
    """A case asks whether a choice is a match.

    Attributes:
        places: the choice.
        barred: the events that may not come before each place, after the one before; none of the
            first.
        barred_after: the events that may not come from the last event to the end of the scope.
        scope: the scope of the choice.

    No event of the choice is barred.
    """

    places: Choice
    barred: tuple[tuple[Stamped, ...], ...]
    barred_after: tuple[Stamped, ...]
    scope: Scope

    @property
    def all_events(self) -> list[Stamped]:  # noqa: D102
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
    """Return the earliest moment at which all of them may have happened."""
    return max(one.begin for one in events)


def earliest_end(events: Iterable[Stamped]) -> Moment:
    """Return the latest moment at which none of them need have happened."""
    return min(one.end for one in events)
