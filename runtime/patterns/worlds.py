"""A choice of events is a possible or a certain match, by each event's stretch.

A *world* is one way in which it may have been: a moment for each event, in its stretch. A choice is
a *possible* match if it is a match in some world, and *certain* if it is one in all of them.

```
A, no N, B        A ├───┤                     possible: A late or B early, and N outside of both
                     N ├────┤
                        ├───┤ B               certain: no; some world has N between
```

Certain is a matter of two events at a time. Possible is, too, without bars: constraints
"x before y" and "x at most so much later than y" can all be met if any two stretches allow theirs.
A barred event must be before the one *or* after the other: see `paths.py`.
"""

from __future__ import annotations

from itertools import pairwise

from slackwater.runtime.patterns.case import (
    Case,
    Edges,
    Opened,
    Stretch,
    earliest_end,
    latest_begin,
)
from slackwater.runtime.patterns.paths import is_a_way
from slackwater.runtime.patterns.stamped import BELOW, Stamped


def answer(case: Case) -> bool | None:
    """Return whether a match is certain; None if it is none in any world."""
    case = _doubtful(case)
    lies_surely = _lies_surely(case)
    if any(case.barred) or case.barred_after:
        is_possible = _may_lie(case) and is_a_way(case, lies_surely=lies_surely)
        return False if is_possible else None
    if lies_surely and _is_surely_in_order(case):
        return True
    return False if _may_lie(case) else None


def _doubtful(case: Case) -> Case:
    """Return the case without barred events that are surely elsewhere."""
    barred: list[tuple[Stamped, ...]] = [()]
    for (before, after), some in zip(pairwise(case.places), case.barred[1:], strict=True):
        first, last = latest_begin(before), earliest_end(after)
        barred.append(tuple(one for one in some if first < one.end and one.begin < last))
    barred_after = case.barred_after
    if barred_after:
        first, until = latest_begin(case.places[-1]), case.until
        barred_after = tuple(one for one in barred_after if first < one.end and one.begin < until)
    return Case(case.places, tuple(barred), barred_after, case.scope)


def _is_surely_in_order(case: Case) -> bool:
    return all(
        max(one.end for one in before) < min(one.begin for one in after)
        for before, after in pairwise(case.places)
    )


def _lies_surely(case: Case) -> bool:
    """Return whether it is in its scope in all worlds, in order or not."""
    scope, events = case.scope, case.all_events
    if isinstance(scope, Edges):
        start, end = (scope.start_ns, BELOW), (scope.end_ns, BELOW)
        return all(start <= one.begin and one.end < end for one in events)
    if isinstance(scope, Stretch):
        # Also where the last to end is the first to begin: no bound is more than half of the span.
        last, first = max(one.end for one in events), min(one.begin for one in events)
        return last[0] - first[0] <= scope.span_ns
    others = [one for one in events if one is not scope.by]
    return all(
        scope.by.is_surely_before(one) and one.end[0] - scope.by.begin[0] < scope.span_ns
        for one in others
    )


def _may_lie(case: Case) -> bool:
    """Return whether it is in order and in scope in some world, bars ignored."""
    latest = (-(2**63), BELOW)
    for some in case.places:
        if earliest_end(some) < latest:
            return False
        latest = max(latest, latest_begin(some))
    scope, events = case.scope, case.all_events
    if isinstance(scope, Edges):
        return all(one.end[0] >= scope.start_ns for one in events) and latest[0] < scope.end_ns
    if isinstance(scope, Opened) and any(
        one is not scope.by and one.end < scope.by.begin for one in events
    ):
        return False
    return latest < case.until
