"""Which matches end with an event: listed from the last event back, or from the first one on.

A match is a tuple of parts (number of the event, its place, number of what it is there). `back`
yields them the greatest first, compared from the last event back; `least` finds the least one,
compared from the first event on. The lists of a `Chain` say which events can be at a place, so
that, but for conditions, nearly nothing is tried in vain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from runtime.patterns.chain import Chain
from runtime.patterns.rules import Condition, Kind

Part: TypeAlias = tuple[int, int, int]
"""(number of the event, its place, number of what it is there)."""
Match: TypeAlias = tuple[Part, ...]
"""From the first event to the last one."""

Holds: TypeAlias = Callable[[int, int, dict[str, int]], bool]
"""Whether the predicate of what is asked is true of an event, given {name: event of that name}."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The matches of one sequence in one scope that end with one event.

    Attributes:
        chain: its lists.
        end: the event they end with.
        low: the lowest number that the scope has.
        fits: {number: what the event fits}.
        values: {number: {column: value}} of columns that must differ.
        holds: of predicates that read earlier events.
    """

    chain: Chain
    end: int
    low: int
    fits: dict[int, tuple[int, ...]]
    values: dict[int, dict[str, Any]]
    holds: Holds

    # -- from the last event back ---------------------------------------------------------

    def back(self) -> Iterator[Match]:
        """Yield all, the greatest first, compared from the last event back."""
        rules = self.chain.rules
        last = len(rules.places) - 1
        end = self._part(self.end, last)
        if rules.is_plain:
            yield from self._plain_back(last, (end,))
        elif self._may_back((end,)):
            yield from self._back(end)

    def _plain_back(self, k: int, behind: Match) -> Iterator[Match]:
        if not k:
            yield behind
            return
        ends = self.chain.ends[k - 1]
        first = bisect_left(ends.start, self.low)
        for i in range(bisect_left(ends.at, behind[0][0]) - 1, first - 1, -1):
            yield from self._plain_back(k - 1, (self._part(ends.at[i], k - 1), *behind))

    def _back(self, end: Part) -> Iterator[Match]:
        # A stack, not recursion: what is repeated may make a match of thousands of events. Matches
        # are kept back to front, so that one more costs no copy but when it leaves.
        first = _Step(None, end, 1, frozenset([self._label(end)]))
        stack = [(first, self._options_back(first))]
        while stack:
            step, options = stack[-1]
            part = next(options, None)
            if part is None:
                stack.pop()
                if step.part[1] == 0 and self._is_full(step):
                    yield tuple(step.parts())
                continue
            new = step.with_part(part, self._label(part))
            if not self.chain.rules.conditions or self._may_back(tuple(new.parts())):
                stack.append((new, self._options_back(new)))

    def _options_back(self, step: _Step) -> Iterator[Part]:
        number, k, _ = step.part
        before = self._before(number, k) if k and self._is_full(step) else iter(())
        return _merged(self._more_back(number, k, step.taken, step.labels), before)

    def _is_full(self, step: _Step) -> bool:
        """Return whether its place has all that it needs."""
        place = self.chain.rules.places[step.part[1]]
        return step.taken >= (place.count if place.is_any else place.least)

    def _more_back(self, number: int, k: int, taken: int, labels: frozenset[Any]) -> Iterator[Part]:
        """Yield what else may stand at a place, in front of an event of it; the latest first."""
        rules, chain = self.chain.rules, self.chain
        place, kind = rules.places[k], rules.kinds[k]
        if kind is Kind.ANY and taken < place.count:
            several = chain.several[k]
            top = bisect_left(several.at, number)
            bottom = bisect_left(several.at, self._first_at(k))
            is_latest, floor = True, bottom
            for i in range(top - 1, bottom - 1, -1):
                if several.label[i] in labels:
                    continue
                if not is_latest and i < floor:
                    return
                yield self._part(several.at[i], k)
                if is_latest:  # all other labels lie below it; of those below others may lack some
                    is_latest, floor = False, self._floor(k, bottom, i, place.count - taken, labels)
        elif kind is Kind.REPEATED and (place.most is None or taken < place.most):
            fit, first = chain.fit[k], chain.copies[k][0]
            top = bisect_left(fit, number)
            for i in range(top - 1, -1, -1):
                newest = bisect_right(first.at, fit[i]) - 1
                if fit[i] < self.low or newest < 0 or first.start[newest] < self.low:
                    return
                if fit[i] not in chain.used:
                    yield self._part(fit[i], k)
                if rules.is_strict[k]:
                    return

    def _floor(self, k: int, bottom: int, top: int, wanted: int, labels: frozenset[Any]) -> int:
        """Return from which index on an event leaves enough other labels below it."""
        seen: set[Any] = set()
        for i in range(bottom, top):
            label = self.chain.several[k].label[i]
            if label not in labels:
                seen.add(label)
                if len(seen) == wanted:
                    return i
        return top

    def _before(self, number: int, k: int) -> Iterator[Part]:
        """Yield what the place before may end with, in front of the first event of place k."""
        ends = self.chain.ends[k - 1]
        bars = self.chain.barred[k]
        cut = bisect_left(bars, number)
        after = bars[cut - 1] if cut else 0
        first = max(bisect_left(ends.start, self.low), bisect_left(ends.at, after))
        for i in range(bisect_left(ends.at, number) - 1, first - 1, -1):
            yield self._part(ends.at[i], k - 1)

    def _first_at(self, k: int) -> int:
        """Return the least number that an event of a place may have in this scope."""
        if not k:
            return self.low
        ends = self.chain.ends[k - 1]
        first = bisect_left(ends.start, self.low)
        return ends.at[first] + 1 if first < len(ends.at) else self.end + 1

    # -- from the first event on ----------------------------------------------------------

    def least(self) -> Match | None:
        """Return the least, compared from the first event on; None: there is none."""
        rules = self.chain.rules
        last = len(rules.places) - 1
        if rules.is_plain:
            return (*self._earliest(last), self._part(self.end, last))
        if rules.is_plain_up_to_any:
            return self._least_of_any(last)
        dead: set[tuple[int, int, int, frozenset[Any]]] = set()
        stack: list[tuple[_Step | None, Iterator[Part]]] = [(None, self._on(self.low - 1, 0))]
        while stack:
            step, options = stack[-1]
            part = next(options, None)
            if part is None:
                stack.pop()
                if step is not None and not rules.conditions:
                    dead.add(step.key)
                continue
            if step is None:
                new = _Step(None, part, 1, frozenset([self._label(part)]))
            else:
                new = step.with_part(part, self._label(part))
            if new.key in dead:
                continue
            if rules.conditions and not self._may_on(tuple(new.parts())[::-1]):
                continue
            if part[0] < self.end:
                stack.append((new, self._options_on(new)))
            elif part[1] == last and self._is_full(new):
                return tuple(new.parts())[::-1]
        return None

    def _earliest(self, places: int) -> list[Part]:
        """Return the earliest events of the first places, of which each has one."""
        parts: list[Part] = []
        number = self.low - 1
        for k in range(places):
            at = self.chain.ends[k].at
            number = at[bisect_right(at, number)]
            parts.append(self._part(number, k))
        return parts

    def _least_of_any(self, last: int) -> Match | None:
        """Return the least where the last place takes several: of each label the earliest event."""
        parts, end = self._earliest(last), self._part(self.end, last)
        several, count = self.chain.several[last], self.chain.rules.places[last].count
        at, labels = several.at, several.label
        taken = {self._label(end)}  # the last one is the end, so that no other has its label
        for i in range(bisect_left(at, parts[-1][0] + 1 if parts else self.low), len(at)):
            if len(taken) == count:
                break
            if labels[i] not in taken:
                taken.add(labels[i])
                parts.append(self._part(at[i], last))
        return (*parts, end) if len(taken) == count else None

    def _options_on(self, step: _Step) -> Iterator[Part]:
        number, k, _ = step.part
        is_on = k + 1 < len(self.chain.rules.places) and self._is_full(step)
        on = self._on(number, k + 1) if is_on else iter(())
        more = self._more_on(number, k, step.taken, step.labels)
        return _merged(more, on, is_ascending=True)

    def _more_on(self, number: int, k: int, taken: int, labels: frozenset[Any]) -> Iterator[Part]:
        """Yield what else may stand at a place, behind an event of it; the earliest first."""
        rules, chain = self.chain.rules, self.chain
        place, kind = rules.places[k], rules.kinds[k]
        if kind is Kind.ANY and taken < place.count:
            several = chain.several[k]
            top = bisect_right(several.at, self.end)
            is_last = k == len(rules.places) - 1
            final = self._label(self._part(self.end, k)) if is_last else None
            left = place.count - taken
            for i in range(bisect_right(several.at, number), top):
                label = several.label[i]
                if label in labels:
                    continue
                if is_last and (several.at[i] == self.end) != (left == 1):
                    continue  # the last one is the end, and no other is
                if is_last and left > 1 and label == final:
                    continue
                yield self._part(several.at[i], k)
        elif kind is Kind.REPEATED and (place.most is None or taken < place.most):
            fit = chain.fit[k]
            for i in range(bisect_right(fit, number), bisect_right(fit, self.end)):
                if fit[i] not in chain.used:
                    yield self._part(fit[i], k)
                if rules.is_strict[k]:
                    return

    def _on(self, number: int, k: int) -> Iterator[Part]:
        """Yield what a place may begin with, behind the last event of the place before it."""
        rules, chain = self.chain.rules, self.chain
        kind = rules.kinds[k]
        if kind is Kind.ANY:
            at = chain.several[k].at
        elif kind is Kind.REPEATED:
            at = chain.fit[k]
        else:
            at = chain.ends[k].at
        bars = chain.barred[k] if k else []
        cut = bisect_right(bars, number)
        until = min(self.end, bars[cut]) if cut < len(bars) else self.end
        begin = bisect_right(at, number)
        if k == len(rules.places) - 1 and kind is Kind.ONE:
            if until == self.end:
                yield self._part(self.end, k)
            return
        for i in range(begin, bisect_right(at, until)):
            if at[i] not in chain.used:
                yield self._part(at[i], k)

    # -- conditions -----------------------------------------------------------------------

    def _part(self, number: int, k: int) -> Part:
        return number, k, self.chain.rules.roles(self.fits[number]).asked[k]

    def _label(self, part: Part) -> Any:
        number, k, asked = part
        place = self.chain.rules.places[k]
        return asked if place.distinct is None else self.values[number][place.distinct]

    def _may_back(self, match: Match) -> bool:
        """Return whether what can be checked now that the first part is known is true.

        That are the conditions of which the earliest place that they read is that part's.
        """
        k = match[0][1]
        return all(
            self._is_true(one, match, range(len(match)))
            for one in self.chain.rules.conditions
            if one.reads[0] == k
        )

    def _may_on(self, match: Match) -> bool:
        """Return whether what the last part is subject to is true."""
        k = match[-1][1]
        return all(
            self._is_true(one, match, range(len(match) - 1, len(match)))
            for one in self.chain.rules.conditions
            if one.place == k
        )

    def _is_true(self, condition: Condition, match: Match, which: range) -> bool:
        """Return whether a condition is true of those of these parts that stand at its place.

        Args:
            condition: what to check.
            match: its parts so far, in order.
            which: the parts to look at.
        """
        rules = self.chain.rules
        at = {k: number for number, k, _ in match}
        read = {name: at[k] for name, k in rules.names.items() if k in at}
        is_own = condition.asked in rules.places[condition.place].asked
        for i in which:
            number, k, asked = match[i]
            if k != condition.place:
                continue
            if not condition.is_bar:
                if asked == condition.asked and not self.holds(asked, number, read):
                    return False
            elif i and (match[i - 1][1] < k or is_own):
                # Each event must be the next: so nothing between those of one place either.
                for between, fits in self.fits.items():
                    is_between = match[i - 1][0] < between < number and condition.asked in fits
                    if is_between and self.holds(condition.asked, between, read):
                        return False
        return True


@dataclass(frozen=True, slots=True)
class _Step:
    """A part more, in either direction, and what came before it."""

    came: _Step | None
    part: Part
    taken: int
    """How many stand at its place."""
    labels: frozenset[Any]
    """Of those."""

    @property
    def key(self) -> tuple[int, int, int, frozenset[Any]]:
        """What can follow depends on this alone, where there are no conditions."""
        return (self.part[0], self.part[1], self.taken, self.labels)

    def with_part(self, part: Part, label: Any) -> _Step:
        """Return it with one more, at its own place or another one."""
        if part[1] == self.part[1]:
            return _Step(self, part, self.taken + 1, self.labels | {label})
        return _Step(self, part, 1, frozenset([label]))

    def parts(self) -> Iterator[Part]:
        """Yield all parts, this one first."""
        step: _Step | None = self
        while step is not None:
            yield step.part
            step = step.came


def _merged(
    one: Iterator[Part], other: Iterator[Part], *, is_ascending: bool = False
) -> Iterator[Part]:
    """Yield the parts of both by number, then by place; descending unless said otherwise."""
    left, right = next(one, None), next(other, None)
    while left is not None or right is not None:
        if right is None or (left is not None and (left[:2] < right[:2]) == is_ascending):
            assert left is not None
            yield left
            left = next(one, None)
        else:
            yield right
            right = next(other, None)
