"""Candidates: for each window the times at which every type releases it.

```
type 0   e1 ------------- e2 ------------------ e3 (past the end)
releases       [~~~~~~~~~~)       [~~~~~~~~~~~~~~~~~~~~~~~~
type 1       f1 ---------------------- f2 (past the end)
releases               [~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
may close              [~~)       [~~~~~~~~~~~~~~~~~~~~~~~~   sure from e3 on
```
A span is the time from one event of a type to its next. Within it the type releases a window
wherever β makes the chance small enough for its α, which may be several times. It releases the
window for good once an event past the window's end has come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.lines import Lines
from slackwater.runtime.closing.spans import Spans
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.ranges import unfold

NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Candidates:
    """Windows that may close, with their times.

    Attributes:
        at_ns, window, until_ns: shape (candidates,): the window may close early at ticks in
            [at, until); ordered by time, then by window.
        sure_at_ns, sure_open: shape (steps,): from this tick on all windows before `open` are known
            to be complete; ascending.
    """

    at_ns: Int64Array
    window: Int64Array
    until_ns: Int64Array
    sure_at_ns: Int64Array
    sure_open: Int64Array


@dataclass(frozen=True, slots=True)
class Scope:
    """Windows to decide, and their clock.

    Attributes:
        begun: the first window of the run.
        pending: the first window that is not known to be complete, at most `first`.
        first: the first open window.
        last: the last window to decide, inclusive.
        tick_ns: the resolution of the clock.
        lead_ns: a window closes after its end less this: f, or 1 ns.
    """

    begun: int
    pending: int
    first: int
    last: int
    tick_ns: int
    lead_ns: int


def candidates_of(
    spans: Spans, lines: Lines, windows: WindowEnds, scope: Scope, *, types: int
) -> Candidates:
    """Return when windows may close.

    Args:
        spans: spans of all types.
        lines: lines of all types; a type without one releases a window only when it is sure.
        windows: the windows of the aggregate.
        scope: the windows to decide, and their clock.
        types: the number of types.

    Source: [probslack] Listing 1 and lines 8, 10 and 11 of Listing 3, for all ticks at once.
    """
    pending, first, last = scope.pending, scope.first, scope.last
    window, at_ns, until_ns = _released(spans, lines, windows, scope)
    if types == 1:
        sure_open = np.minimum(windows.first_after(spans.newest_ns), last + 1)
        before = np.maximum(np.concatenate([[pending], sure_open[:-1]]), pending)
        steps = np.flatnonzero((sure_open > before) & (spans.begin_ns < spans.end_ns[-1]))
        by_time = np.lexsort((window, at_ns))
        return Candidates(
            at_ns[by_time],
            window[by_time],
            until_ns[by_time],
            spans.begin_ns[steps],
            sure_open[steps],
        )
    passed_index, passed = _passed(spans, windows, first=pending, last=last)
    passed_at_ns = spans.begin_ns[passed_index]
    sure_at_ns, sure_open = _all_passed(passed, passed_at_ns, types=types, first=pending, last=last)
    here = passed >= first
    passed, passed_at_ns = passed[here], passed_at_ns[here]
    at, which, until = _all_released(
        np.concatenate([passed, window, window]),
        np.concatenate([passed_at_ns, at_ns, until_ns]),
        np.concatenate(
            [np.ones(len(passed) + len(window), dtype=np.int64), np.full(len(window), -1)]
        ),
        types=types,
        end_ns=int(spans.end_ns.max(initial=0)),
    )
    return Candidates(at, which, until, sure_at_ns, sure_open)


def not_before_ends(
    candidates: Candidates, windows: WindowEnds, scope: Scope, *, end_ns: int
) -> Candidates:
    """Return candidates of windows that close at their ends at the earliest, before `end_ns`.

    Rows that are heard before their event time make windows sure that have not ended.
    """

    def not_before(at_ns: Int64Array, window: Int64Array) -> Int64Array:
        on_tick: Int64Array = -(-windows.end_ns(window) // scope.tick_ns) * scope.tick_ns
        return np.maximum(at_ns, on_tick)

    at_ns = not_before(candidates.at_ns, candidates.window)
    good = np.flatnonzero(at_ns < candidates.until_ns)
    good = good[np.lexsort((candidates.window[good], at_ns[good]))]
    sure = np.arange(scope.pending, int(candidates.sure_open.max(initial=scope.pending)))
    step = np.searchsorted(candidates.sure_open, sure, side="right")
    sure_at_ns = not_before(candidates.sure_at_ns[step], sure)
    last = np.append(sure_at_ns[1:] != sure_at_ns[:-1], True)[: len(sure)] & (sure_at_ns < end_ns)
    return Candidates(
        at_ns[good],
        candidates.window[good],
        candidates.until_ns[good],
        sure_at_ns[last],
        sure[last] + 1,
    )


def _released(
    spans: Spans,
    lines: Lines,
    windows: WindowEnds,
    scope: Scope,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return (window, from, until) where a type releases it before it is sure.

    Ticks are in [from, until); a type and window may have several.
    """
    first, last, tick_ns, lead_ns = scope.first, scope.last, scope.tick_ns, scope.lead_ns
    low = np.maximum(windows.first_after(spans.newest_ns), first)
    high = np.minimum((spans.end_ns - 1 + lead_ns - windows.size_ns) // windows.slide_ns, last)
    counts = np.where(spans.end_ns > spans.begin_ns, np.maximum(high - low + 1, 0), 0)
    span, window = unfold(low, counts)
    alpha_ns = windows.end_ns(window) - spans.known_ns[span]
    index, from_ns, until_ns = lines.ranges(spans.types[span], alpha_ns)
    span, window = span[index], window[index]
    opens_ns = ((windows.end_ns(window) - lead_ns) // tick_ns + 1) * tick_ns  # t > (k − 1)·f
    known_ns = spans.known_ns[span]
    at_ns = np.maximum(np.maximum(opens_ns, known_ns + from_ns), spans.begin_ns[span])
    ends_ns = np.minimum(spans.end_ns[span], known_ns + until_ns)
    good = at_ns < ends_ns
    return window[good], at_ns[good], ends_ns[good]


def _passed(
    spans: Spans, windows: WindowEnds, *, first: int, last: int
) -> tuple[Int64Array, Int64Array]:
    """Return (span, window) of each type's first event past the end of the window.

    Spans that begin where all end are omitted: more rows may come at that tick.
    """
    after = windows.first_after(spans.newest_ns)
    before = np.concatenate([[first], after[:-1]])
    low = np.where(spans.is_first, first, np.maximum(before, first))
    high = np.minimum(after - 1, last)
    counts = np.where(spans.begin_ns < spans.end_ns[-1], np.maximum(high - low + 1, 0), 0)
    return unfold(low, counts)


def _all_passed(
    window: Int64Array, at_ns: Int64Array, *, types: int, first: int, last: int
) -> tuple[Int64Array, Int64Array]:
    """Return the steps (tick, first window not sure) at which all types have passed."""
    count = np.bincount(window - first, minlength=last - first + 1)
    latest = np.zeros(last - first + 1, dtype=np.int64)
    whole = count == types
    sure = len(whole) if bool(whole.all()) else int(np.argmin(whole))
    if not sure:
        return NONE, NONE
    latest[:] = np.iinfo(np.int64).min
    np.maximum.at(latest, window - first, at_ns)
    latest = np.maximum.accumulate(latest[:sure])
    steps = np.flatnonzero(np.concatenate([latest[1:] != latest[:-1], [True]]))
    return latest[steps], first + steps + 1


def _all_released(
    window: Int64Array, at_ns: Int64Array, change: Int64Array, *, types: int, end_ns: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return (from, window, until) where all types release the window."""
    order = np.lexsort((at_ns, window))
    window, at_ns, sums = window[order], at_ns[order], np.cumsum(change[order])
    if not len(window):
        return NONE, NONE, NONE
    starts = np.concatenate([[True], window[1:] != window[:-1]])
    before = np.where(starts, sums - change[order], 0)
    index = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    agreed = sums - before[index]
    same_next = np.concatenate([(window[1:] == window[:-1]) & (at_ns[1:] == at_ns[:-1]), [False]])
    until = np.concatenate([at_ns[1:], [end_ns]])
    until = np.where(np.concatenate([window[1:] == window[:-1], [False]]), until, end_ns)
    good = (agreed == types) & ~same_next & (at_ns < until)
    at_ns, window, until = at_ns[good], window[good], until[good]
    by_time = np.lexsort((window, at_ns))
    return at_ns[by_time], window[by_time], until[by_time]
