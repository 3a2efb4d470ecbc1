"""Dropping pairs of an event and a window, each window by itself, as [espice] does.

It saves what an operator does for each event in each of its windows. Ours shares lists among
windows, and a window that lost other events than its neighbours needs lists of its own: see
`event_drops.py` for what saves work there.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.machine import Shedding
from slackwater.runtime.shedding.spans import Spans
from slackwater.runtime.shedding.wrapper.kept import Covered, Kept, Own
from slackwater.runtime.shedding.wrapper.open_windows import OpenWindow, covering, whole


class PairDrops:
    """PairDrops decides for each pair.

    Args:
        shedding: the load, and the shedder.
    """

    STATE = Fields()
    follows_all = True
    """Each window loses other events, so all windows are followed."""
    learns_from_trials = False
    """Some windows are kept whole, and learnt from."""

    def __init__(self, shedding: Shedding) -> None:
        self._shedding = shedding

    def keeps_whole(self, window: int, size: int) -> bool:
        """Return whether nothing is dropped of a window of so many events, whatever the load."""
        return self._shedding.keeps_whole(window, size)

    def drop(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        """Note which rows of a key its open windows lose."""
        if self._shedding.has_begun:
            self._try(own, every, covered, kept)
        pairs = int(covered.total.sum())
        if self._shedding.is_on and pairs:
            self._drop(own, every, covered, kept)
        else:
            self._shedding.count_pairs(pairs, 0, 0)

    def worked(self, events: int) -> None:
        """Count nothing: events are counted as they are asked for."""

    def learned(self, windows: int, matches: int) -> None:
        """Learn nothing."""

    def settle(self, kept: Kept) -> None:
        """Count nothing more: pairs were counted as they were dropped."""

    def _try(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        """Note the rows of windows that are tried, and the rows that these lose."""
        for one, begin, end in covered.of(every):
            if one.trial is None:
                continue
            rows = begin + np.flatnonzero(own.matters[begin:end])
            positions = own.numbers.take(rows) - one.first
            lost = np.zeros(len(rows), np.bool_)
            if not one.is_whole:
                known, events = own.known.take(rows, axis=1), own.events.take(rows)
                lost = self._shedding.would_drop(known, positions, events=events, size=one.size)
            for row, is_lost in zip(own.at.take(rows).tolist(), lost.tolist(), strict=True):
                kept.tried.setdefault(row, []).append((one.trial, is_lost))

    def _drop(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        may = np.array([not one.is_whole for one in every])
        windows = [one for one in every if not one.is_whole]
        first, end = covered.first[may], covered.end[may]
        spans = Spans(
            whole([one.first for one in windows]) - own.numbers.item(0),
            first,
            end,
            whole([one.size for one in windows]),
        )
        dropped = self._shedding.drop(own.known, spans, events=own.events)
        surely, (which, at) = dropped.surely, dropped.pairs()
        losses = np.where(surely, covering(first, end, len(own.at)), 0)
        losses += np.bincount(at, minlength=len(own.at))
        is_shed = (covered.total > 0) & (losses == covered.total)
        kept.is_shed[own.at] = is_shed
        self._shedding.count_pairs(int(covered.total.sum()), int(losses.sum()), int(is_shed.sum()))
        for index in np.flatnonzero(np.bincount(which)).tolist():
            windows[index].is_shed = True
        for one, begin, stop in zip(windows, first.tolist(), end.tolist(), strict=True):
            one.is_shed = one.is_shed or bool(surely[begin:stop].any())
        matters = own.matters & ~is_shed
        _tell(own.at, kept, matters & ~surely, windows, which, at)
        for row in np.flatnonzero(matters & surely).tolist():
            has = np.flatnonzero((first <= row) & (row < end)).tolist()
            if has:
                kept.lost[own.at.item(row)] = frozenset(windows[one].key for one in has)


def _tell(
    rows: Int64Array,
    kept: Kept,
    told: BoolArray,
    windows: list[OpenWindow],
    which: Int64Array,
    at: Int64Array,
) -> None:
    """Note for each row, if `told`, of which windows it was dropped: pairs (which, at)."""
    chosen = told[at]
    which, at = which[chosen], at[chosen]
    if not len(at):
        return
    order = at.argsort(kind="stable")
    which, at = which.take(order), at.take(order)
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    of_rows = np.split(which, begins[1:])
    for row, some in zip(rows.take(at.take(begins)).tolist(), of_rows, strict=True):
        kept.lost[row] = frozenset(windows[one].key for one in some.tolist())
