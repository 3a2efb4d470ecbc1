"""Undecided choices may be forbidden by events that have yet to come."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

from slackwater.runtime.patterns.case import Edges, Opened, Scope, Stretch
from slackwater.runtime.patterns.drift_case import Made
from slackwater.runtime.patterns.drift_layout import Line
from slackwater.runtime.patterns.settings import Found
from slackwater.runtime.patterns.stamped import Stamped


class Waits(NamedTuple):
    """A choice, and its place among those that leave.

    Attributes:
        due_ns: when it is decided, once all events up to this time have come.
        turn: the place in the stream of its last event.
        order: its place among the choices of one event.
        made: the choice in its scope.
    """

    due_ns: int
    turn: int
    order: tuple[int, int, int]
    made: Made


class Undecided:
    """Choices of one key that wait.

    Its matcher has the events of all choices: so of each choice their places are saved.

    Args:
        decide: returns the matches that leave of a choice.
    """

    __slots__ = ("_decide", "_heap")

    def __init__(self, decide: Callable[[Waits], list[Found]]) -> None:
        self._decide = decide
        self._heap: list[Waits] = []

    @property
    def due_ns(self) -> int | None:
        """The time when the next choice is decided; None if none waits."""
        return self._heap[0].due_ns if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, one: Waits) -> None:
        """Add a choice."""
        heapq.heappush(self._heap, one)

    def decided(self, passed_ns: int) -> list[Found]:
        """Return the matches of choices that no event of `passed_ns` or later can forbid."""
        matches: list[Found] = []
        while self._heap and self._heap[0].due_ns < passed_ns:
            matches += self._decide(heapq.heappop(self._heap))
        return matches

    def snapshot(self) -> list[Any]:
        """Return all choices, as plain values."""
        return [
            [
                *(one.due_ns, one.turn, list(one.order), one.made.line.shift),
                [[event.turn for event in some] for some in one.made.choice],
                [one.made.start_ns, *_plain(one.made.scope)],
            ]
            for one in self._heap
        ]

    def restore(
        self, state: list[Any], lines: tuple[Line, ...], events: dict[int, Stamped]
    ) -> None:
        """Continue from a snapshot.

        Args:
            state: the snapshot.
            lines: the lines of the layout.
            events: {turn: event} of all that are held.
        """
        line_of = {(one.which, one.shift): one for one in lines}
        for due_ns, turn, (which, window, order), shift, choice, (start_ns, *scope) in state:
            made = Made(
                line_of[which, shift],
                tuple(tuple(events[one] for one in some) for some in choice),
                _scope(scope, events),
                window,
                start_ns,
            )
            self.add(Waits(due_ns, turn, (which, window, order), made))


def _plain(scope: Scope) -> list[int]:
    match scope:
        case Edges():
            return [0, scope.start_ns, scope.end_ns]
        case Stretch():
            return [1, scope.span_ns]
        case Opened():
            return [2, scope.by.turn, scope.span_ns]


def _scope(state: list[int], events: dict[int, Stamped]) -> Scope:
    match state:
        case [0, start_ns, end_ns]:
            return Edges(start_ns, end_ns)
        case [1, span_ns]:
            return Stretch(span_ns)
    _, by, span_ns = state
    return Opened(events[by], span_ns)
