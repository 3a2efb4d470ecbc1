"""Matchers of a pattern that sheds: windows may have lost events.

```
events of a read ──▶ nothing lost, nothing tried ──▶ Matchers.take, as without shedding
                └──▶ else                        ──▶ what each window has lost, and trials
```
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slackwater.runtime.model.later import Later
from slackwater.runtime.patterns.matcher import KeyMatcher
from slackwater.runtime.patterns.operator.matchers import PART, Events, Matchers
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher
from slackwater.runtime.shedding.wrapper.kept import NOTHING, Kept
from slackwater.runtime.shedding.wrapper.what_if import Seen


class SheddingMatchers(Matchers):
    """SheddingMatchers drops events of windows, and notes what windows have found.

    Args:
        settings, holds, names, is_one: arguments of the same names of Matchers; scopes are windows.
        learns: whether hits are kept.

    Attributes:
        hits: (code, match) of what left since they were last taken, if it learns.
    """

    def __init__(
        self,
        settings: Settings,
        holds: HoldsOfTurns,
        *,
        names: Sequence[str],
        is_one: bool,
        learns: bool,
    ) -> None:
        super().__init__(settings, holds, names=names, is_one=is_one)
        self._learns = learns
        self._cut_ns: int | None = None  # windows by time that began by then are given up
        self._kept: Kept | None = None  # what becomes of the rows of this read
        self.hits: list[tuple[int, Found]] = []

    def take_kept(self, events: Events, kept: Kept | None) -> list[Found]:
        """Take events, some of which windows may have lost.

        Args:
            events: events that are left.
            kept: fates of the rows of the read; None if windows are not followed.

        Returns:
            The matches that they complete.
        """
        self._kept = kept
        if kept is None or kept.is_whole:
            matches = self.take(events)
        else:
            matches = self._take_by_window(events, kept)
        self._kept = None
        return matches

    def _take_by_window(self, events: Events, kept: Kept) -> list[Found]:
        matches: list[Found] = []
        stops = self._stops(events)
        begin, count = self._first(stops), len(events)
        while begin < count:
            end = min(begin + PART, count)
            for i, code, number, time_ns, turn, fits, values in events.part(begin, end):
                place, given = events.places.item(i), self._values(values)
                for trial, is_lost in kept.tried.get(place, ()):
                    known = tuple(kept.known[:, place].tolist())
                    trial.events.append(Seen(number, time_ns, turn, fits, given, is_lost, known))
                one = self.changing(code)
                if one is None:
                    one = self._made(events, i, code, fits)
                    if one is None:
                        continue
                assert isinstance(one, WindowMatcher)
                one.open(number, time_ns, fits)
                if kept.is_in_gap and events.opens is not None and events.opens[i]:
                    self._begin(code)  # the window that opened is given up at once
                if kept.is_shed.item(place):
                    continue
                lost = kept.lost.get(place, NOTHING)
                event_matches = one.take_opened(number, time_ns, turn, fits, given, lost)
                if event_matches:
                    matches += event_matches
                    self._note_matches(code, event_matches, events, i)
                    if stops and not one.is_waiting:
                        end = stops[bisect_right(stops, i)]
                        break
                if self._waits:
                    self._push(one, code)
            begin = end
        return matches

    def give_up(self, at_ns: int) -> list[Found]:
        """Give up windows that have begun: their events are not looked at.

        Args:
            at_ns: the time of an event that is not looked at. A window that was over had all of its
                events; one by time that begins by then has begun.

        Returns:
            the matches that waited for the end of such a window.
        """
        self._cut_ns = at_ns
        matches: list[Found] = []
        for code in list(self.of_key):
            one = self.changing(code)
            assert one is not None, "its code is there"
            matches += one.decided(at_ns)
            self._begin(code)
        return matches

    def snapshot_later(self) -> Later:
        """Begin to save all matchers; see `Matchers`."""
        begun = super().snapshot_later()
        begun.plain["cut_ns"] = self._cut_ns
        return begun

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._cut_ns = state["cut_ns"]

    def _begin(self, code: int) -> KeyMatcher:
        """Return a new matcher of a key, with its windows so far given up."""
        before = self.changing(code)
        matcher = super()._begin(code)
        if self._cut_ns is not None:
            assert isinstance(matcher, WindowMatcher)
            before = matcher if before is None else before
            assert isinstance(before, WindowMatcher)
            matcher.continue_with(before.windows, self._cut_ns)
        return matcher

    def _note_matches(self, code: int, matches: list[Found], events: Events, i: int) -> None:
        self._note_decided(code, matches)
        if self._kept is not None and not self._is_waiting(code):
            self._kept.done.setdefault(code, []).append(events.places.item(i))

    def _note_decided(self, code: int, matches: list[Found]) -> None:
        if self._learns:
            self.hits += [(code, one) for one in matches]

    def _stops(self, events: Events) -> list[int]:
        stops = super()._stops(events)
        if self._kept is None or not stops or not self._kept.tried:
            return stops
        tried = events.places.searchsorted(np.sort(np.fromiter(self._kept.tried, np.int64)))
        return sorted({*stops, *tried.tolist()})
