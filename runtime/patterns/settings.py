"""Settings of all keys of a pattern, and matches that are decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from slackwater.runtime.patterns.rules import MOST_ROLES, Roles, Rules
from slackwater.runtime.patterns.scopes import WindowRule, Within

Selection: TypeAlias = Literal["first", "last", "each", "cumulative"]
HoldsOfTurns: TypeAlias = Callable[[int, int, dict[str, int]], bool]
"""As `Holds`, by places in the whole stream."""
HoldsOfMany: TypeAlias = Callable[[int, int, str, list[int]], "list[bool] | None"]
"""The same for many events of one name; None: they must be asked for one by one."""


NEVER = 1 << 62
"""More events than any key has."""


class Found(NamedTuple):
    """A match that is decided.

    Attributes:
        time_ns: its event time.
        has_waited: whether it waited for the end of its scope.
        turn: the place in the stream of its last event.
        order: among the matches of one event: the alternative, the window's key, the turn there.
        window_start_ns: the start of its window, if there are windows.
        parts: the place in the whole stream of each event, and its number in the pattern.
    """

    time_ns: int
    has_waited: bool
    turn: int
    order: tuple[int, int, int]
    window_start_ns: int | None
    parts: tuple[tuple[int, int], ...]

    @property
    def window(self) -> int:  # noqa: D102
        return self.order[1]


class TooManyMatches(Exception):
    """The matches of one read have more events than they may."""


class Limit:
    """A limit counts the events of the matches of one read.

    Args:
        most: number that is allowed.
    """

    __slots__ = ("_left", "_most")

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def begin(self) -> None:
        """Begin with a read."""
        self._left = self._most

    def take(self, events: int) -> None:
        """Count the events of a match.

        Raises:
            TooManyMatches: it is one too many.
        """
        self._left -= events
        if self._left < 0:
            raise TooManyMatches


@dataclass(slots=True)
class Worked:
    """The work of windows that wait for a match, in events.

    Only events that may be in a match count.

    Attributes:
        events: number of events so far, over all keys.
    """

    events: int = 0


@dataclass(frozen=True, eq=False)
class Settings:
    """The settings of all keys.

    Attributes:
        rules: the rules of each alternative.
        scope: the scope of a match.
        selection: choice among the matches that end with one event.
        consumes: whether an event that has left is used up in its scope.
        most: the most matches of a window; None if all leave.
        many: evaluates predicates of many events at once; None if each is evaluated alone.
        limit: the most events in the matches of one read.
        worked: counts events that windows take; None if they are not counted.
    """

    rules: tuple[Rules, ...]
    scope: Within | WindowRule
    selection: Selection
    consumes: bool
    most: int | None = None
    many: HoldsOfMany | None = None
    limit: Limit | None = None
    worked: Worked | None = None
    _roles: dict[tuple[int, ...], list[Roles]] = field(default_factory=dict)
    _ends_after: dict[tuple[int, ...], int] = field(default_factory=dict)

    def ends_after(self, fits: tuple[int, ...]) -> int:
        """Return the number of events after which one may end a match.

        `NEVER` if it stands at no last place. Computed once for each `fits`.
        """
        after = self._ends_after.get(fits)
        if after is None:
            if len(self._ends_after) >= MOST_ROLES:
                self._ends_after.clear()
            ends = [
                rules.last
                for rules, own in zip(self.rules, self.roles(fits), strict=True)
                if rules.last in own.asked
            ]
            after = self._ends_after[fits] = min(ends, default=NEVER)
        return after

    def roles(self, fits: tuple[int, ...]) -> list[Roles]:
        """Return an event's roles in each alternative; computed once for each `fits`."""
        roles = self._roles.get(fits)
        if roles is None:
            if len(self._roles) >= MOST_ROLES:
                self._roles.clear()
            roles = self._roles[fits] = [rules.roles(fits) for rules in self.rules]
        return roles

    @property
    def waits(self) -> bool:
        """Whether an event that has yet to come may forbid a match."""
        return any(rules.barred_after for rules in self.rules)
