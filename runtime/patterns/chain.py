"""The lists of one sequence: for each place the events that end a match of all places so far.

```
seq(A, B, C)    events   1:A  2:A  3:B  4:A  5:C  6:B  7:C
place A         1 2 4    latest start  1 2 4
place B         3 6      latest start  2 4          3 follows 1 and 2, so at best begins with 2
place C         5 7      latest start  2 4          5 ends a match of every scope from 1 or 2 on
```

Both rows of a place ascend, so what a scope may use of a place is one range of its list.
Source: the compact form of partial matches of Bucchi et al., CORE, PVLDB 15 (2022), §5, in
lists in place of union nodes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

from runtime.patterns.rules import Kind, Roles, Rules


class Ends(NamedTuple):
    """Events of one place, each the end of a match of all places up to it."""

    at: list[int]
    """Their numbers, ascending."""
    start: list[int]
    """The greatest number that such a match begins with, ascending."""


class Several:
    """What has come for a place that takes several events in any order.

    Attributes:
        at: numbers of the events that fit it.
        label: of each what must differ: the number of what it fits, or the value of a column.
    """

    __slots__ = ("_counts", "_latest", "at", "label")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.label: list[Any] = []
        self._latest: deque[tuple[int, Any]] = deque()  # the shortest stretch with all labels
        self._counts: dict[Any, int] = {}  # {label: how often in that stretch}

    def add(self, number: int, label: Any, count: int) -> int:
        """Take an event; return from which number on there are `count` labels, 0: too few.

        A stretch that ends here and has them all is shortest when it begins there; this only grows.
        """
        self.at.append(number)
        self.label.append(label)
        latest, counts = self._latest, self._counts
        latest.append((number, label))
        counts[label] = counts.get(label, 0) + 1
        while counts[latest[0][1]] > 1 or len(counts) > count:
            _, gone = latest.popleft()
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
        return latest[0][0] if len(counts) == count else 0

    def forget(self, below: int) -> None:
        """Let go of events with lower numbers."""
        gone = bisect_left(self.at, below)
        del self.at[:gone], self.label[:gone]
        while self._latest and self._latest[0][0] < below:
            _, label = self._latest.popleft()
            self._counts[label] -= 1
            if not self._counts[label]:
                del self._counts[label]


class Chain:
    """The lists of one sequence in the events of one key.

    Attributes:
        rules: of the sequence.
        ends: of each place.
        copies: of each place that is repeated the ends of its first, second, … time, as often as
            it comes at least; the last of them are the place's ends.
        fit: of each place that is repeated all events that fit it.
        several: of each place that takes several in any order.
        barred: of each place the numbers of what may not come in front of it.
        used: numbers of events that are used up: they bar, and stand at no place.
    """

    __slots__ = ("barred", "copies", "ends", "fit", "rules", "several", "used")

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        places = rules.places
        self.copies = [
            [Ends([], []) for _ in range(place.least if kind is Kind.REPEATED else 1)]
            for place, kind in zip(places, rules.kinds, strict=True)
        ]
        self.ends = [copies[-1] for copies in self.copies]
        self.fit: list[list[int]] = [[] for _ in places]
        self.several = [Several() for _ in places]
        self.barred: list[list[int]] = [[] for _ in places]
        self.used: set[int] = set()

    def take(self, number: int, roles: Roles, values: dict[str, Any] | None) -> int | None:
        """Take an event; return the latest start of the matches that it ends, if it ends any.

        Constant time for each place that it fits (amortised).

        Args:
            number: greater than all before.
            roles: what it is to the sequence.
            values: {column: value} of the columns that must differ.
        """
        rules = self.rules
        last = len(rules.places) - 1
        ended = None
        for k, asked in roles.places:  # the last place first: no event stands behind itself
            kind = rules.kinds[k]
            if kind is Kind.ANY:
                start = self._any(k, number, asked, values)
            elif kind is Kind.REPEATED:
                start = self._repeated(k, number)
            else:
                start = self._start(k, number)
            if start is not None:
                ends = self.ends[k]
                ends.at.append(number)
                ends.start.append(start)
                if k == last:
                    ended = start
        for k in roles.barred:
            self.barred[k].append(number)
        return ended

    def take_used(self, number: int, roles: Roles) -> None:
        """Take an event that is used up."""
        self.used.add(number)
        for k, _ in roles.places:
            if self.rules.kinds[k] is Kind.REPEATED:
                self.fit[k].append(number)
        for k in roles.barred:
            self.barred[k].append(number)

    def remove(self, gone: Collection[int]) -> None:
        """Let go of events that are used up, in lists of a plain sequence.

        What followed one of them follows the one before it now, or nothing, and then goes, too. So
        only what lies between it and the next of its place changes.
        """
        changed: list[int] = []  # numbers of what went, or begins elsewhere, of the place before
        for k, ends in enumerate(self.ends):
            own = [number for number in gone if _has(ends.at, number)]
            if k:
                before, after = self.ends[k - 1], changed
                for number in after:
                    following = bisect_right(before.at, number)
                    last = before.at[following] if following < len(before.at) else None
                    first = bisect_right(ends.at, number)
                    end = len(ends.at) if last is None else bisect_right(ends.at, last)
                    if first == end:
                        continue
                    # All of these have the same one before them now.
                    newest = bisect_left(before.at, ends.at[first]) - 1
                    start = before.start[newest] if newest >= 0 else None
                    for place in range(first, end):
                        if start is None:
                            own.append(ends.at[place])
                        elif ends.start[place] != start:
                            ends.start[place] = start
                            own.append(ends.at[place])
                    if start is None:
                        del ends.at[first:end], ends.start[first:end]
            for number in gone:
                place = bisect_left(ends.at, number)
                if place < len(ends.at) and ends.at[place] == number:
                    del ends.at[place], ends.start[place]
            changed = sorted(set(own))

    def _start(self, k: int, number: int) -> int | None:
        """Return the latest start of matches of all places before k that an event may follow."""
        if not k:
            return number
        before = self.ends[k - 1]
        if not before.at:
            return None
        bars = self.barred[k]
        return None if bars and bars[-1] > before.at[-1] else before.start[-1]

    def _repeated(self, k: int, number: int) -> int | None:
        copies, fit = self.copies[k], self.fit[k]
        newest = fit[-1] if fit else 0
        is_next = not self.rules.is_strict[k]
        follows = [
            copy.start[-1] if copy.at and (is_next or copy.at[-1] >= newest) else None
            for copy in copies
        ]
        first = self._start(k, number)
        if first is None and len(copies) == 1:
            first = follows[0]  # barred as the first time, but once more is no harm
        starts = [first, *follows[:-1]]
        for copy, start in zip(copies[:-1], starts[:-1], strict=True):
            if start is not None:
                copy.at.append(number)
                copy.start.append(start)
        fit.append(number)
        return starts[-1]

    def _any(self, k: int, number: int, asked: int, values: dict[str, Any] | None) -> int | None:
        place = self.rules.places[k]
        label = asked if place.distinct is None else (values or {})[place.distinct]
        since = self.several[k].add(number, label, place.count)
        if not since:
            return None
        if not k:
            return since
        before = self.ends[k - 1]
        newest = bisect_left(before.at, since) - 1
        return before.start[newest] if newest >= 0 else None

    def forget(self, below: int) -> None:
        """Let go of events with lower numbers: no scope reaches back to them."""
        for k, copies in enumerate(self.copies):
            for copy in copies:
                gone = bisect_left(copy.start, below)  # what begins there, and so what lies there
                del copy.at[:gone], copy.start[:gone]
            del self.fit[k][: bisect_left(self.fit[k], below)]
            self.several[k].forget(below)
            bars = self.barred[k]
            del bars[: max(bisect_left(bars, below) - 1, 0)]
        self.used = {one for one in self.used if one >= below}

    def is_clear(self, k: int, after: int, before: int) -> bool:
        """Return whether nothing that is surely barred in front of place k lies between."""
        bars = self.barred[k]
        return not bars or bisect_left(bars, before) == bisect_right(bars, after)


def _has(numbers: list[int], number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number
