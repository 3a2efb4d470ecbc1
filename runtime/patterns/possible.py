"""A search lists the choices of events that may be matches by clocks.

```
seq(A, B, C), C comes     B  may be before C, and after the A that is over first
                          A  may be before the B that was chosen
```

The event that comes last by its clock is in any place; places after it have events that clocks may
have put before it, so these are few. Before it any event of the scope may stand: they are listed
from the place just before it to the first one, each only if some choice continues from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Any, TypeAlias

from slackwater.runtime.patterns.case import Choice
from slackwater.runtime.patterns.stamped import ABOVE, BELOW, Lane, Moment, Stamped

NEVER, ALWAYS = (-(2**63), BELOW), (2**63, ABOVE)
_Chosen: TypeAlias = dict[int, tuple[Stamped, ...]]  # {place: its events}


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a place.

    Attributes:
        least: least number of events.
        most: most events; None: any number.
        label: returns what must differ between events; None: any events will do.
        are_together: whether events may be together, more than labels tell; None: always.
    """

    least: int
    most: int | None
    label: Callable[[Stamped], Any] | None
    are_together: Callable[[Sequence[Stamped]], bool] | None = None

    @property
    def is_one(self) -> bool:  # noqa: D102
        return self.most == 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The choices of one sequence, among the events of its lanes.

    Attributes:
        needs: the needs of each place.
        lanes: the events that fit each place.
        bars: the events that may not come before each place, whatever is chosen.
        span_ns: the most distance of two events of a choice.
        most_ns: clocks are off by no more.
        holds: given a place whose events were just chosen, and all chosen so far: whether
            predicates are true, as far as is known.
    """

    needs: Sequence[Needs]
    lanes: Sequence[Lane]
    bars: Sequence[Lane | None]
    span_ns: int
    most_ns: int
    holds: Callable[[int, _Chosen], bool]

    def having(self, place: int, event: Stamped, since_ns: int) -> Iterator[Choice]:
        """Yield all choices with an event, the last by its clock, at a place.

        None has an event that surely happened before `since_ns`. All may be in order and near
        enough, as far as two events at a time tell; choices with a barred event in between in every
        world are left out in part.
        """
        search = _Search(self, place, event, since_ns)
        if search.can_be:
            for chosen in search.choices():
                yield tuple(chosen[k] for k in range(len(self.needs)))


class _Search:
    """The search for the choices with one event at one place.

    What is left of a place is known beforehand: `least`, the least latest begin that events of the
    places up to one can have, and `most`, the greatest earliest end of those from one on. An event
    after the former and before the latter is in some choice.
    """

    def __init__(self, listing: Listing, place: int, event: Stamped, since_ns: int) -> None:
        self._of = listing
        self._since_ns = since_ns
        self._place = place
        self._event = event
        count = len(listing.needs)
        self._least = [NEVER] * (count + 1)  # of places before each
        self._most = [ALWAYS] * (count + 1)  # of places from each on
        self.can_be = self._bounds_after() and self._bounds_before()
        self._order = [*range(place, count), *range(place - 1, -1, -1)]

    def _bounds_before(self) -> bool:
        for k in range(self._place):
            least = self._begun_by(k, self._least[k])
            if least is None or least > self._event.end:
                return False
            self._least[k + 1] = least
        return self._least[self._place] <= self._most[self._place + 1]

    def _bounds_after(self) -> bool:
        for k in range(len(self._of.needs) - 1, self._place, -1):
            most = self._open_until(k, self._most[k + 1])
            if most is None or most < self._event.begin:
                return False
            self._most[k] = most
        return True

    def _begun_by(self, k: int, after: Moment) -> Moment | None:
        """Return the least latest begin of a place's events that may be after a moment."""
        of, event = self._of, self._event
        needs, lane = of.needs[k], of.lanes[k]
        low_ns = max(event.begin[0] - of.span_ns, self._since_ns)
        kept: dict[Any, Moment] = {}
        least = None
        for i in range(lane.since(max(low_ns, after[0]) - of.most_ns), len(lane.events)):
            one = lane.events[i]
            if least is not None and one.time_ns - of.most_ns > least[0]:
                break
            if one is event or one.end < after or one.end[0] < low_ns:
                continue
            label = one.turn if needs.label is None else needs.label(one)
            kept[label] = min(max(one.begin, after), kept.get(label, ALWAYS))
            if len(kept) >= needs.least:
                least = (
                    min(kept.values())
                    if needs.least == 1
                    else nsmallest(needs.least, kept.values())[-1]
                )
        return least

    def _open_until(self, k: int, until: Moment) -> Moment | None:
        """Return the greatest earliest end of a place's events that may be before a moment."""
        of, event = self._of, self._event
        needs, lane = of.needs[k], of.lanes[k]
        kept: dict[Any, Moment] = {}
        for one in lane.events[lane.since(event.begin[0] - of.most_ns) :]:
            if one is event or one.end < event.begin or one.begin > until:
                continue
            label = one.turn if needs.label is None else needs.label(one)
            kept[label] = max(min(one.end, until), kept.get(label, NEVER))
        return None if len(kept) < needs.least else nlargest(needs.least, kept.values())[-1]

    # -- listing --------------------------------------------------------------------------

    def choices(self, step: int = 0, chosen: _Chosen | None = None) -> Iterator[_Chosen]:
        """Yield all: first the event's place, then later places, then earlier ones."""
        chosen = {} if chosen is None else chosen
        if step == len(self._order):
            yield chosen
            return
        k = self._order[step]
        fixed = [self._event] if step == 0 else []
        for some in self._sets(k, fixed, chosen):
            if not self._is_near(some, chosen) or self._is_shut(k, some, chosen):
                continue
            more = {**chosen, k: tuple(sorted(some, key=lambda one: one.turn))}
            if self._of.holds(k, more):
                yield from self.choices(step + 1, more)

    def _can_have(self, k: int, chosen: _Chosen) -> list[Stamped]:
        """Return the events that a place may have beside what was chosen."""
        of = self._of
        lane = of.lanes[k]
        known = [one for some in chosen.values() for one in some] or [self._event]
        latest = max(one.begin for one in known)
        earliest = min(one.end for one in known)
        after, until = self._least[k], self._most[k + 1]
        if k < self._place:
            until = min(until, earliest)
        elif k > self._place:
            after = max(after, latest)
        if of.needs[k].is_one and k < self._place:
            after = max(after, self._shut_until(k + 1, chosen[k + 1]))
        low_ns, high_ns = max(latest[0] - of.span_ns, self._since_ns), earliest[0] + of.span_ns
        used = {one.turn for one in known}
        begin = lane.since(max(low_ns, after[0]) - of.most_ns)
        end = lane.since(min(high_ns, until[0]) + of.most_ns + 1)
        return [
            one
            for one in lane.events[begin:end]
            if after <= one.end
            and one.begin <= until
            and low_ns <= one.end[0]
            and one.begin[0] <= high_ns
            and one.turn not in used
        ]

    def _sets(self, k: int, fixed: list[Stamped], chosen: _Chosen) -> Iterator[Sequence[Stamped]]:
        """Yield sets of events for a place, no two of them with one label."""
        needs = self._of.needs[k]
        if needs.is_one:
            yield from [fixed] if fixed else ([one] for one in self._can_have(k, chosen))
            return
        groups: dict[Any, list[Stamped]] = {}
        label = needs.label or (lambda one: one.turn)
        labels = {label(one) for one in fixed}
        for one in self._can_have(k, chosen):
            if (name := label(one)) not in labels:
                groups.setdefault(name, []).append(one)
        yield from _subsets(list(groups.values()), fixed, needs)

    def _is_near(self, some: Sequence[Stamped], chosen: _Chosen) -> bool:
        """Return whether events of one place may be near enough to each other."""
        del chosen  # each event was compared with the chosen ones
        if len(some) == 1:
            return True
        latest, earliest = max(one.begin for one in some), min(one.end for one in some)
        return latest[0] - earliest[0] <= self._of.span_ns

    def _is_shut(self, k: int, some: Sequence[Stamped], chosen: _Chosen) -> bool:
        """Return whether a barred event surely lies between a place and a chosen one."""
        if k + 1 in chosen and max(one.end for one in some) < self._shut_until(
            k + 1, chosen[k + 1]
        ):
            return True
        if k - 1 not in chosen or self._of.bars[k] is None:
            return False
        return max(one.end for one in chosen[k - 1]) < self._shut_until(k, some)

    def _shut_until(self, k: int, some: Sequence[Stamped]) -> Moment:
        """Return the latest begin of barred events surely before a place.

        Events that are surely before that have it in between.
        """
        bars = self._of.bars[k]
        latest = NEVER
        if bars is None:
            return latest
        first = min(one.begin for one in some)
        for i in range(bars.since(first[0] + 1) - 1, -1, -1):
            one = bars.events[i]
            if one.time_ns < latest[0]:
                break
            if one.end < first:
                latest = max(latest, one.begin)
        return latest


def _subsets(
    groups: list[list[Stamped]], fixed: list[Stamped], needs: Needs
) -> Iterator[Sequence[Stamped]]:
    """Yield the fixed events with events of different groups, as a place needs."""
    chosen = list(fixed)
    most = len(fixed) + len(groups) if needs.most is None else needs.most

    def options(start: int) -> Iterator[tuple[int, Stamped]]:
        for j in range(start, len(groups)):
            if len(chosen) + len(groups) - j < needs.least:
                return
            for one in groups[j]:
                yield j, one

    if len(chosen) >= needs.least:
        yield tuple(chosen)
    stack = [options(0)] if len(chosen) < most else []
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            if stack:
                chosen.pop()
            continue
        chosen.append(found[1])
        if needs.are_together is not None and not needs.are_together(chosen):
            chosen.pop()
            continue
        if len(chosen) >= needs.least:
            yield tuple(chosen)
        if len(chosen) < most:
            stack.append(options(found[0] + 1))
        else:
            chosen.pop()
