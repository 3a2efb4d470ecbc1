"""Whether a choice of events is a match, if all that is known of times is a stretch for each.

A *world* is one way in which it may have been: a moment for each event, in its stretch. A choice is
a *possible* match if it is a match in some world, and *certain* if it is one in all of them.

```
A, no N, B        A ├───┤                     possible: A late or B early, and N outside of both
                     N ├────┤
                        ├───┤ B               certain: no; some world has N between
```

Certain is a matter of two events at a time. Possible is, too, where nothing is barred: constraints
"x before y" and "x at most so far behind y" can all be met if any two stretches allow theirs. What
is barred must be before the one *or* behind the other: there the moments that matter are put in
order, and places go from one to the next of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from runtime.patterns.stamped import ABOVE, BELOW, Moment, Stamped

Choice: TypeAlias = tuple[tuple[Stamped, ...], ...]
"""Of each place its events; among those of one place any order will do."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A window by event time, [start, end)."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """From the first event of a match on, so long; its end is in it."""

    span_ns: int


@dataclass(frozen=True, slots=True)
class Opened:
    """From an event on, so long; its end is not in it. The event may be of the match."""

    by: Stamped
    span_ns: int


Scope: TypeAlias = Edges | Stretch | Opened


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked.

    Attributes:
        places: the choice.
        barred: of each place what may not come between the place before and it; of the first: none.
        behind: what may not come from the last event to the end of the scope.
        scope: what it lies in.

    What is barred has no event of the choice, nor what opened the scope.
    """

    places: Choice
    barred: tuple[tuple[Stamped, ...], ...]
    behind: tuple[Stamped, ...]
    scope: Scope

    @property
    def all_events(self) -> list[Stamped]:
        """All of the choice."""
        return [one for some in self.places for one in some]


def answer(case: Case) -> bool | None:
    """Return whether a match is certain; None: it is none in any world."""
    case = _doubtful(case)
    is_free = not any(case.barred) and not case.behind
    if is_free and _is_certain(case):
        return True
    may_be = _may_lie(case) if is_free else any(_goes(case, one) for one in _lines(case))
    return False if may_be else None


def _doubtful(case: Case) -> Case:
    """Return it without what is barred, but is surely elsewhere."""
    barred: list[tuple[Stamped, ...]] = [()]
    for (before, after), some in zip(pairwise(case.places), case.barred[1:], strict=True):
        first, last = _latest_begin(before), _earliest_end(after)
        barred.append(tuple(one for one in some if first < one.end and one.begin < last))
    behind = case.behind
    if behind:
        first, until = _latest_begin(case.places[-1]), _until(case)
        behind = tuple(one for one in behind if first < one.end and one.begin < until)
    return Case(case.places, tuple(barred), behind, case.scope)


def _until(case: Case) -> Moment:
    """Return the latest that the scope may end."""
    scope = case.scope
    if isinstance(scope, Edges):
        return scope.end_ns, BELOW
    if isinstance(scope, Stretch):
        return _earliest_end(case.all_events)[0] + scope.span_ns, ABOVE
    return _earliest_end([scope.by, *case.all_events])[0] + scope.span_ns, BELOW


def _latest_begin(events: Sequence[Stamped]) -> Moment:
    return max(one.begin for one in events)


def _earliest_end(events: Sequence[Stamped]) -> Moment:
    return min(one.end for one in events)


# -- where nothing is barred ----------------------------------------------------------------


def _is_certain(case: Case) -> bool:
    for before, after in pairwise(case.places):
        if max(one.end for one in before) >= min(one.begin for one in after):
            return False
    scope, events = case.scope, case.all_events
    if isinstance(scope, Edges):
        start, end = (scope.start_ns, BELOW), (scope.end_ns, BELOW)
        return all(start <= one.begin and one.end < end for one in events)
    if isinstance(scope, Stretch):
        return all(
            one.end[0] - other.begin[0] <= scope.span_ns
            for one, other in _extremes(events)
            if one is not other
        )
    others = [one for one in events if one is not scope.by]
    return all(
        scope.by.is_surely_before(one) and one.end[0] - scope.by.begin[0] < scope.span_ns
        for one in others
    )


def _extremes(events: list[Stamped]) -> Iterator[tuple[Stamped, Stamped]]:
    """Yield those that end last with those that begin first: two of each, they may be the same."""
    last = sorted(events, key=lambda one: one.end)[-2:]
    first = sorted(events, key=lambda one: one.begin)[:2]
    return ((one, other) for one in last for other in first)


def _may_lie(case: Case) -> bool:
    latest = (-(2**63), BELOW)
    for some in case.places:
        if _earliest_end(some) < latest:
            return False
        latest = max(latest, _latest_begin(some))
    scope, events = case.scope, case.all_events
    if isinstance(scope, Edges):
        return all(one.end[0] >= scope.start_ns for one in events) and latest[0] < scope.end_ns
    if isinstance(scope, Opened) and any(
        one is not scope.by and one.end < scope.by.begin for one in events
    ):
        return False
    return latest < _until(case)


# -- where something is barred --------------------------------------------------------------


class _Line(NamedTuple):
    """All moments that matter in order, and between which of them a match has to lie.

    Moments have the positions 0, 2, …; all between two of them has one position, an odd one: there
    is room for any number of events there, in any order.
    """

    at: dict[Moment, int]  # {moment: its position}
    first: int  # of all events
    is_at_first: bool  # whether one of the first place's is just there
    end: Moment  # all events are before it

    def stretch(self, one: Stamped) -> tuple[int, int]:
        """Return the first and the last position that an event can have."""
        inside = 1 if one.off_ns else 0
        return self.at[one.begin] + inside, self.at[one.end] - inside


def _lines(case: Case) -> Iterator[_Line]:
    """Yield what is to be tried: one line in a window, else one for each first moment that matters.

    As late as something allows is best; only what may not come behind the match makes an earlier
    one better: so that it is behind the scope.
    """
    scope = case.scope
    all_of_it = [*case.all_events, *case.behind, *(one for some in case.barred for one in some)]
    if isinstance(scope, Opened):
        all_of_it.append(scope.by)
    moments = {moment for one in all_of_it for moment in (one.begin, one.end)}
    if isinstance(scope, Edges):
        start, end = (scope.start_ns, BELOW), (scope.end_ns, BELOW)
        at = _positions(moments | {start, end})
        yield _Line(at, at[start] + 1, is_at_first=False, end=end)
        return
    is_closed = isinstance(scope, Stretch)
    latest: dict[Moment, Moment] = {}  # {just before which it begins: what all is before then}
    for one in all_of_it:
        latest[one.end] = (one.end[0] + scope.span_ns, ABOVE if is_closed else BELOW)
    for one in case.behind:
        tie = BELOW if is_closed else ABOVE
        latest.setdefault((one.end[0] - scope.span_ns, tie), (one.end[0], BELOW))
    at = _positions(moments | set(latest) | set(latest.values()))
    for begin, end in latest.items():
        is_point = begin[1] not in (BELOW, ABOVE)
        yield _Line(at, at[begin] - (0 if is_point else 1), is_closed, end)


def _positions(moments: set[Moment]) -> dict[Moment, int]:
    return {moment: 2 * rank for rank, moment in enumerate(sorted(moments))}


def _goes(case: Case, line: _Line) -> bool:
    """Return whether the places can be gone through, one behind the other.

    What is kept of a place are all positions that its last event can have.
    """
    scope, first, last = case.scope, line.first, line.at[line.end] - 1
    opener = scope.by if isinstance(scope, Opened) else None
    if opener is not None:
        begin, end = line.stretch(opener)
        if not begin <= first <= end:
            return False
    places = []
    for some in case.places:
        stretches = [
            (first, first) if one is opener else _cut(line.stretch(one), first, last)
            for one in some
        ]
        if any(begin > end for begin, end in stretches):
            return False
        places.append(stretches)
    bars = _bars(case, line)
    values = {first, *(bar.begin for bar in bars), *(one for some in places for one, _ in some)}
    tried = sorted(one for one in values if first <= one <= last)
    states: set[_State] = {(first, ((0, first),) if line.is_at_first else ())}
    for k, stretches in enumerate(places):
        own = [bar for bar in bars if bar.after == k]
        ended = {
            (end, tuple(one for one in due if one[0] > k))
            for before, due in states
            for end in tried
            if before <= end and _has_room(stretches, before, dict(due).get(k, last), end)
        }
        states = {state for one in ended if (state := _passed(own, one)) is not None}
    return bool(states)


def _cut(stretch: tuple[int, int], first: int, last: int) -> tuple[int, int]:
    return max(stretch[0], first), min(stretch[1], last)


class _Bar(NamedTuple):
    """An event that may not come in between: it is before one place, or behind another."""

    begin: int
    end: int
    after: int  # the place that it may be before
    until: int | None  # the place that it may be behind; None: it is nowhere behind


_State: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""Where the last event of a place is, and by when places to come have to begin."""


def _bars(case: Case, line: _Line) -> list[_Bar]:
    """Return what may not come where.

    What may come neither in front of a place of one event nor behind it has no room there: it may
    not come from the place before that to the one behind it.
    """
    end_of_it = len(case.places)
    gaps: dict[int, tuple[Stamped, list[int]]] = {}  # {turn: the event, in front of which places}
    for k, some in enumerate((*case.barred, case.behind)):
        for one in some:
            gaps.setdefault(one.turn, (one, []))[1].append(k)
    found = []
    for one, places in gaps.values():
        runs: list[list[int]] = []
        for k in places:
            if runs and runs[-1][-1] == k - 1 and len(case.places[k - 1]) == 1:
                runs[-1].append(k)
            else:
                runs.append([k])
        for run in runs:
            until = None if run[-1] == end_of_it else run[-1]
            is_behind_all = until is None and (one.end[0], 0) >= line.end
            if not is_behind_all:
                found.append(_Bar(*line.stretch(one), run[0] - 1, until))
    return found


def _passed(bars: list[_Bar], state: _State) -> _State | None:
    """Return what is left to do for what may not come behind a place; None: it cannot be done."""
    end, due = state
    by = dict(due)
    for bar in bars:
        if bar.begin > end:
            if bar.until is None:
                return None
            by[bar.until] = min(bar.end, by.get(bar.until, bar.end))
    return end, tuple(sorted(by.items()))


def _has_room(stretches: list[tuple[int, int]], before: int, by: int, end: int) -> bool:
    """Return whether events of one place can lie in [before, end], one at `end`, one up to `by`."""
    if any(max(begin, before) > min(stop, end) for begin, stop in stretches):
        return False
    at_end = [i for i, (begin, stop) in enumerate(stretches) if begin <= end <= stop]
    if len(stretches) == 1:
        return bool(at_end) and end <= by
    early = [i for i, (begin, stop) in enumerate(stretches) if max(begin, before) <= min(stop, by)]
    return bool(at_end) and bool(early) and not (len(at_end) == 1 and at_end == early)
