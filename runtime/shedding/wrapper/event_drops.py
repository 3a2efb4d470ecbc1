"""EventDrops drops an event from all windows that wait for it.

It saves work where windows share lists. An event costs the operator something if it fits a place
of the pattern while a window waits for a match; then it costs about the same however many windows
have it. So these events are the unit of load, and each is dropped whole or kept. Its worth is the
sum over all windows that wait: `runtime/shedding/event_cut.py`. In each window the worth is at
most the window's work, by events, for a window has no more than its matches to lose. It is less
when the window has lost events, for its match may not be whole any more. So the worth of one event
decides where it is little, and beyond that losses fall on few windows. Rows that fit nothing, and
rows that only forbid, are not dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.windowed import WindowMatcher
from slackwater.runtime.shedding.draws import FloatArray, draws_of_events, draws_of_windows
from slackwater.runtime.shedding.event_cut import EventCut, ranks_of
from slackwater.runtime.shedding.machine import Shedding
from slackwater.runtime.shedding.wrapper.kept import Covered, Kept, Own
from slackwater.runtime.shedding.wrapper.open_windows import OpenWindow, whole
from slackwater.runtime.shedding.wrapper.what_if import Trial

_SURE, _LEAST = 1 - 1e-9, 1e-300
_GIVEN_UP = 0.05
"""A window is given up when the chance that its match is whole is no more than this."""
_BUFFERS, _WINDOWS = 8, 256
"""Means are over so many dropping intervals, or windows."""


_Window = tuple[OpenWindow, int, int]
"""A window, and its rows: [from, to)."""


class _Asked(NamedTuple):
    """Rows of a key that cost something if a window waits.

    Attributes:
        own: the rows of the key.
        some: shape (some,), places among these.
        ranks: shape (some,), the rank of each.
        is_gone: shape (some,), which of them are to go.
        opens: places of rows that windows open with.
        total: shape (rows,), the number of windows of each row.
        windows: the windows that waited when the rows came, and where they begin and end.
        was_waiting: whether there were any.
    """

    own: Own
    some: Int64Array
    ranks: Int64Array
    is_gone: BoolArray
    opens: Int64Array
    total: Int64Array
    windows: list[_Window]
    was_waiting: bool


class _Pairs(NamedTuple):
    """Pairs of windows and rows, shape (pairs,) each: indices, and the chance of a match."""

    which: Int64Array
    at: Int64Array
    worths: FloatArray


class EventDrops:
    """EventDrops decides for each event.

    Args:
        shedding: the load, and the shedder.
        matcher_of: the matcher of a key, by its code; None if it has none yet.
        seed: the seed of the draws.
    """

    STATE = Fields("_cut", "_work", "_had")
    follows_all = True
    """An event is dropped from all windows that wait for it, so all windows are followed."""
    learns_from_trials = True
    """No window is kept whole: events are shared, so that would keep nearly all of them."""

    def __init__(
        self,
        shedding: Shedding,
        matcher_of: Callable[[int], WindowMatcher | None],
        *,
        seed: int,
    ) -> None:
        self._shedding = shedding
        self._matcher_of = matcher_of
        self._seed = seed
        self._cut = EventCut(seed=seed)
        self._work = [0.0, 0.0]  # lately: events that were asked for, and windows that opened
        self._had = [0.0, 0.0]  # lately: matches, and the windows that had them
        self._asked: list[_Asked] = []

    def keeps_whole(self, window: int, size: int) -> bool:  # noqa: D102
        # No single window is kept whole: events go from all windows alike.
        del window, size
        return False

    def drop(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        """Note which rows of a key go, if a window waits for a match."""
        matcher = self._matcher_of(own.code)
        windows: list[_Window] = []
        tried: list[tuple[OpenWindow, Trial, int, int]] = []
        if kept.is_in_gap:
            for one, begin, end in covered.of(every):
                if one.trial is not None:
                    tried.append((one, one.trial, begin, end))
            note_tried(own, tried, kept)
            return
        for one, begin, end in covered.of(every):
            is_full = matcher is not None and matcher.is_full(one.key)
            if begin < end and not is_full:
                windows.append((one, begin, end))
            # All events of a window that was given up are looked at later.
            if one.trial is not None and (not is_full or one.given_up is not None):
                tried.append((one, one.trial, begin, end))
        # The matcher sees only rows that fit, so it does not know windows that other rows opened.
        was_waiting = any(begin == 0 for _, begin, _ in windows)
        some = np.flatnonzero(own.may_match & (covered.total > 0))
        ranks, is_gone = np.zeros(len(some), np.int64), np.zeros(len(some), np.bool_)
        if self._shedding.is_dropping and windows and len(some):
            ranks, pairs = self._ranks(own, some, windows)
            is_gone = self._cut.dropped(ranks, own.events[some], share=self._shedding.share)
            kept.is_shed[own.at[some[is_gone]]] = True
            if pairs is not None and is_gone.any():
                self._wear(own, some, pairs, windows, is_gone)
        begin = own.numbers.item(0)
        opens = whole([one.first - begin for one in every if one.first >= begin])
        if not was_waiting:
            kept.is_idle[own.at[: opens.item(0) if len(opens) else None]] = True
        self._asked.append(
            _Asked(own, some, ranks, is_gone, opens, covered.total, windows, was_waiting)
        )
        if self._shedding.has_begun:
            note_tried(own, tried, kept)

    def _ranks(
        self, own: Own, some: Int64Array, windows: list[_Window]
    ) -> tuple[Int64Array, _Pairs | None]:
        low = some.searchsorted([begin for _, begin, _ in windows])
        high = some.searchsorted([end for _, _, end in windows])
        which, at = unfold(low, high - low)
        rows = some.take(at)
        worths = self._shedding.worths(
            own.known.take(rows, axis=1),
            own.numbers.take(rows) - whole([one.first for one, _, _ in windows]).take(which),
            sizes=whole([one.size for one, _, _ in windows]).take(which),
        )
        draws: FloatArray = draws_of_events(own.events.take(some), seed=self._seed)
        if worths is None:
            return ranks_of(np.ones(len(some)), draws), None
        if not self._shedding.is_by_window:
            worth: FloatArray = np.zeros(len(some))
            worth[at] = worths
            return ranks_of(worth, draws), None
        intact = np.array([one.intact for one, _, _ in windows])
        capped = np.minimum(worths, self._most_worth) * intact.take(which)
        worth = np.bincount(at, weights=capped, minlength=len(some)).astype(np.float64)
        draws = np.zeros(len(some))
        numbers = whole([one.number for one, _, _ in windows])
        np.maximum.at(draws, at, draws_of_windows(numbers, seed=self._seed).take(which))
        return ranks_of(worth, draws), _Pairs(which, at, worths)

    @property
    def _most_worth(self) -> float:
        """The most that an event of a window can be worth: work, by events.

        Dropping all events of a window saves its work, and loses no more than its matches.
        """
        events, opened = self._work
        matches, windows = self._had
        if not matches or not events:
            return 1.0
        return min((matches / windows) / (events / max(opened, 1.0)), 1.0)

    def worked(self, events: int) -> None:
        """Count nothing: events are counted as they are asked for."""

    def learned(self, windows: int, matches: int) -> None:
        """Note windows that lost nothing, and the number of their matches."""
        keep = exp(-windows / _WINDOWS)
        self._had = [keep * self._had[0] + matches, keep * self._had[1] + windows]

    def settle(self, kept: Kept) -> None:
        """Count what was dropped, now that it is known when windows waited."""
        every, self._asked = self._asked, []
        for one in every:
            self._settle(one, kept)

    def _settle(self, one: _Asked, kept: Kept) -> None:
        own, some = one.own, one.some
        done = own.at.searchsorted(whole(kept.done.get(own.code, [])))
        is_live = _waiting(some, one.opens, done, was=one.was_waiting)
        is_shed = one.is_gone & is_live
        # Nothing waited for them: nothing was lost.
        kept.is_shed[own.at[some[one.is_gone & ~is_live]]] = False
        shed = some[is_shed]
        asked = int(np.count_nonzero(is_live))
        keep = exp(-len(own.at) / (_BUFFERS * self._shedding.buffered))
        work = asked, len(one.opens)
        self._work = [keep * old + new for old, new in zip(self._work, work, strict=True)]
        self._shedding.count_events(
            int(one.total.sum()),
            int(one.total[shed].sum()),
            asked=asked,
            shed=len(shed),
        )
        if not self._shedding.is_dropping:
            return
        self._cut.saw(one.ranks[is_live], length=self._shedding.buffered)
        for window, begin, end in one.windows:
            at = shed.searchsorted(begin)
            if at < len(shed) and shed.item(at) < end:
                window.is_shed = True

    def _wear(
        self, own: Own, lost: Int64Array, pairs: _Pairs, windows: list[_Window], is_gone: BoolArray
    ) -> None:
        """Lower the chance that what windows would have had is whole.

        Windows with hardly any chance left are given up: matches found from there on would be
        false. Windows that have their match before that lose nothing.
        """
        is_lost = is_gone.take(pairs.at)
        which, at = pairs.which[is_lost], pairs.at[is_lost]
        logs = np.log1p(-np.minimum(pairs.worths[is_lost], _SURE))
        sums = np.cumsum(logs)
        before = np.concatenate([[0.0], sums])[which.searchsorted(np.arange(len(windows)))]
        intact = np.log([max(one.intact, _LEAST) for one, _, _ in windows])
        worn = sums - before.take(which) + intact.take(which)
        few = np.flatnonzero(worn < log(_GIVEN_UP))
        matcher = self._matcher_of(own.code)
        if matcher is None:
            return
        given_up, first = np.unique(which.take(few), return_index=True)
        numbers = own.numbers.take(lost.take(at.take(few.take(first))))
        for index, number in zip(given_up.tolist(), numbers.tolist(), strict=True):
            windows[index][0].given_up = number
            matcher.give_up(windows[index][0].key, number)
        left = np.exp(np.bincount(which, weights=logs, minlength=len(windows)))
        for (window, _, _), share in zip(windows, left.tolist(), strict=True):
            window.intact *= share


def note_tried(own: Own, tried: list[tuple[OpenWindow, Trial, int, int]], kept: Kept) -> None:
    """Note the events of windows that are tried, and which of them they lose."""
    for one, trial, begin, end in tried:
        rows = own.at.take(begin + np.flatnonzero(own.matters[begin:end]))
        is_lost = kept.is_shed.take(rows)
        if one.given_up is not None:
            is_lost |= own.numbers[begin:end][own.matters[begin:end]] >= one.given_up
        for row, gone in zip(rows.tolist(), is_lost.tolist(), strict=True):
            kept.tried.setdefault(row, []).append((trial, gone))


def _waiting(rows: Int64Array, opens: Int64Array, done: Int64Array, *, was: bool) -> BoolArray:
    """Return for which rows a window waited when they came.

    Args:
        rows: numbers of rows, ascending.
        opens: rows with which a window opens, that waits from then on.
        done: rows after which none waited.
        was: whether a window waited before.
    """
    changes = np.concatenate([2 * opens, 2 * done + 1])
    to = np.concatenate([np.ones(len(opens), np.bool_), np.zeros(len(done), np.bool_)])
    order = changes.argsort(kind="stable")
    states = np.concatenate([[was], to[order]])
    is_waiting: BoolArray = states[changes[order].searchsorted(2 * rows, "right")]
    return is_waiting
