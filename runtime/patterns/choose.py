"""A Listing yields the matches that end with an event.

They are listed from the last event back, or from the first one on. A match is a tuple of parts
(number of the event, its place, its number in the pattern). `back` yields them the greatest first,
compared from the last event back; `least` finds the least one, compared from the first event on.
The lists of a `Chain` say which events can be at a place, so that, but for conditions, nearly
nothing is tried in vain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slackwater.runtime.patterns.assign import Together, with_label
from slackwater.runtime.patterns.ending import Ending
from slackwater.runtime.patterns.naming import Match, Part
from slackwater.runtime.patterns.rules import Kind


class Listing(Ending):
    """The matches of one sequence in one scope that end with one event."""

    # -- from the last event back ---------------------------------------------------------

    def back(self) -> Iterator[Match]:
        """Yield all, the greatest first, compared from the last event back."""
        end = self.part(self.end, self.last)
        if self.chain.rules.conditions and not self.naming.may_back((end,)):
            return
        rules = self.chain.rules
        is_plain = not rules.conditions and all(kind is Kind.ONE for kind in rules.kinds)
        for match in self._back_of_ones(end) if is_plain else self._back(end):
            if (self.latest is None or match[0][0] <= self.latest) and (
                self.accepts is None or self.accepts(match)
            ):
                yield match

    def _back_of_ones(self, end: Part) -> Iterator[Match]:
        """Yield them where each place has one event, without conditions."""
        last, chain = self.last, self.chain
        if not last:
            yield (end,)
            return
        parts: list[Part] = [end] * (last + 1)
        floors, places = [0] * (last + 1), [0] * (last + 1)
        k, number, is_new = last - 1, end[0], True
        while k < last:
            if is_new:
                floors[k], places[k] = self._range_back(number, k + 1)
            places[k] -= 1
            is_new = places[k] >= floors[k]
            if not is_new:
                k += 1
                continue
            number = chain.ends[k].at[places[k]]
            parts[k] = self.part(number, k)
            if k:
                k -= 1
            else:
                yield tuple(parts)
                is_new = False

    def _back(self, end: Part) -> Iterator[Match]:
        # A stack, not recursion: a match may have thousands of events. Matches are kept in reverse,
        # so that another part costs no copy until the match leaves.
        has_conditions = bool(self.chain.rules.conditions)
        first = Step(None, end, 1, self._beside(None, end))
        stack = [(first, self._options_back(first))]
        while stack:
            step, options = stack[-1]
            part = next(options, None)
            if part is None:
                stack.pop()
                if step.part[1] == 0 and self._is_full(step):
                    yield self.named(tuple(step.parts()))
                continue
            new = self._with(step, part)
            if not has_conditions or self.naming.may_back(tuple(new.parts())):
                stack.append((new, self._options_back(new)))

    def _options_back(self, step: Step) -> Iterator[Part]:
        number, k, _ = step.part
        if self.chain.rules.kinds[k] is Kind.ONE:
            return self._before(number, k) if k else iter(())
        before = self._before(number, k) if k and self._is_full(step) else iter(())
        return merged(self._more_back(step), before)

    def _is_full(self, step: Step) -> bool:
        place = self.chain.rules.places[step.part[1]]
        return step.taken >= (place.count if place.is_any else place.least)

    def _more_back(self, step: Step) -> Iterator[Part]:
        """Yield parts that may stand before an event at its place; the latest first."""
        rules, chain = self.chain.rules, self.chain
        number, k, _ = step.part
        place, kind = rules.places[k], rules.kinds[k]
        if kind is Kind.ANY and step.taken < place.count:
            several, wanted = chain.several[k], place.count - step.taken - 1
            bottom = self.first_at(k) - 1
            for i in range(bisect_left(several.at, number) - 1, -1, -1):
                one = several.at[i]
                if one <= bottom:
                    return
                more = with_label(step.labels, several.label[i])
                if more is not None and len(several.taken(bottom, one, more, wanted)) == wanted:
                    yield self.part(one, k)
        elif kind is Kind.REPEATED and (place.most is None or step.taken < place.most):
            fit, first = chain.fit[k], chain.copies[k][0]
            top = bisect_left(fit, number)
            for i in range(top - 1, -1, -1):
                newest = bisect_right(first.at, fit[i]) - 1
                if fit[i] < self.low or newest < 0 or first.start[newest] < self.low:
                    return
                if fit[i] not in chain.used:
                    yield self.part(fit[i], k)
                if rules.is_strict[k]:
                    return

    def _before(self, number: int, k: int) -> Iterator[Part]:
        begin, end = self._range_back(number, k)
        for one in self.sifted(k - 1, begin, end, is_back=True):
            yield self.part(one, k - 1)

    def _range_back(self, number: int, k: int) -> tuple[int, int]:
        # Matches that begin too late are left out.
        begin, end = self.range_before(number, k)
        if k == 1 and self.latest is not None and self.chain.rules.kinds[0] is Kind.ONE:
            end = min(end, bisect_right(self.chain.ends[0].at, self.latest))
        return begin, end

    # -- from the first event on ----------------------------------------------------------

    def least(self) -> Match | None:
        """Return the least match, compared from the first event on; None if none exists."""
        if self.is_free and self.chain.rules.is_single:
            kind = self.chain.rules.kinds[self.last]
            if kind is not Kind.REPEATED or not self.chain.rules.is_strict[self.last]:
                return self._least_single(kind)
        return self._least_tried()

    def _least_single(self, kind: Kind) -> Match | None:
        """Return the least match where each place but the last has one event.

        The events that an event may follow are a range of the list before, and both ends of the
        range ascend with the event. So the earliest of each range, from the last event back, is the
        least match.
        """
        last, chain = self.last, self.chain
        last_ones: list[int] = [self.end]
        if kind is Kind.REPEATED:
            first = chain.copies[last][0]
            begin = first.at[bisect_left(first.start, self.low)]
            fit, most = chain.fit[last], chain.rules.places[last].most
            some = fit[bisect_left(fit, begin) : bisect_left(fit, self.end)]
            last_ones = [*(some if most is None else some[: most - 1]), self.end]
        parts: list[Part] = []
        number = last_ones[0]
        if kind is Kind.ANY:
            ends = chain.ends[last]
            number = ends.since[bisect_left(ends.at, self.end)]
        for k in range(last, 0, -1):
            begin, end = self.range_before(number, k)
            if begin >= end:
                return None
            number = chain.ends[k - 1].at[begin]
            parts.append(self.part(number, k - 1))
        parts.reverse()
        if kind is Kind.ANY:
            place, several = chain.rules.places[last], chain.several[last]
            state = with_label(several.nothing, self.label(self.end, last))
            after = parts[-1][0] if parts else self.low - 1
            last_ones = several.taken(after, self.end, state, place.count - 1)
            if len(last_ones) < place.count - 1:
                return None
            last_ones = [*last_ones, self.end]
        parts += [self.part(one, last) for one in last_ones]
        return self.named(tuple(parts))

    def _least_tried(self) -> Match | None:
        """Return the least match: tried from the first event on, each part once."""
        dead: set[tuple[int, int, int, Together]] = set()
        has_conditions = bool(self.chain.rules.conditions)
        stack: list[tuple[Step | None, Iterator[Part]]] = [(None, self._on(self.low - 1, 0))]
        while stack:
            step, options = stack[-1]
            part = next(options, None)
            if part is None:
                stack.pop()
                if step is not None and self.is_free:
                    dead.add(step.key)
                continue
            new = self._with(step, part)
            if new.key in dead:
                continue
            if has_conditions and not self.naming.may_on(tuple(new.parts())[::-1]):
                continue
            if part[0] < self.end:
                stack.append((new, self._options_on(new)))
            elif part[1] == self.last and self._is_full(new):
                match = self.named(tuple(new.parts())[::-1])
                if self.accepts is None or self.accepts(match):
                    return match
        return None

    def _options_on(self, step: Step) -> Iterator[Part]:
        number, k, _ = step.part
        is_on = k < self.last and self._is_full(step)
        on = self._on(number, k + 1) if is_on else iter(())
        return merged(self._more_on(step), on, is_ascending=True)

    def _more_on(self, step: Step) -> Iterator[Part]:
        """Yield parts that may stand after an event at its place; the earliest first."""
        rules, chain = self.chain.rules, self.chain
        number, k, _ = step.part
        place, kind = rules.places[k], rules.kinds[k]
        if kind is Kind.ANY and step.taken < place.count:
            several = chain.several[k]
            left = place.count - step.taken - 1
            for i in range(bisect_right(several.at, number), bisect_right(several.at, self.end)):
                labels = with_label(step.labels, several.label[i])
                if labels is not None and self._may_close(several.at[i], k, labels, left):
                    yield self.part(several.at[i], k)
        elif kind is Kind.REPEATED and (place.most is None or step.taken < place.most):
            fit = chain.fit[k]
            for i in range(bisect_right(fit, number), bisect_right(fit, self.end)):
                if fit[i] not in chain.used:
                    yield self.part(fit[i], k)
                if rules.is_strict[k]:
                    return

    def _on(self, number: int, k: int) -> Iterator[Part]:
        """Yield parts that a place may begin with, after the place before it."""
        rules, chain = self.chain.rules, self.chain
        kind, place = rules.kinds[k], rules.places[k]
        if kind is Kind.ANY:
            at = chain.several[k].at
        elif kind is Kind.REPEATED:
            at = chain.fit[k]
        else:
            at = chain.ends[k].at
        bars = chain.barred[k] if k else []
        cut = bisect_right(bars, number)
        until = min(self.end, bars[cut]) if cut < len(bars) else self.end
        if k == self.last and kind is Kind.ONE:
            if until == self.end:
                yield self.part(self.end, k)
            return
        floor = self._floors[k] if self.is_free else 0
        begin = max(bisect_right(at, number), bisect_left(at, floor))
        if kind is Kind.ONE:
            for one in self.sifted(k, begin, bisect_right(at, until)):
                yield self.part(one, k)
            return
        for i in range(begin, len(at)):
            if at[i] > until:
                return
            if at[i] in chain.used:
                continue
            if kind is Kind.ANY:
                several = chain.several[k]
                labels = with_label(several.nothing, several.label[i])
                if not self._may_close(at[i], k, labels, place.count - 1):
                    continue
            yield self.part(at[i], k)

    @cached_property
    def _floors(self) -> list[int]:
        """The least number, as far as known, of the first event of each place."""
        rules, chain = self.chain.rules, self.chain
        floors = [self.low] * len(rules.places)
        number = self.end
        for k in range(self.last, -1, -1):
            kind = rules.kinds[k]
            if kind is Kind.ONE:
                floors[k] = number
            elif kind is Kind.REPEATED and not rules.is_strict[k]:
                first = chain.copies[k][0]
                at = bisect_left(first.start, self.low)
                if at == len(first.at):
                    return floors
                floors[k] = number = first.at[at]
            else:
                return floors
            if k:
                begin, end = self.range_before(number, k)
                if begin >= end:
                    return floors
                number = chain.ends[k - 1].at[begin]
        return floors

    def _may_close(self, number: int, k: int, labels: Together, left: int) -> bool:
        """Return whether a place that takes several can be filled after an event.

        Args:
            number: the number of the event.
            k: number of the place.
            labels: the labels of the events there, this event included.
            left: number of missing events.
        """
        several, alive = self.chain.several[k], self._alive[k]
        if not left:
            place = bisect_left(alive, number)
            return place < len(alive) and alive[place] == number
        known_labels: set[Any] = set()
        for one in reversed(alive):
            if one <= number:
                return False
            label = self.label(one, k)
            if label in known_labels:
                continue
            known_labels.add(label)
            more = with_label(labels, label)
            if more is not None:  # an earlier end allows fewer labels than this one
                return len(several.taken(number, one, more, left - 1)) == left - 1
        return False

    @cached_property
    def _alive(self) -> list[list[int]]:
        """The events of each place that may be its last in a match.

        Exact where each place has one event; else there may be more.
        """
        alive: list[list[int]] = [[] for _ in range(self.last)] + [[self.end]]
        for k in range(self.last, 0, -1):
            ends, bars = self.chain.ends[k - 1], self.chain.barred[k]
            firsts = self._firsts(k, alive[k])
            at = 0
            for i in range(bisect_left(ends.start, self.low), bisect_left(ends.at, self.end)):
                number = ends.at[i]
                while at < len(firsts) and firsts[at] <= number:
                    at += 1
                if at == len(firsts):
                    break
                cut = bisect_right(bars, number)
                if cut == len(bars) or bars[cut] >= firsts[at]:
                    alive[k - 1].append(number)
        return alive

    def _firsts(self, k: int, alive: list[int]) -> list[int]:
        """Return the events that may begin a place that ends with one of these."""
        kind, place = self.chain.rules.kinds[k], self.chain.rules.places[k]
        if kind is Kind.ONE or not alive:
            return alive
        if kind is Kind.REPEATED:
            some = self.chain.copies[k][0].at
            most = alive[-1] if place.least == 1 else alive[-1] - 1
        else:
            some, most = self.chain.several[k].at, alive[-1] - (1 if place.count > 1 else 0)
            ends = self.chain.ends[k]
            latest = ends.since[bisect_left(ends.at, alive[-1])]
            most = min(most, latest)
        return some[bisect_left(some, self.low) : bisect_right(some, most)]

    # -- steps ---------------------------------------------------------------------------

    def _beside(self, step: Step | None, part: Part) -> Together:
        """Return the labels of a place with another; empty for a single kind."""
        number, k, _ = part
        if self.chain.rules.kinds[k] is not Kind.ANY:
            return ()
        state = self.chain.several[k].nothing
        if step is not None and step.part[1] == k:
            state = step.labels
        return with_label(state, self.label(number, k))

    def _with(self, step: Step | None, part: Part) -> Step:
        is_same = step is not None and step.part[1] == part[1]
        taken = step.taken + 1 if step is not None and is_same else 1
        return Step(step, part, taken, self._beside(step, part))


@dataclass(frozen=True, slots=True)
class Step:
    """A part in either direction, and the step before it."""

    came: Step | None
    part: Part
    taken: int
    """The number of parts at its place."""
    labels: Together
    """Their labels, where several stand in any order."""

    @property
    def key(self) -> tuple[int, int, int, Together]:
        """The events that can follow depend on this alone, without conditions."""
        return (self.part[0], self.part[1], self.taken, self.labels)

    def parts(self) -> Iterator[Part]:
        """Yield all parts, this one first."""
        step: Step | None = self
        while step is not None:
            yield step.part
            step = step.came


def merged(
    one: Iterator[Part], other: Iterator[Part], *, is_ascending: bool = False
) -> Iterator[Part]:
    """Yield the parts of both by number, then by place; descending by default."""
    left, right = next(one, None), next(other, None)
    while left is not None or right is not None:
        if right is None or (left is not None and (left[:2] < right[:2]) == is_ascending):
            assert left is not None
            yield left
            left = next(one, None)
        else:
            yield right
            right = next(other, None)
