"""A search of paths decides whether a choice is a match in some world.

The moments that matter (where stretches begin and end, edges of scopes) are put on a line. What is
between two of them is one position, with room for any number of events in any order. The choice
goes along the line from place to place:

```
A, no N, B      A ├─────────┤              A here: N may be before it, B anywhere from it on
                      N ├───┼────┤         A here: N is after it, so B must be at most here
                  ▲     ▲        ▲
```

A way is known by its position, and by when places to come have to begin. Of all ways with the same
of the latter the one that is least far is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from slackwater.runtime.patterns.case import Case, Edges, Opened, Stretch
from slackwater.runtime.patterns.stamped import ABOVE, BELOW, Moment, Stamped


def is_a_way(case: Case, *, lies_surely: bool) -> bool:
    """Return whether the choice can be a match.

    Args:
        case: the choice, and the events that may forbid it.
        lies_surely: whether it is in its scope in all worlds.
    """
    is_free = lies_surely and not case.barred_after
    lines = [_free_line(case)] if is_free else _lines(case)
    return any(_goes(case, line) for line in lines)


class _Line(NamedTuple):
    """The moments that matter, in order, and the bounds of a match.

    Moments have the positions 0, 2, …; what is between two of them an odd one.
    """

    at: dict[Moment, int]  # {moment: its position}
    first: int  # the first position of all events
    last: int  # the last position of all events
    until: Moment  # the end of the scope: events there or later are out of it
    is_tied: bool  # whether the scope begins at `first`, with an event

    def stretch(self, one: Stamped) -> tuple[int, int]:
        """Return the first and the last position that an event can have."""
        inside = 1 if one.off_ns else 0
        return self.at[one.begin] + inside, self.at[one.end] - inside


def _events(case: Case) -> list[Stamped]:
    events = [*case.all_events, *case.barred_after, *(one for some in case.barred for one in some)]
    return [*events, case.scope.by] if isinstance(case.scope, Opened) else events


def _free_line(case: Case) -> _Line:
    at = _positions({moment for one in _events(case) for moment in (one.begin, one.end)})
    return _Line(at, 0, 2 * len(at), (2**63, ABOVE), is_tied=False)


def _lines(case: Case) -> Iterator[_Line]:
    """Yield the lines to be tried: one in a window, else several.

    As late as something allows is best; only barred events after the match make an earlier moment
    better: so that they are after the scope.
    """
    scope, events = case.scope, _events(case)
    moments = {moment for one in events for moment in (one.begin, one.end)}
    if isinstance(scope, Edges):
        start, end = (scope.start_ns, BELOW), (scope.end_ns, BELOW)
        at = _positions(moments | {start, end})
        yield _Line(at, at[start] + 1, at[end] - 1, end, is_tied=False)
        return
    is_closed = isinstance(scope, Stretch)
    latest: dict[Moment, Moment] = {}  # {just before which it begins: the end that it has then}
    for one in events:
        latest[one.end] = (one.end[0] + scope.span_ns, ABOVE if is_closed else BELOW)
    for one in case.barred_after:
        tie = BELOW if is_closed else ABOVE
        latest.setdefault((one.end[0] - scope.span_ns, tie), (one.end[0], BELOW))
    at = _positions(moments | set(latest) | set(latest.values()))
    for begin, end in latest.items():
        is_one_event = begin[1] not in (BELOW, ABOVE)
        yield _Line(at, at[begin] - (0 if is_one_event else 1), at[end] - 1, end, is_tied=True)


def _positions(moments: set[Moment]) -> dict[Moment, int]:
    return {moment: 2 * rank for rank, moment in enumerate(sorted(moments))}


_Due: TypeAlias = tuple[tuple[int, int], ...]
"""(place to come, the last position that one of its events may have), by place."""


def _goes(case: Case, line: _Line) -> bool:
    """Return whether the choice can go along a line."""
    scope, first, last = case.scope, line.first, line.last
    opener = scope.by if isinstance(scope, Opened) and line.is_tied else None
    if opener is not None:
        begin, end = line.stretch(opener)
        if not begin <= first <= end:
            return False
    # With a scope from the first event on, an event of the first place is at `first`.
    due: _Due = ((0, first),) if line.is_tied and isinstance(scope, Stretch) else ()
    ways = {due: first}  # {what is due: the least position that the last event can have}
    bars = _bars(case, line)
    for k, some in enumerate(case.places):
        stretches = [(first, first) if one is opener else line.stretch(one) for one in some]
        stretches = [(max(begin, first), min(end, last)) for begin, end in stretches]
        own = [bar for bar in bars if bar.after == k]
        ways = _gone_on(ways, stretches, own, k, last)
    return bool(ways)


class _Bar(NamedTuple):
    """A barred event: it must be before one place, or after another."""

    begin: int
    end: int
    after: int  # the place that it may be before
    until: int | None  # the place that it may be after; None: it may be after none


def _gone_on(
    ways: dict[_Due, int], stretches: list[tuple[int, int]], bars: list[_Bar], k: int, last: int
) -> dict[_Due, int]:
    """Return the ways that lead on through a place.

    Its last event is as early as can be, or just so late that a barred event may be before it.
    """
    ways_on: dict[_Due, int] = {}
    for due, before in ways.items():
        by = dict(due).get(k, last)
        earliest = max(before, *(begin for begin, _ in stretches))
        for end in {earliest, *(bar.begin for bar in bars if bar.begin > earliest)}:
            if _has_room(stretches, before, by, end):
                more = _passed(bars, end, {place: one for place, one in due if place > k})
                if more is not None:
                    ways_on[more] = min(end, ways_on.get(more, end))
    return ways_on


def _passed(bars: list[_Bar], end: int, due: dict[int, int]) -> _Due | None:
    """Return what is due after a place that ends at `end`; None: impossible."""
    for bar in bars:
        if bar.begin > end:
            if bar.until is None:
                return None
            due[bar.until] = min(bar.end, due.get(bar.until, bar.end))
    return tuple(sorted(due.items()))


def _has_room(stretches: list[tuple[int, int]], before: int, by: int, end: int) -> bool:
    """Return whether a place's events fit in [before, end].

    One must be at `end`, and one at `by` or before.
    """
    if any(max(begin, before) > min(stop, end) for begin, stop in stretches):
        return False
    at_end = [i for i, (begin, stop) in enumerate(stretches) if begin <= end <= stop]
    if len(stretches) == 1:
        return bool(at_end) and end <= by
    early = [i for i, (begin, stop) in enumerate(stretches) if max(begin, before) <= min(stop, by)]
    return bool(at_end) and bool(early) and not (len(at_end) == 1 and at_end == early)


def _bars(case: Case, line: _Line) -> list[_Bar]:
    """Return the bars of a case.

    An event that may come neither before nor after a place of one event has no room there: it may
    not come from the place before that to the one after it.
    """
    end_of_it = len(case.places)
    gaps: dict[int, tuple[Stamped, list[int]]] = {}  # {turn: event, barred before which}
    for k, some in enumerate((*case.barred, case.barred_after)):
        for one in some:
            gaps.setdefault(one.turn, (one, []))[1].append(k)
    bars = []
    for one, places in gaps.values():
        runs: list[list[int]] = []
        for k in places:
            if runs and runs[-1][-1] == k - 1 and len(case.places[k - 1]) == 1:
                runs[-1].append(k)
            else:
                runs.append([k])
        for run in runs:
            until = None if run[-1] == end_of_it else run[-1]
            is_after_all = until is None and (one.end[0], 0) >= line.until
            if not is_after_all:
                bars.append(_Bar(*line.stretch(one), run[0] - 1, until))
    return bars
