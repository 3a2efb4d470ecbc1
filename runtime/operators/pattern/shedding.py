"""Which events of which windows are dropped, read by read; and what is learnt of windows.

```
rows of a key ──▶ windows that open ──▶ pairs of events and windows ──▶ dropped or not
matches ─────────▶ hits of their windows ──▶ windows that are over are learnt from
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.model import Batch, BoolArray, Int64Array
from runtime.operators.pattern.kinds import EventKinds
from runtime.operators.pattern.open_windows import KeyWindows, OpenWindow, covering, whole
from runtime.operators.pattern.overload import Overload, places_of
from runtime.operators.pattern.step import PatternStep
from runtime.operators.pattern.what_if import Budget, Judged, Trial
from runtime.patterns.scopes import OpenedWindows, Within
from runtime.shedding import FinishedWindows, Spans
from runtime.shedding.counts import SheddingCounts

NOTHING: frozenset[int] = frozenset()


class Kept(NamedTuple):
    """What becomes of rows.

    Attributes:
        known: shape (1 or 2, rows), what is known of each row, see `EventKinds`.
        is_shed: shape (rows,): no window of theirs keeps them.
        lost: {row: keys of the windows that it is dropped of}, of those that fit something and are
            not shed.
        tried: {row: of windows that are tried the trial, and whether it loses it}.
    """

    known: Int64Array
    is_shed: BoolArray
    lost: dict[int, frozenset[int]]
    tried: dict[int, list[tuple[Trial, bool]]]


class _Own(NamedTuple):
    """The rows of one key in a read; shape (rows,) each, but what is known: (1 or 2, rows)."""

    at: Int64Array
    numbers: Int64Array
    times: Int64Array
    known: Int64Array
    opens: BoolArray
    events: Int64Array
    matters: BoolArray


class WindowShedding:
    """The shedding of one operator, over all keys.

    Args:
        step: with `shed`.
    """

    def __init__(self, step: PatternStep) -> None:
        assert step.shed is not None
        assert not isinstance(step.scope, Within)
        self._rule = step.scope
        self._opens = step.scope.asked if isinstance(step.scope, OpenedWindows) else None
        self._kinds = EventKinds(step)
        self._of_key: dict[int, KeyWindows] = {}
        self._numbers = 0  # of windows so far
        self._overload = Overload(step.shed, self._kinds.repetitions)
        self._budget = Budget()

    @property
    def counts(self) -> SheddingCounts:
        """What it has come to."""
        return self._overload.counts

    @property
    def kept(self) -> int:
        """Pairs so far of events and windows that were not dropped."""
        return self._overload.kept

    @property
    def shed(self) -> int:
        """Events so far that no window of theirs kept."""
        return self._overload.shed

    def took(self, took_ns: int, idle_ns: int) -> None:
        """Note how long the last slice took, and how long the slot was idle so far."""
        self._overload.took(took_ns, idle_ns)

    def reckon_with(self, rest_ns: int) -> None:
        """Count what events still take behind this operator, up to egress."""
        self._overload.reckon_with(rest_ns)

    def look(self, rows: Batch, now_ns: int) -> None:
        """Take note of rows that come, and say anew what is dropped."""
        self._overload.look(rows, now_ns)

    def dropped(
        self,
        rows: Batch,
        codes: Int64Array,
        numbers: Int64Array,
        events: Int64Array,
        places: Int64Array,
        fits: list[tuple[int, ...]],
    ) -> Kept:
        """Let windows open, and return what is dropped.

        Args:
            rows: in order.
            codes: shape (rows,), of their keys.
            numbers: shape (rows,), among the events of their keys.
            events: shape (rows,), among all.
            places: which rows fit something.
            fits: of these, what.
        """
        known = self._kinds.of(rows, places, fits)
        opens = np.zeros(len(rows), dtype=np.bool_)
        if self._opens is not None:
            opens[places] = [self._opens in one for one in fits]
        kept = Kept(known, np.zeros(len(rows), dtype=np.bool_), {}, {})
        matters = np.zeros(len(rows), dtype=np.bool_)
        matters[places] = True
        times = rows.event_time_ns
        order = codes.argsort(kind="stable")
        ordered = codes.take(order)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        for at, code in zip(
            np.split(order, begins[1:]), ordered.take(begins).tolist(), strict=True
        ):
            own = _Own(
                at,
                numbers.take(at),
                times.take(at),
                known.take(at, axis=1),
                opens.take(at),
                events.take(at),
                matters.take(at),
            )
            self._of_one(code, own, kept)
        return kept

    def _of_one(self, code: int, own: _Own, kept: Kept) -> None:
        windows = self._of_key.get(code)
        if windows is None:
            if self._opens is not None and not own.opens.any():
                return
            windows = self._of_key[code] = KeyWindows(self._rule)
        if self._overload.has_begun:
            self._budget.came(len(own.at), int(np.count_nonzero(own.matters)))
        for key, low, end, end_ns in windows.begins(own.numbers, own.times, own.opens):
            size = end - low if end is not None else windows.last_size or self._overload.size
            number, self._numbers = self._numbers, self._numbers + 1
            whole = self._overload.keeps_whole(number)
            windows.open.append(OpenWindow(key, low, end, end_ns, number, size, whole))
            if self._overload.has_begun and self._budget.takes(size):
                windows.open[-1].trial = Trial()
        if not windows.open:
            return
        windows.add(own.numbers, own.known)
        begin = own.numbers.item(0)
        first, behind = windows.ranges(begin, own.times)
        for one, at_end in zip(windows.open, behind.tolist(), strict=True):
            if one.end is None and at_end < len(own.at):
                one.end = begin + at_end  # from now on it is known
        if self._overload.has_begun:
            self._try(own, windows.open, first, behind, kept)
        total = covering(first, behind, len(own.at))
        pairs = int(total.sum())
        if self._overload.is_on and pairs:
            self._drop(own, windows.open, first, behind, total, kept)
        else:
            self._overload.count(pairs, 0, 0)

    def _try(
        self,
        own: _Own,
        every: list[OpenWindow],
        first: Int64Array,
        behind: Int64Array,
        kept: Kept,
    ) -> None:
        """Note what windows that are tried have, and what they lose of it."""
        for one, begin, end in zip(every, first.tolist(), behind.tolist(), strict=True):
            if one.trial is None:
                continue
            rows = begin + np.flatnonzero(own.matters[begin:end])
            positions = own.numbers.take(rows) - one.first
            lost = self._overload.would_drop(
                own.known.take(rows, axis=1), positions, events=own.events.take(rows), window=one
            )
            for row, is_lost in zip(own.at.take(rows).tolist(), lost.tolist(), strict=True):
                kept.tried.setdefault(row, []).append((one.trial, is_lost))

    def _drop(
        self,
        own: _Own,
        every: list[OpenWindow],
        first: Int64Array,
        behind: Int64Array,
        total: Int64Array,
        kept: Kept,
    ) -> None:
        """Drop pairs of the rows of a key and its open windows, each of which has [first, behind).

        `total` is how many windows have each row.
        """
        may = np.array([not one.is_whole for one in every])
        windows = [one for one in every if not one.is_whole]
        first, behind = first[may], behind[may]
        spans = Spans(
            whole([one.first for one in windows]) - own.numbers.item(0),
            first,
            behind,
            whole([one.size for one in windows]),
        )
        dropped = self._overload.drop(own.known, spans, events=own.events)
        surely, (which, at) = dropped.surely, dropped.pairs()
        losses = np.where(surely, covering(first, behind, len(own.at)), 0)
        losses += np.bincount(at, minlength=len(own.at))
        is_shed = (total > 0) & (losses == total)
        kept.is_shed[own.at] = is_shed
        self._overload.count(int(total.sum()), int(losses.sum()), int(is_shed.sum()))
        for index in np.flatnonzero(np.bincount(which)).tolist():
            windows[index].is_shed = True
        for one, begin, end in zip(windows, first.tolist(), behind.tolist(), strict=True):
            one.is_shed = one.is_shed or bool(surely[begin:end].any())
        told = own.matters & ~is_shed
        self._tell(own.at, kept, told & ~surely, windows, which, at)
        for row in np.flatnonzero(told & surely).tolist():
            has = np.flatnonzero((first <= row) & (row < behind)).tolist()
            if has:
                kept.lost[own.at.item(row)] = frozenset(windows[one].key for one in has)

    @staticmethod
    def _tell(
        rows: Int64Array,
        kept: Kept,
        told: BoolArray,
        windows: list[OpenWindow],
        which: Int64Array,
        at: Int64Array,
    ) -> None:
        """Say of each row that is to be told of which windows it was dropped: pairs (which, at)."""
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

    # -- learning -----------------------------------------------------------------------

    def hit(self, code: int, window: int, numbers: Int64Array, known: Int64Array) -> None:
        """Take note of a match of a window: its events' numbers, and what is known of them."""
        windows = self._of_key.get(code)
        if windows is None:
            return
        for one in windows.open:
            if one.key == window:
                if not one.is_shed:
                    one.hits.append((known, numbers - one.first))
                return

    def judged(self, what: Judged) -> None:
        """Count what shedding cost a window that was tried."""
        self._overload.judged(what)

    def turns_tried(self) -> list[int]:
        """Return the places in the stream of events that a trial has."""
        return [
            seen.turn
            for windows in self._of_key.values()
            for one in windows.open
            for seen in (() if one.trial is None else one.trial.events)
        ]

    def finish(self, codes: Sequence[int], passed_ns: int) -> list[Trial]:
        """Learn from windows of these keys that are over; return the trials of these."""
        over: list[tuple[OpenWindow, int, Int64Array]] = []
        tried: list[Trial] = []
        for code in codes:
            windows = self._of_key.get(code)
            if windows is None:
                continue
            behind = windows.behind
            for one in windows.ended(behind, passed_ns):
                end = one.end if one.end is not None else behind
                size = end - one.first
                if one.end_ns is not None:
                    windows.last_size = size
                if one.trial is not None and one.trial.events:
                    tried.append(one.trial)
                if not one.is_shed and size > 0:
                    over.append((one, size, windows.known_of(one.first, end)))
            windows.forget()
        if over:
            self._overload.learn(self._finished(over))
        return tried

    def _finished(self, over: list[tuple[OpenWindow, int, Int64Array]]) -> FinishedWindows:
        sampled = self._overload.samples(np.array([one.number for one, _, _ in over]))
        hits = [
            (index, known, positions)
            for index, (one, _, _) in enumerate(over)
            for known, positions in one.hits
        ]
        every = [
            (index, known, np.arange(size))
            for index, (_, size, known) in enumerate(over)
            if sampled[index]
        ]
        return FinishedWindows(
            sizes=np.array([size for _, size, _ in over], dtype=np.int64),
            hits=places_of(hits),
            matches=np.repeat(np.arange(len(hits)), [len(positions) for _, _, positions in hits]),
            sampled=sampled,
            events=places_of(every),
        )

    def keep(self, moved: dict[int, int]) -> None:
        """Forget all keys but these: {old code: new code}."""
        self._of_key = {moved[code]: one for code, one in self._of_key.items() if code in moved}

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values."""
        return {
            "overload": self._overload.snapshot(),
            "of_key": [[code, one.snapshot()] for code, one in self._of_key.items()],
            "numbers": self._numbers,
            "budget": self._budget.snapshot(),
            "kinds": self._kinds.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._overload.restore(state["overload"])
        self._numbers = state["numbers"]
        self._budget.restore(state["budget"])
        self._kinds.restore(state["kinds"])
        for code, one in state["of_key"]:
            self._of_key[code] = KeyWindows(self._rule)
            self._of_key[code].restore(one)
