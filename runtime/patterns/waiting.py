"""Matches that wait for the end of their scope: what may still come can forbid them."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

from runtime.patterns.rules import Rules
from runtime.patterns.settings import Found, HoldsOfTurns


class _Waiting(NamedTuple):
    due_ns: int
    turn: int
    order: tuple[int, int, int]
    found: Found


class WaitingMatches:
    """Those of one key.

    Args:
        rules: of each alternative.
        holds: of predicates that read earlier events.
    """

    __slots__ = ("_heap", "_holds", "_rules")

    def __init__(self, rules: tuple[Rules, ...], holds: HoldsOfTurns) -> None:
        self._rules = rules
        self._holds = holds
        self._heap: list[_Waiting] = []

    @property
    def due_ns(self) -> int | None:
        """When the next is decided, once all events up to this time have come; None: none waits."""
        return self._heap[0].due_ns if self._heap else None

    def add(self, found: Found) -> None:
        """Let a match wait up to its event time."""
        heapq.heappush(self._heap, _Waiting(found.time_ns, found.turn, found.order, found))

    def clear(self) -> None:
        """Let go of all: nobody can tell any more whether something forbids them."""
        self._heap = []

    def decided(self, passed_ns: int) -> list[Found]:
        """Return those whose scope has no event of `passed_ns` or later."""
        found = []
        while self._heap and self._heap[0].due_ns < passed_ns:
            found.append(heapq.heappop(self._heap).found)
        return found

    def bar(
        self, turn: int, ends: list[tuple[int, ...]], lost: frozenset[int] = frozenset()
    ) -> list[int]:
        """Drop what may not be followed by an event; return the keys of windows of what is dropped.

        Args:
            turn: of the event.
            ends: of each alternative, what the event is of that which may not come behind it.
            lost: keys of windows that do not have the event.
        """
        if not self._heap or not any(ends):
            return []
        stays, dropped = [], []
        for one in self._heap:
            is_barred = one.found.window not in lost and any(
                self._forbids(bar, turn, one.found) for bar in ends[one.found.alternative]
            )
            if is_barred:
                dropped.append(one.found.window)
            else:
                stays.append(one)
        if dropped:
            self._heap = stays
            heapq.heapify(stays)
        return dropped

    def _forbids(self, bar: int, turn: int, found: Found) -> bool:
        rules = self._rules[found.alternative]
        return bar not in rules.depends or self._holds(bar, turn, _named(rules, found))

    def turns(self) -> list[int]:
        """Return the places in the stream of all their events."""
        return [turn for one in self._heap for turn, _ in one.found.parts]

    def snapshot(self) -> list[Any]:
        """Return all of them."""
        return [
            [
                *(one.found.time_ns, one.found.is_behind, one.found.turn, list(one.found.order)),
                one.found.window_start_ns,
                [list(part) for part in one.found.parts],
                one.found.alternative,
            ]
            for one in self._heap
        ]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        for time_ns, is_behind, turn, (first, key, last), start_ns, parts, alternative in state:
            order, events = (first, key, last), tuple((of, asked) for of, asked in parts)
            self.add(Found(time_ns, is_behind, turn, order, start_ns, events, alternative))


def _named(rules: Rules, found: Found) -> dict[str, int]:
    """Return {name of an event that predicates read: its place in the stream}."""
    of_asked = {asked: turn for turn, asked in found.parts}
    asked_at = {name: rules.places[k].asked[0] for name, k in rules.names.items()}
    return {name: of_asked[one] for name, one in asked_at.items() if one in of_asked}
