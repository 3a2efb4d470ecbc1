"""One event that ends matches of a sequence in a scope, and what the lists say of these."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from runtime.patterns.chain import Chain
from runtime.patterns.naming import Holds, HoldsMany, Match, Naming, Part

Accepts: TypeAlias = Callable[[Match], bool]
"""Whether a match may leave."""


@dataclass(frozen=True)
class Ending:
    """What matches that end with one event are listed by.

    Attributes:
        chain: its lists.
        end: the event they end with.
        low: the lowest number that the scope has.
        fits: {number: what the event fits}.
        values: {number: {column: value}} of columns that must differ.
        holds: of predicates that read earlier events.
        accepts: which of them are looked for; None: all.
        latest: the last event that they may begin with; None: any.
        many: of predicates of many events at once; None: they are asked for one by one.
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
        """What tells which of the things that are asked for events are."""
        return Naming(self.chain, self.fits, self.holds, self.many, self.low)

    @cached_property
    def last(self) -> int:
        """The last place."""
        return len(self.chain.rules.places) - 1

    @property
    def is_free(self) -> bool:
        """Whether what can follow a part depends on where it stands alone."""
        return not self.chain.rules.conditions and self.accepts is None

    def part(self, number: int, k: int) -> Part:
        """Return an event at a place, as the first of what it fits there."""
        return number, k, self.chain.rules.roles(self.fits[number]).asked[k]

    def label(self, number: int, k: int) -> Any:
        """Return what an event is by at a place that takes several."""
        rules = self.chain.rules
        return rules.label(k, rules.roles(self.fits[number]).fits[k], self.values.get(number))

    def range_before(self, number: int, k: int) -> tuple[int, int]:
        """Return which of the ends of the place before an event that begins place k may follow."""
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
