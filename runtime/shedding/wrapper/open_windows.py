"""The windows of a key in the shedder: which events each has, and lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.scopes import CountWindows, TimeWindows, WindowRule
from slackwater.runtime.shedding.wrapper.what_if import Trial, trial_of


@dataclass
class OpenWindow:
    """An open window.

    Attributes:
        key: its key in the matcher of its key.
        first: the number of its first event, among those of its key.
        end: events of this number or a greater one are after it; None if it ends by time.
        end_ns: events of this time or a later one are after it; None if it ends by number.
        number: its number among all windows.
        size: the number of its events, as known or likely.
        at: the number of its first event among all events.
        is_whole: whether nothing is dropped of it, whatever the load.
        is_shed: whether something was.
        hits: facts of the events of each match, shape (1 or 2, events), see `EventKinds`, and their
            positions.
        intact: the chance that none of what was dropped of it was of a match.
        over_at: the number, among all events, of the first of its key after it; None if unknown.
        given_up: the number of the event from which on no match of it is looked for.
        trial: its events and losses, to see what these cost; None if it is not tried.
    """

    key: int
    first: int
    end: int | None
    end_ns: int | None
    number: int
    size: int
    at: int
    is_whole: bool
    is_shed: bool = False
    hits: list[tuple[Int64Array, Int64Array]] = field(default_factory=list)
    intact: float = 1.0
    over_at: int | None = None
    given_up: int | None = None
    trial: Trial | None = None


def _window_of(*fields: Any) -> OpenWindow:
    window = OpenWindow(*fields)
    if fields[-1] is not None:
        window.trial = trial_of(*fields[-1])
    return window


class KeyWindows:
    """The open windows of one key, and what is known of their events.

    Args:
        rule: how windows open and end.
    """

    STATE = Fields(
        "_keys",
        "_newest",
        "_begin",
        "last_size",
        "_known",
        "open",
        elements={"open": _window_of},
    )

    def __init__(self, rule: WindowRule) -> None:
        self._rule = rule
        self._keys = 0  # windows that are listed, as matchers count them
        self._newest: int | None = None  # the newest window by time
        self.open: list[OpenWindow] = []
        # (1 or 2, events) each, see `EventKinds`: of events from number `_begin` on
        self._known: list[Int64Array] = []
        self._held = 0  # the number of events in these
        self._begin = 0
        self.last_size = 0

    def begins(
        self, numbers: Int64Array, times: Int64Array, opens: BoolArray, *, cut_ns: int | None
    ) -> Iterator[tuple[int, int, int | None, int | None]]:
        """Yield (key, first number, end, end in ns) of windows that open with these events.

        Args:
            numbers: numbers of events, consecutive.
            times: times of events, never descending.
            opens: shape (events,), whether an event opens a window, where events do.
            cut_ns: windows by time that began by then were not seen to begin; None if there are
                none.
        """
        if cut_ns is not None and isinstance(self._rule, TimeWindows):
            newest = cut_ns // self._rule.slide_ns
            self._newest = newest if self._newest is None else max(self._newest, newest)
        rule, begin = self._rule, numbers.item(0)
        if isinstance(rule, TimeWindows):
            yield from self._by_time(rule, begin, times)
        elif isinstance(rule, CountWindows):
            first = begin + (1 - begin) % rule.every
            for number in range(first, begin + len(numbers), rule.every):
                yield self._key(), number, number + rule.size, None
        else:
            for place in np.flatnonzero(opens).tolist():
                number = begin + place
                if rule.events is not None:
                    yield self._key(), number, number + rule.events, None
                else:
                    assert rule.span_ns is not None
                    yield self._key(), number, None, times.item(place) + rule.span_ns

    def _by_time(
        self, rule: TimeWindows, begin: int, times: Int64Array
    ) -> Iterator[tuple[int, int, int | None, int | None]]:
        first = (times.item(0) - rule.size_ns) // rule.slide_ns + 1
        if self._newest is not None:
            first = max(first, self._newest + 1)
        last = times.item(-1) // rule.slide_ns
        starts = np.arange(first, last + 1) * rule.slide_ns
        places = times.searchsorted(starts)
        for key, place in zip(range(first, last + 1), places.tolist(), strict=True):
            end_ns = key * rule.slide_ns + rule.size_ns
            if times.item(place) < end_ns:
                yield key, begin + place, None, end_ns
        self._newest = last if self._newest is None else max(self._newest, last)

    def _key(self) -> int:
        self._keys += 1
        return self._keys - 1

    def ranges(self, begin: int, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return, of the events from number `begin` on, [from, to) of each open window.

        Args:
            begin: the number of the first.
            times: the time of each.
        """
        count = len(times)
        first = np.array([max(window.first - begin, 0) for window in self.open], dtype=np.int64)
        end = np.array(
            [
                min(window.end - begin, count)
                if window.end is not None
                else int(times.searchsorted(window.end_ns))  # type: ignore[arg-type]
                for window in self.open
            ],
            dtype=np.int64,
        )
        return first, np.maximum(end, first)

    def add(self, numbers: Int64Array, known: Int64Array) -> None:
        """Remember what is known of events, as long as a window has them."""
        if not self._known:
            self._begin, self._held = numbers.item(0), 0
        self._known.append(known)
        self._held += len(numbers)

    def ended(self, next_number: int, passed_ns: int) -> list[OpenWindow]:
        """Return windows that are over, and forget them.

        Args:
            next_number: the number of the next event.
            passed_ns: the next event is not before that.
        """
        over = [
            window
            for window in self.open
            if (window.end is not None and window.end <= next_number)
            or (window.end_ns is not None and window.end_ns <= passed_ns)
        ]
        if over:
            gone = {window.number for window in over}
            self.open = [window for window in self.open if window.number not in gone]
        return over

    def known_of(self, first: int, end: int) -> Int64Array:
        """Return what is known of events by number."""
        if len(self._known) > 1:
            self._known = [np.concatenate(self._known, axis=1)]
        return self._known[0][:, first - self._begin : end - self._begin]

    def give_up(self, *, keep_tried: bool = True) -> None:
        """Forget windows and their events; matches are looked for in those that are tried."""
        self.open = [window for window in self.open if keep_tried and window.trial is not None]
        for window in self.open:
            window.given_up = self.next_number if window.given_up is None else window.given_up
        if not self.open:
            self._begin, self._held, self._known = self.next_number, 0, []

    def forget(self) -> None:
        """Forget events that no open window has."""
        if not self._known:
            return
        low = min((window.first for window in self.open), default=self.next_number)
        if not self.open:
            self._begin, self._held = self.next_number, 0
            self._known = []  # events up to the next window are not remembered
        elif 2 * (low - self._begin) > self._held:
            self._known = [self.known_of(low, self.next_number).copy()]
            self._begin, self._held = low, self.next_number - low

    @property
    def next_number(self) -> int:
        """The number of the next event."""
        return self._begin + self._held

    def derive(self) -> None:  # noqa: D102
        self._held = sum(part.shape[1] for part in self._known)


def covering(first: Int64Array, end: Int64Array, rows: int) -> Int64Array:
    """Return how many of the ranges [first, end) have each row."""
    steps = np.bincount(first, minlength=rows + 1) - np.bincount(end, minlength=rows + 1)
    counts: Int64Array = np.cumsum(steps)[:rows]
    return counts


def whole(values: list[int]) -> Int64Array:
    """Return whole numbers as an array."""
    return np.array(values, dtype=np.int64)
