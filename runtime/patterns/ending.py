"""An Ending reads the matches of a scope that end with an event from lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, TypeAlias

from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.naming import Holds, HoldsMany, Match, Naming, Part
from slackwater.runtime.patterns.rules import Kind

Accepts: TypeAlias = Callable[[Match], bool]
"""Whether a match may leave."""
_FEW = 4
"""So many events are tried one by one before a predicate is asked of all others."""


@dataclass(eq=False)
class Ending:
    """Lists of the matches that end with one event.

    Attributes:
        chain: its lists.
        end: the event they end with.
        low: the lowest number that the scope has.
        fits: {number: what the event fits}.
        values: {number: {column: value}} of columns that must differ.
        holds: evaluates predicates that read earlier events.
        accepts: tells which matches are looked for; None if all are.
        latest: the last event that they may begin with; None if any will do.
        many: evaluates predicates of many events at once; None if each is evaluated alone.
    """

    chain: Chain
    end: int
    low: int
    fits: dict[int, tuple[int, ...]]
    values: dict[int, dict[str, Any]]
    holds: Holds
    accepts: Accepts | None = None
    latest: int | None = None
    many: HoldsMany | None = None

    @cached_property
    def naming(self) -> Naming:
        """The naming, which tells each event's number in the pattern."""
        return Naming(self.chain, self.fits, self.holds, self.many, self.low)

    @property
    def last(self) -> int:  # noqa: D102
        return self.chain.rules.last

    def named(self, match: Match) -> Match:  # noqa: D102
        return self.naming.named(match) if self.chain.rules.chosen else match

    @property
    def is_free(self) -> bool:
        """Whether the events that can follow a part depend on its place alone."""
        return not self.chain.rules.conditions and self.accepts is None

    def sifted(self, k: int, begin: int, end: int, *, is_back: bool = False) -> Iterator[int]:
        """Yield a range of a place's events, without those that a predicate rules out.

        After some have been refused it is asked of all others at once.
        """
        at = self.chain.ends[k].at
        indexes = range(end - 1, begin - 1, -1) if is_back else range(begin, end)
        for i in indexes[:_FEW]:
            yield at[i]
        rest = indexes[_FEW:]
        if not rest:
            return
        allowed = self._allowed(k)
        if allowed is None:
            for i in rest:
                yield at[i]
            return
        low, high = (rest[-1], rest[0]) if is_back else (rest[0], rest[-1])
        some = allowed[bisect_left(allowed, at[low]) : bisect_right(allowed, at[high])]
        yield from reversed(some) if is_back else some

    def _allowed(self, k: int) -> list[int] | None:
        """Return the events of a place that the last event's predicate allows.

        None if it reads nothing of the place, or not of it alone.
        """
        if k not in self._known_allowed:
            self._known_allowed[k] = self._found_allowed(k)
        return self._known_allowed[k]

    @cached_property
    def _known_allowed(self) -> dict[int, list[int] | None]:
        return {}

    def _found_allowed(self, k: int) -> list[int] | None:
        rules, last = self.chain.rules, self.last
        if self.many is None or rules.kinds[last] is not Kind.ONE:
            return None
        fits = rules.roles(self.fits[self.end]).fits[last]
        condition = rules.of_place.get(last, {}).get(fits[0])
        if condition is None or len(fits) > 1 or condition.reads != (k,):
            return None
        ends = self.chain.ends[k]
        numbers = ends.at[bisect_left(ends.start, self.low) : bisect_left(ends.at, self.end)]
        (name,) = (name for name, place in rules.names.items() if place == k)
        answers = self.many(condition.asked, self.end, name, numbers)
        return None if answers is None else list(compress(numbers, answers))

    def part(self, number: int, k: int) -> Part:  # noqa: D102
        return number, k, self.chain.rules.roles(self.fits[number]).asked[k]

    def label(self, number: int, k: int) -> Any:
        """Return the label of an event at a place that takes several."""
        rules = self.chain.rules
        return rules.label(k, rules.roles(self.fits[number]).fits[k], self.values.get(number))

    def range_before(self, number: int, k: int) -> tuple[int, int]:
        """Return the range of the place before that an event at place k may follow."""
        ends, bars = self.chain.ends[k - 1], self.chain.barred[k]
        cut = bisect_left(bars, number) if bars else 0
        begin = bisect_left(ends.start, self.low)
        if cut:
            begin = max(begin, bisect_left(ends.at, bars[cut - 1]))
        return begin, bisect_left(ends.at, number)

    def first_at(self, k: int) -> int:
        """Return the least number that an event of a place may have in this scope."""
        if not k:
            return self.low
        ends = self.chain.ends[k - 1]
        first = bisect_left(ends.start, self.low)
        return ends.at[first] + 1 if first < len(ends.at) else self.end + 1
