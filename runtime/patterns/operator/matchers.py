"""The matchers of all keys: events in order in, matches out.

A heap has the keys that wait for time to pass. An event that comes while no window waits for a
match changes nothing. Where all rows are together (no keys), and it is known with which of them
windows open, such events are passed over, all up to the next that opens a window.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Column, Int64Array
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.model.later import Later
from slackwater.runtime.operators.ground.of_keys import OfKeys
from slackwater.runtime.patterns.matcher import KeyMatcher
from slackwater.runtime.patterns.operator.saved_matchers import SavedMatchers, restored_matchers
from slackwater.runtime.patterns.reach import ReachMatcher
from slackwater.runtime.patterns.rules import MOST_ROLES
from slackwater.runtime.patterns.scopes import Within
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher

PART = 64
"""Events that are looked at together: when nothing waits any more, the rest was read in vain."""


@dataclass(frozen=True)
class Events:
    """Events that fit something, or that windows open with, in order.

    Attributes:
        rows: their rows.
        places: shape (events,), their places in the read.
        codes: shape (events,), the codes of their keys.
        numbers: shape (events,), their numbers among their key's events.
        turns: shape (events,), their places in the stream.
        kinds: shape (events,), the kind of each.
        of_kind: the numbers that each kind fits.
        opens: shape (events,), which of them windows open with; None if windows open with no
            events.
        values: the columns that must differ.
    """

    rows: Batch
    places: Int64Array
    codes: Int64Array
    numbers: Int64Array
    turns: Int64Array
    kinds: Int64Array
    of_kind: list[tuple[int, ...]]
    opens: BoolArray | None
    values: Sequence[Column]

    def __len__(self) -> int:
        return len(self.kinds)

    def part(
        self, begin: int, end: int
    ) -> Iterator[tuple[int, int, int, int, int, tuple[int, ...], tuple[Any, ...]]]:
        """Yield the index, key, number, time, turn, fits, and values of each event."""
        columns = [column[begin:end].tolist() for column in self.values]
        return zip(
            range(begin, end),
            self.codes[begin:end].tolist(),
            self.numbers[begin:end].tolist(),
            self.rows.event_time_ns[begin:end].tolist(),
            self.turns[begin:end].tolist(),
            map(self.of_kind.__getitem__, self.kinds[begin:end].tolist()),
            zip(*columns, strict=True) if columns else repeat(()),
            strict=False,
        )


class Matchers:
    """Matchers gives each event to the matcher of its key.

    It packs itself: events of all matchers are saved in columns.

    Args:
        settings: the settings of all keys.
        holds: evaluates predicates that read earlier events.
        names: the columns that must differ.
        is_one: whether all rows are of one key.

    Attributes:
        of_key: {code: its matcher}.
    """

    def __init__(
        self,
        settings: Settings,
        holds: HoldsOfTurns,
        *,
        names: Sequence[str],
        is_one: bool,
    ) -> None:
        self._settings = settings
        self._holds = holds
        self._names = names
        self._is_one = is_one
        self._waits = settings.waits
        self._begins: dict[tuple[int, ...], bool] = {}
        self._due: list[tuple[int, int]] = []  # heap of (when, key): keys that wait, or did
        self.of_key = OfKeys[KeyMatcher]()
        self._saving: SavedMatchers | None = None

    def changing(self, code: int) -> KeyMatcher | None:
        """Return the matcher of a key, which may change; None if it has none."""
        self._will_change((code,))
        return self.of_key.get(code)

    def _will_change(self, codes: Iterable[int]) -> None:
        self._saving = self.of_key.save_before(codes, self._saving)

    def windowed(self, code: int) -> WindowMatcher | None:
        """Return the matcher of a key with windows; see `changing`."""
        matcher = self.changing(code)
        assert matcher is None or isinstance(matcher, WindowMatcher)
        return matcher

    def take(self, events: Events) -> list[Found]:
        """Take events; return the matches that they complete."""
        matches: list[Found] = []
        stops = self._stops(events)
        begin, count = self._first(stops), len(events)
        opens, resting = events.opens, set[int]()  # keys of which no window waits
        if self._saving is not None:
            self._will_change(events.codes.tolist())
        while begin < count:
            end = min(begin + PART, count)
            for i, code, number, time_ns, turn, fits, values in events.part(begin, end):
                if code in resting:
                    if opens is not None and not opens[i]:
                        continue
                    resting.remove(code)
                matcher = self.of_key.get(code)
                if matcher is None:
                    matcher = self._made(events, i, code, fits)
                    if matcher is None:
                        continue
                event_matches = matcher.take(number, time_ns, turn, fits, self._values(values))
                if self._waits:
                    self._push(matcher, code)
                if not event_matches:
                    continue
                matches += event_matches
                self._note_matches(code, event_matches, events, i)
                if opens is None or self._is_waiting(code):
                    continue
                if stops:
                    end = stops[bisect_right(stops, i)]
                    break
                resting.add(code)
            begin = end
        return matches

    def _note_matches(self, code: int, matches: list[Found], events: Events, i: int) -> None:
        """Note the matches that the event at `i` has completed, for a subclass."""

    def _note_decided(self, code: int, matches: list[Found]) -> None:
        """Note matches that had waited for the end of a scope, for a subclass."""

    def decided(self, passed_ns: int) -> list[Found]:
        """Return the matches that waited for the end of a scope that is over."""
        matches: list[Found] = []
        while self._due and self._due[0][0] < passed_ns:
            _, code = heapq.heappop(self._due)
            matcher = self.changing(code)
            assert matcher is not None, "it waits"
            key_matches = matcher.decided(passed_ns)
            matches += key_matches
            self._note_decided(code, key_matches)
            self._push(matcher, code)
        return matches

    def _values(self, values: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return {name: value} of a row; None if matchers need no values."""
        if not values:
            return None
        if len(values) == 1:
            return {self._names[0]: values[0]}
        return dict(zip(self._names, values, strict=True))

    def _stops(self, events: Events) -> list[int]:
        """Return the events that are never passed over, and the end; empty if none are."""
        if not self._is_one or events.opens is None:
            return []
        return [*np.flatnonzero(events.opens).tolist(), len(events)]

    def _first(self, stops: list[int]) -> int:
        return stops[0] if stops and not self._is_waiting(0) else 0

    def _is_waiting(self, code: int) -> bool:
        matcher = self.windowed(code)
        return matcher is not None and matcher.is_waiting

    def _made(self, events: Events, i: int, code: int, fits: tuple[int, ...]) -> KeyMatcher | None:
        """Return a matcher for a key, if its first event can begin something."""
        may = self._begins.get(fits)
        if may is None:
            may = any(0 in rules.roles(fits).asked for rules in self._settings.rules)
            if len(self._begins) >= MOST_ROLES:
                self._begins.clear()
            self._begins[fits] = may
        if not may and (events.opens is None or not events.opens[i]):
            return None  # there is no begun match that the event could continue
        return self._begin(code)

    def _begin(self, code: int) -> KeyMatcher:
        """Return a new matcher of a key, which is its matcher from now on."""
        matcher = self._new_matcher(code)
        self.of_key.add(matcher)
        if self._saving is not None:
            self._saving.began(matcher)
        return matcher

    def _push(self, matcher: KeyMatcher, code: int) -> None:
        due_ns = matcher.waiting.due_ns
        if due_ns is not None:
            heapq.heappush(self._due, (due_ns, code))

    # -- state --------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Windows, or events that may end a match, that wait for a scope's end."""
        own = map(self.of_key.get, {code for _, code in self._due})
        return sum(matcher.ends_waiting for matcher in own if matcher is not None)

    def turns_held(self) -> list[list[int]]:
        """Return the places of events that may be in a match to come, by key."""
        return [matcher.turns_held() for matcher in self.of_key.values()]

    def codes_since(self, time_ns: int) -> list[int]:
        """Return keys, ascending, that wait for time to pass, or had an event since."""
        return sorted(
            code
            for code, matcher in self.of_key.items()
            if matcher.waiting.due_ns is not None or matcher.log.newest_ns >= time_ns
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the state of all matchers, as plain values."""
        plain: dict[str, Any] = self.snapshot_later().finish()
        return plain

    def snapshot_later(self) -> Later:
        """Begin to save all matchers."""
        if self._saving is not None:
            self._saving.finish()
        self._saving = SavedMatchers(self.of_key.order, self._new_matcher(0))
        return self._saving

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self.of_key = OfKeys(restored_matchers(state, self._new_matcher))
        self._derive()

    def keep(self, stay: Int64Array) -> None:
        """Forget all keys but those of these codes, which ascend; these close up."""
        if self._saving is not None:
            self._saving.before_all()
        codes = np.fromiter(self.of_key, np.int64, len(self.of_key))
        moved = StayingNumbers(stay).moved(codes).tolist()
        for code, matcher in zip(moved, self.of_key.values(), strict=True):
            matcher.code = code
        self.of_key = OfKeys([own for own in self.of_key.values() if own.code >= 0])
        self._derive()

    def _derive(self) -> None:
        self._due = []
        for code, matcher in self.of_key.items():
            self._push(matcher, code)

    def _new_matcher(self, code: int) -> KeyMatcher:
        matcher = new_matcher(self._settings, self._holds)
        matcher.code = code
        return matcher


def new_matcher(settings: Settings, holds: HoldsOfTurns) -> KeyMatcher:
    """Return a matcher for a key; see `KeyMatcher`."""
    matcher = ReachMatcher if isinstance(settings.scope, Within) else WindowMatcher
    return matcher(settings, holds)
