"""Forbidding finds the events that may forbid a choice, and their last time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from slackwater.runtime.patterns.case import Case, Choice, Edges, Scope, Stretch
from slackwater.runtime.patterns.drift_layout import DriftLayout, Line
from slackwater.runtime.patterns.settings import HoldsOfTurns
from slackwater.runtime.patterns.stamped import Lane, Stamped


class Made(NamedTuple):
    """A choice in a scope.

    Attributes:
        line: the line of the choice.
        choice: without the event that opens the scope, if that stands in front.
        scope: the scope of the choice.
        window: its key; 0 without windows.
        start_ns: the start of the window.
    """

    line: Line
    choice: Choice
    scope: Scope
    window: int
    start_ns: int | None


@dataclass(frozen=True, slots=True)
class Forbidding:
    """Forbidding looks for barred events among the events of one key."""

    layout: DriftLayout
    lanes: list[Lane]
    holds: HoldsOfTurns

    def due_ns(self, made: Made) -> int | None:
        """Return the last time at which an event may forbid a choice; None without bars."""
        line, most_ns = made.line, self.layout.most_ns
        due = []
        if most_ns:  # else what comes later is later
            due = [
                max(one.end[0] for one in made.choice[place]) + most_ns
                for place in line.barred_places
            ]
        if line.has_end:
            due.append(_end_ns(made) + most_ns)
        return max(due, default=None)

    def case(self, made: Made) -> Case:
        """Return the case of a choice, when all events that may forbid it have come."""
        line, choice = made.line, made.choice
        if not line.waits:
            return Case(choice, ((),) * len(choice), (), made.scope)
        own = {one.turn for some in choice for one in some}
        named = {name: choice[k][0].turn for name, k in line.rules.names.items()}
        barred: list[dict[int, Stamped]] = [{} for _ in choice]
        for k, asked, lane in line.bars:
            since_ns = max(one.begin[0] for one in choice[k - 1]) - self.layout.most_ns
            until_ns = min(one.end[0] for one in choice[k]) + self.layout.most_ns
            barred[k] |= self._those(asked, self.lanes[lane].between(since_ns, until_ns), named)
        barred_after: dict[int, Stamped] = {}
        for asked, lane in line.ends:
            since_ns = max(one.begin[0] for one in choice[-1]) - self.layout.most_ns
            until_ns = _end_ns(made) + self.layout.most_ns
            barred_after |= self._those(asked, self.lanes[lane].between(since_ns, until_ns), named)
        return Case(
            choice,
            tuple(_without(own, some) for some in barred),
            _without(own, barred_after),
            made.scope,
        )

    def _those(
        self, asked: int | None, events: list[Stamped], named: dict[str, int]
    ) -> dict[int, Stamped]:
        return {
            one.turn: one for one in events if asked is None or self.holds(asked, one.turn, named)
        }


def _without(own: set[int], some: dict[int, Stamped]) -> tuple[Stamped, ...]:
    return tuple(one for turn, one in some.items() if turn not in own)


def _end_ns(made: Made) -> int:
    """Return the last moment that may be in the scope of a match."""
    scope = made.scope
    if isinstance(scope, Edges):
        return scope.end_ns - 1
    ends = [one.end[0] for some in made.choice for one in some]
    if isinstance(scope, Stretch):
        return min(ends) + scope.span_ns
    return min(*ends, scope.by.end[0]) + scope.span_ns - 1
