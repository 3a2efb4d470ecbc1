"""A matcher that handles each window by itself, as [espice]'s operator does: plain Python.

The experiments use it because it is easy to check; `pattern-speed` as what others do. Meaning:
docs/decisions/2026-11-24-patterns.md, with `matches=1`: of a window the match that ends earliest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Selection = Literal["first", "last"]
Match = tuple[int, ...]
"""The numbers of its events, ascending."""
NOTHING = -1


class Matcher(Protocol):
    """Looks for one match in one window."""

    def feed(self, number: int, label: int, is_head: bool) -> Match | None:
        """Take the window's next event; return the match that it ends.

        Args:
            number: of the event; ascending.
            label: what it is in the pattern, or NOTHING.
            is_head: whether it may begin a pattern that has a head.
        """


class AnyAfter:
    """`seq(head, any_of(n, …))`: a head, then events with n different labels, in any order."""

    def __init__(self, count: int, selection: Selection) -> None:
        self._count = count
        self._is_first = selection == "first"
        self._heads: list[int] = []
        self._chosen: dict[int, int] = {}  # {label: number of its first or its latest event}

    def feed(self, number: int, label: int, is_head: bool) -> Match | None:
        """Take the window's next event; return the match that it ends."""
        if label >= 0 and self._heads:
            if self._is_first:
                self._chosen.setdefault(label, number)
            else:
                self._chosen[label] = number
            if len(self._chosen) == self._count:
                return self._match()
        if is_head:
            self._heads.append(number)
        return None

    def _match(self) -> Match:
        # The earliest end is the first event with the n-th label: no other match ends there that
        # has smaller numbers than all first events, or greater ones than all latest.
        members = sorted(self._chosen.values())
        if self._is_first:
            return (self._heads[0], *members)
        return (self._heads[bisect_left(self._heads, members[0]) - 1], *members)


class Steps:
    """`seq(A, B, A, …)`: an event of each label in this order; labels may repeat."""

    def __init__(self, labels: Sequence[int], selection: Selection) -> None:
        self._labels = labels
        self._is_first = selection == "first"
        self._earliest: list[int] = []  # of each step so far, the least number it can have
        self._seen: dict[int, list[int]] = {label: [] for label in labels}

    def feed(self, number: int, label: int, is_head: bool) -> Match | None:  # noqa: ARG002
        """Take the window's next event; return the match that it ends."""
        if label < 0:
            return None
        if not self._is_first:
            self._seen[label].append(number)
        if label == self._labels[len(self._earliest)]:
            self._earliest.append(number)
            if len(self._earliest) == len(self._labels):
                return tuple(self._earliest) if self._is_first else self._latest()
        return None

    def _latest(self) -> Match:
        """Return the match that ends at the newest event and is greatest from its end back."""
        before, chosen = self._earliest[-1] + 1, []
        for label in reversed(self._labels):
            seen = self._seen[label]
            before = seen[bisect_left(seen, before) - 1]
            chosen.append(before)
        return tuple(reversed(chosen))


@dataclass(frozen=True)
class Alternative:
    """One of the sequences that a pattern is.

    Attributes:
        matcher: makes its matcher for a window.
        label: of each event of the stream, or NOTHING.
        head: of each event of the stream, whether it may be the head.
    """

    matcher: Callable[[], Matcher]
    label: Sequence[int]
    head: Sequence[bool]


def first_match(alternatives: Sequence[Alternative], numbers: Iterable[int]) -> Match | None:
    """Return the match of a window that ends first; of two that end together, the former's.

    Args:
        alternatives: the pattern.
        numbers: the window's events that are left, ascending.
    """
    matchers = [(one.matcher(), one.label, one.head) for one in alternatives]
    for number in numbers:
        for matcher, label, head in matchers:
            match = matcher.feed(number, label[number], head[number])
            if match is not None:
                return match
    return None
