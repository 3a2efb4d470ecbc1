"""A union of all matches that end with an event: events, no list of matches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from slackwater.runtime.patterns.assign import Together, with_label
from slackwater.runtime.patterns.choose import Listing
from slackwater.runtime.patterns.naming import Match, Part
from slackwater.runtime.patterns.rules import Kind


class United(Listing):
    """A `Listing` that also has the parts of all its matches together."""

    def union(self) -> Match | None:
        """Return a match of the events of all matches; None if there are none.

        Each event has its first number of all in some of them.
        """
        last, chain = self.last, self.chain
        kind = chain.rules.kinds[last]
        if not self.is_free or not chain.rules.is_single or kind is Kind.REPEATED:
            return self._listed_union()
        parts: list[Part] = []
        if kind is Kind.ANY:
            ends = chain.ends[last]
            since = ends.since[bisect_left(ends.at, self.end)]
            parts = self._union_of_any()
        else:
            since, parts = self.end, [self.part(self.end, last)]
        alive = [since]
        for k in range(last, 0, -1):
            before = chain.ends[k - 1].at
            earlier: dict[int, None] = {}
            done = 0
            for number in alive:
                begin, end = self.range_before(number, k)
                for i in range(max(begin, done), end):
                    earlier[before[i]] = None
                done = max(done, end)
            alive = list(earlier)
            parts += [self.part(number, k - 1) for number in alive]
        return tuple(sorted(parts)) if not last or alive else None

    def _union_of_any(self) -> list[Part]:
        """Return the events of a last place that takes several which are in some match."""
        last, rules = self.last, self.chain.rules
        place, several = rules.places[last], self.chain.several[last]
        bottom = self.first_at(last) - 1
        own = self.label(self.end, last)
        beside = with_label(several.nothing, own)
        known: dict[Any, int | None] = {}
        parts: list[Part] = []
        for i in range(bisect_right(several.at, bottom), bisect_right(several.at, self.end)):
            number, label = several.at[i], several.label[i]
            is_end = number == self.end
            if place.distinct is not None:
                if is_end or with_label(beside, label) is not None:
                    parts.append(self.part(number, last))
                continue
            key = (label, is_end)
            if key not in known:
                known[key] = self._first_role(label, () if is_end else (own,), bottom, place.count)
            asked = known[key]
            if asked is not None:
                parts.append((number, last, asked))
        return parts

    def _first_role(
        self, label: tuple[int, ...], own: tuple[Any, ...], bottom: int, count: int
    ) -> int | None:
        """Return the first number of a label's events in some match; None if in none."""
        several = self.chain.several[self.last]
        end = bisect_right(several.at, self.end)
        others = several.label[bisect_right(several.at, bottom) : end]
        for asked in label:
            state: Together | None = ((asked,),)
            for one in own:
                state = with_label(state, one)
                if state is None:
                    break
            if state is None:
                continue
            left = dict.fromkeys(others, 0)
            for one in others:
                left[one] += 1
            left[label] -= 1
            for one in own:
                left[one] -= 1
            for one, many in left.items():
                for _ in range(min(many, count)):
                    more = with_label(state, one)
                    if more is None:
                        break
                    state = more
            if len(state) >= count:
                return asked
        return None

    def _listed_union(self) -> Match | None:
        labels: dict[tuple[int, int], int] = {}
        orders = self.chain.rules.orders
        for match in self.back():
            for number, k, asked in self.naming.first_names(match):
                had = labels.setdefault((number, k), asked)
                if orders[k].index(asked) < orders[k].index(had):
                    labels[number, k] = asked
        return tuple(sorted((*at, asked) for at, asked in labels.items())) or None
