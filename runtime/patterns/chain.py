"""A chain has a sequence's lists: for each place, events that end a match.

```
seq(A, B, C)    events   1:A  2:A  3:B  4:A  5:C  6:B  7:C
place A         1 2 4    latest start  1 2 4
place B         3 6      latest start  2 4          3 follows 1 and 2, so at best begins with 2
place C         5 7      latest start  2 4          5 ends a match of every scope from 1 or 2 on
```

Both rows of a place ascend, so the part of a place that a scope may use is one range of its list.
An event that is used up leaves the lists; what followed it follows the one before it then, or
nothing. Source: the compact form of partial matches of Bucchi et al., CORE, PVLDB 15 (2022), §5, in
lists in place of union nodes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from typing import Any, NamedTuple

from slackwater.runtime.patterns.rules import Kind, Roles, Rules
from slackwater.runtime.patterns.several import Several

_NEVER: list[int] = []
"""List to which nothing is added, for all keys: an empty list of each takes 72 bytes."""


class Ends(NamedTuple):
    """Events of one place, each the end of a match of all places so far."""

    at: list[int]
    """Their numbers, ascending."""
    start: list[int]
    """The greatest number that such a match begins with, ascending."""
    since: list[int]
    """The greatest number that its own place begins with then, ascending."""

    def add(self, number: int, start: int, since: int) -> None:  # noqa: D102
        self.at.append(number)
        self.start.append(start)
        self.since.append(since)

    def cut(self, begin: int, end: int) -> None:  # noqa: D102
        del self.at[begin:end], self.start[begin:end], self.since[begin:end]


class Chain:
    """The lists of one sequence in the events of one key.

    Attributes:
        rules: the rules of the sequence.
        ends: the ends of each place.
        copies: ends of the first, second, … time of each place that is repeated, as often as it
            must be; the last of these are the place's ends.
        fit: all events that fit each place that is repeated.
        several: {number of a place that takes several in any order: its events}.
        barred: numbers of the events that may not come before each place.
        after: numbers of events that may surely not come after the last event.
        watched: {number in the pattern: numbers of events that fit it}, of events that may not come
            if a predicate that reads earlier events is true of them.
        used: numbers of events that are used up and still bar: they stand at no place.
    """

    __slots__ = (
        "after",
        "barred",
        "copies",
        "ends",
        "fit",
        "rules",
        "several",
        "used",
        "watched",
    )

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        places, kinds = rules.places, rules.kinds
        self.copies = [
            [Ends([], [], []) for _ in range(place.least if kind is Kind.REPEATED else 1)]
            for place, kind in zip(places, kinds, strict=True)
        ]
        self.ends = [copies[-1] for copies in self.copies]
        self.fit: list[list[int]] = [[] if kind is Kind.REPEATED else _NEVER for kind in kinds]
        self.several = {
            k: Several(places[k].count, is_distinct=places[k].distinct is not None)
            for k, kind in enumerate(kinds)
            if kind is Kind.ANY
        }
        self.barred: list[list[int]] = [[] if bars else _NEVER for bars in rules.barred]
        self.after: list[int] = [] if rules.barred_after else _NEVER
        self.watched: dict[int, list[int]] = {label: [] for label in rules.watched}
        self.used: set[int] = set()

    def take(self, number: int, roles: Roles, values: dict[str, Any] | None) -> int | None:
        """Take an event; return the latest start of the matches that it ends, if any.

        Constant time for each place that it fits (amortised).

        Args:
            number: greater than all before.
            roles: its roles in the sequence.
            values: {column: value} of the columns that must differ.
        """
        rules = self.rules
        last = len(rules.places) - 1
        ended = None
        for k in roles.places:  # the last place first: no event stands after itself
            kind = rules.kinds[k]
            since = number
            if kind is Kind.ANY:
                label = rules.label(k, roles.fits[k], values)
                since = self.several[k].add(number, label)
                start = self._start(k, 0, number, since) if since else None
            elif kind is Kind.REPEATED:
                start = self._repeated(k, number)
            else:
                start = self._start(k, 0, number, number)
            if start is not None:
                self.ends[k].add(number, start, since)
                if k == last:
                    ended = start
        self._bar(number, roles)
        return ended

    def take_used(self, number: int, roles: Roles) -> None:
        """Take an event that is used up."""
        self._note_used(number, roles.places)
        for k in roles.places:
            if self.rules.kinds[k] is Kind.REPEATED and self.rules.goes_next:
                self.fit[k].append(number)
        self._bar(number, roles)

    def _bar(self, number: int, roles: Roles) -> None:
        for k in roles.barred:
            self.barred[k].append(number)
        if roles.is_after:
            self.after.append(number)
        for asked in roles.watched:
            self.watched[asked].append(number)

    def remove(self, gone: Collection[int]) -> None:
        """Remove events that are used up; those that bar continue to do so.

        What followed one of them follows the one before it now, or nothing, and then goes, too. So
        only what lies between it and the next of its place changes.
        """
        changed: list[int] = []  # numbers that left the list before, or begin elsewhere in it
        for k, (copies, kind) in enumerate(zip(self.copies, self.rules.kinds, strict=True)):
            gone_here: list[int] = []
            if kind is Kind.ANY:
                several = self.several[k]
                gone_here = [number for number in gone if several.has(number)]
                several.remove(gone_here)
            elif kind is Kind.REPEATED:
                self._remove_fit(k, gone)
            for j in range(len(copies)):
                changed = self._mended(k, j, gone, changed, gone_here)

    def _remove_fit(self, k: int, gone: Collection[int]) -> None:
        fit = self.fit[k]
        for number in gone:
            place = bisect_left(fit, number)
            if place < len(fit) and fit[place] == number:
                self._note_used(number, (k,))
                if not self.rules.goes_next:
                    del fit[place]

    def _note_used(self, number: int, places: Collection[int]) -> None:
        if self.rules.goes_next and any(self.rules.kinds[k] is Kind.REPEATED for k in places):
            self.used.add(number)

    # -- where a match begins -------------------------------------------------------------

    def _start(self, k: int, j: int, number: int, since: int) -> int | None:
        """Return the latest start that an event may follow, before place k's j-th time.

        Args:
            k: number of the place.
            j: how often it came before.
            number: the number of the event.
            since: number before which all earlier events of the match lie.
        """
        if j:
            before = self.copies[k][j - 1]
        elif k:
            before = self.ends[k - 1]
        else:
            return since
        at = before.at
        newest = len(at) if at and at[-1] < since else bisect_left(at, since)
        if not newest or self._is_between(k, j, at[newest - 1], number):
            return None
        return before.start[newest - 1]

    def _is_between(self, k: int, j: int, after: int, number: int) -> bool:
        """Return whether a barred event lies before the j-th time of a place."""
        if j and not self.rules.is_strict[k]:
            return False
        bars = self.fit[k] if j else self.barred[k]
        if not bars:
            return False
        newest = len(bars) if bars[-1] < number else bisect_left(bars, number)
        return newest > 0 and bars[newest - 1] > after

    def _once_more(self, k: int, own: int, number: int) -> int | None:
        """Return the start of a repeated place's event `own` if it comes once more.

        Barred as the first time, but once more does no harm.
        """
        ends, place = self.ends[k], self.rules.places[k]
        if own < 0 or place.most == place.least or self._is_between(k, 1, ends.at[own], number):
            return None
        return ends.start[own]

    def _repeated(self, k: int, number: int) -> int | None:
        copies = self.copies[k]
        starts = [self._start(k, j, number, number) for j in range(len(copies))]
        if starts[-1] is None:
            starts[-1] = self._once_more(k, len(copies[-1].at) - 1, number)
        for copy, start in zip(copies[:-1], starts[:-1], strict=True):
            if start is not None:
                copy.add(number, start, number)
        self.fit[k].append(number)
        return starts[-1]

    # -- what is used up ------------------------------------------------------------------

    def _mended(
        self, k: int, j: int, gone: Collection[int], changed: list[int], taken: list[int]
    ) -> list[int]:
        """Mend one list; return the numbers that left it, or begin elsewhere.

        Args:
            k: number of the place.
            j: number of the place's time, from 0.
            gone: the events that are used up.
            changed: the same, of the list before.
            taken: the events that are gone of a place that takes several.
        """
        ends = self.copies[k][j]
        at = ends.at
        mended: list[int] = []
        for number in gone:
            place = bisect_left(at, number)
            if place < len(at) and at[place] == number:
                del at[place], ends.start[place], ends.since[place]
                mended.append(number)
        if not changed and not taken and self.rules.kinds[k] is not Kind.REPEATED:
            return mended if len(mended) < 2 else sorted(mended)
        may_repeat = self.rules.kinds[k] is Kind.REPEATED and ends is self.ends[k]
        for begin, end in self._touched(k, j, changed, taken, mended if may_repeat else []):
            place, stop = begin, end
            while place < min(stop, len(ends.at)):
                number = ends.at[place]
                since = self.several[k].since(number) if taken else ends.since[place]
                start = self._start(k, j, number, since) if since else None
                if start is None and may_repeat:
                    start = self._once_more(k, place - 1, number)
                if start is None:
                    ends.cut(place, place + 1)
                    stop -= 1
                elif (start, since) != (ends.start[place], ends.since[place]):
                    ends.start[place], ends.since[place] = start, since
                    place += 1
                else:
                    place += 1
                    continue
                mended.append(number)
                if may_repeat:  # the next one may have followed it
                    stop = max(stop, place + 1)
        return sorted(set(mended)) if len(mended) > 1 else mended

    def _touched(
        self, k: int, j: int, changed: list[int], taken: list[int], own: list[int]
    ) -> list[tuple[int, int]]:
        """Return the stretches of a list that may change, the last one first."""
        ends = self.copies[k][j]
        before = self.copies[k][j - 1] if j else self.ends[k - 1] if k else None
        stretches: list[tuple[int, int]] = []
        for number in changed if before is not None else ():
            assert before is not None
            begin = bisect_right(ends.since, number)
            after = bisect_right(before.at, number)
            is_last = after == len(before.at)
            end = len(ends.at) if is_last else bisect_right(ends.since, before.at[after])
            stretches.append((begin, end))
        for number in taken:
            begin = bisect_left(ends.at, number)
            stretches.append((begin, max(begin, bisect_right(ends.since, number))))
        for number in own:
            begin = bisect_left(ends.at, number)
            stretches.append((begin, begin + 1))
        stretches = [stretch for stretch in stretches if stretch[0] < stretch[1]]
        if len(stretches) < 2:
            return stretches
        joined: list[tuple[int, int]] = []
        for begin, end in sorted(stretches):
            if joined and begin <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((begin, end))
        return joined[::-1]

    def is_end(self, number: int, low: int) -> bool:
        """Return whether an event ends a match that begins with a number from `low` on."""
        ends = self.ends[-1]
        place = bisect_left(ends.at, number)
        return place < len(ends.at) and ends.at[place] == number and ends.start[place] >= low

    def forget(self, below: int) -> None:
        """Drop events with lower numbers: no scope reaches back to them."""
        for k, copies in enumerate(self.copies):
            for copy in copies:
                copy.cut(0, bisect_left(copy.start, below))  # its match begins there
            del self.fit[k][: bisect_left(self.fit[k], below)]
            bars = self.barred[k]
            del bars[: max(bisect_left(bars, below) - 1, 0)]
        for several in self.several.values():
            several.forget(below)
        for numbers in (self.after, *self.watched.values()):
            del numbers[: bisect_left(numbers, below)]
        self.used = {number for number in self.used if number >= below}
