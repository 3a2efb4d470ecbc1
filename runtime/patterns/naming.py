"""Names of the events of a match: the number in the pattern of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TypeAlias

from slackwater.runtime.patterns.assign import assignable, assigned
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.rules import Condition

Part: TypeAlias = tuple[int, int, int]
"""(number of the event, its place, its number in the pattern)."""
Match: TypeAlias = tuple[Part, ...]
"""From the first event to the last one."""

Holds: TypeAlias = Callable[[int, int, dict[str, int]], bool]
"""Whether a predicate is true of an event, given {name: event of that name}."""

HoldsMany: TypeAlias = Callable[[int, int, str, list[int]], "list[bool] | None"]
"""The same for many events of one name; None: they must be asked for one by one."""
_FEW = 4
"""So many predicates are asked one by one before those of all other events."""


class Naming:
    """Naming finds the names for the matches of one sequence.

    An event is the first of what it fits at its place for which predicates are true. Where several
    stand in any order it is that of an assignment: the first event has the first by name that
    leaves one for the others, and so on. So no match depends on the order in which events of
    `any_of` were written.

    Args:
        chain: the lists of the sequence.
        fits: {number: what the event fits}.
        holds: evaluates predicates that read earlier events.
        many: evaluates them for many at once; None if each is evaluated alone.
        low: the lowest number that the scope has.
    """

    def __init__(
        self,
        chain: Chain,
        fits: dict[int, tuple[int, ...]],
        holds: Holds,
        many: HoldsMany | None = None,
        low: int = 0,
    ) -> None:
        self._many, self._low = many, low
        self._missed = 0
        self._chain = chain
        self._rules = chain.rules
        self._fits = fits
        self._holds = holds
        self._known: dict[tuple[int, ...], bool] = {}

    def named(self, match: Match) -> Match:
        """Return a match with the number in the pattern of each event."""
        rules = self._rules
        if not rules.of_place and all(
            k not in rules.chosen or len(rules.roles(self._fits[number]).fits[k]) == 1
            for number, k, _ in match
        ):
            return match
        names: dict[int, int] = {}
        for k in self._rules.chosen:
            own = [number for number, place, _ in match if place == k]
            choices = self._choices(match, k, 0)
            if self._rules.is_assigned(k):
                found = assigned(choices)
                assert found is not None, "what was listed may be together"
            else:
                found = tuple(some[0] for some in choices)
            names |= dict(zip(own, found, strict=True))
        return tuple(
            (number, k, names[number]) if k in self._rules.chosen else (number, k, asked)
            for number, k, asked in match
        )

    def first_names(self, match: Match) -> Match:
        """Return a match in which each event has its first number in any assignment."""
        found = {(number, k): asked for number, k, asked in self.named(match)}
        for k in self._rules.chosen:
            if self._rules.is_assigned(k):
                own = [number for number, place, _ in match if place == k]
                choices = self._choices(match, k, 0)
                for i, number in enumerate(own):
                    found[number, k] = next(
                        one
                        for one in choices[i]
                        if assignable((*choices[:i], (one,), *choices[i + 1 :]))
                    )
        return tuple((*at, asked) for at, asked in found.items())

    def may_back(self, match: Match) -> bool:
        """Return whether the conditions may be true that the first part makes known.

        These are the conditions whose earliest place is that part's.
        """
        rules = self._rules
        if not rules.conditions:
            return True
        k = match[0][1]
        if len(match) > 1 and not self._is_next(match[0], match[1]):
            return False
        here = [one for one in rules.conditions if one.reads[0] == k]
        return self._are_true(match, here, k, range(len(match)))

    def may_on(self, match: Match) -> bool:
        """Return whether the conditions of the last part are true."""
        k = match[-1][1]
        if len(match) > 1 and not self._is_next(match[-2], match[-1]):
            return False
        here = [one for one in self._rules.conditions if one.place == k]
        return self._are_true(match, here, 0, range(len(match) - 1, len(match)))

    def _are_true(self, match: Match, here: list[Condition], first: int, which: range) -> bool:
        """Return whether conditions hold, as far as they read places from `first` on.

        Args:
            match: its parts so far, in order.
            here: conditions to be evaluated.
            first: the first place that is known.
            which: the parts before which barred events are looked for.
        """
        for k in dict.fromkeys(one.place for one in here if not one.is_bar):
            choices = self._choices(match, k, first)
            if not (assignable(choices) if self._rules.is_assigned(k) else all(choices)):
                return False
        return all(self._is_clear(one, match, which) for one in here if one.is_bar)

    def _choices(self, match: Match, place: int, first: int) -> tuple[tuple[int, ...], ...]:
        """Return the numbers that each event of a place may have."""
        conditions = self._rules.of_place.get(place, {})
        choices = []
        for number, k, _ in match:
            if k != place:
                continue
            fits = self._rules.roles(self._fits[number]).fits[k]
            if conditions:
                fits = tuple(
                    one
                    for one in fits
                    if one not in conditions
                    or conditions[one].reads[0] < first
                    or self._is_true(conditions[one], number, match)
                )
            choices.append(fits)
        return tuple(choices)

    def _is_next(self, before: Part, part: Part) -> bool:
        """Return whether no event lies between two neighbours of one place.

        Where predicates say what is the next, the lists do not know of what surely is, either.
        """
        k = part[1]
        if before[1] != k or not self._rules.goes_next or self._rules.is_strict[k]:
            return True
        fit, sure = self._chain.fit[k], self._rules.barred[k] & set(self._rules.places[k].asked)
        between = fit[bisect_right(fit, before[0]) : bisect_left(fit, part[0])]
        return all(sure.isdisjoint(self._fits[one]) for one in between)

    def _is_clear(self, bar: Condition, match: Match, which: range) -> bool:
        """Return whether no barred event comes before some parts."""
        is_own = bar.asked in self._rules.places[bar.place].asked
        numbers = self._chain.watched[bar.asked]
        for i in which:
            number, k, _ = match[i]
            # Each event must be the next: so nothing between those of one place either.
            if k != bar.place or not i or not (match[i - 1][1] < k or is_own):
                continue
            after = bisect_right(numbers, match[i - 1][0])
            for between in numbers[after : bisect_left(numbers, number)]:
                if self._is_true(bar, between, match):
                    return False
        return True

    def _is_true(self, one: Condition, number: int, match: Match) -> bool:
        at = {k: other for other, k, _ in match if k in one.reads}
        key = (one.asked, number, *(at[k] for k in one.reads))
        known = self._known.get(key)
        if known is None:
            read = {name: at[k] for name, k in self._rules.names.items() if k in at}
            known = self._known[key] = self._holds(one.asked, number, read)
            self._missed += 1
            if self._missed >= _FEW and self._many is not None and len(one.reads) == 1:
                self._ask_of_all(one, number)
        return known

    def _ask_of_all(self, one: Condition, number: int) -> None:
        """Ask whether a predicate is true of an event and all that it may read."""
        assert self._many is not None
        self._missed = 0
        (place,) = one.reads
        ends = self._chain.ends[place]
        begin, end = bisect_left(ends.start, self._low), bisect_left(ends.at, number)
        names = [name for name, k in self._rules.names.items() if k == place]
        numbers = ends.at[begin:end]
        answers = self._many(one.asked, number, names[0], numbers)
        if answers is not None:
            keys = ((one.asked, number, read) for read in numbers)
            self._known.update(zip(keys, answers, strict=True))
