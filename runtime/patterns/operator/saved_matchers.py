"""State of all matchers, in columns, saved in steps.

```
code 4: events 1 3        codes   4 7      numbers  1 3 2 5 6
code 7: events 2 5 6      sizes   2 3      fits     0 1 0 0 1   (places in `table`)
```

What a matcher has beside its events is in `rest`: for most of those without windows it is nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from slackwater.runtime.model.later import LaterOfMany
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.matcher import KeyMatcher

__all__ = ["SavedMatchers", "restored_matchers"]

_OF_EVENTS = ("numbers", "times_ns", "turns", "fits")
_NUMBERS = ("codes", "low", "sizes", *_OF_EVENTS)
"""Columns of whole numbers, each a list of arrays, which follow each other."""
_PART = 1 << 16
"""Numbers of a column that are together: a longer array would be copied as it grows."""


_all = chain.from_iterable


class _Places(dict[tuple[int, ...], int]):
    """Places in `table`, in the order in which they are asked for."""

    def __missing__(self, fits: tuple[int, ...]) -> int:
        place = self[fits] = len(self)
        return place


class SavedMatchers(LaterOfMany[KeyMatcher]):
    """State of matchers at a cut.

    Args:
        every: matchers of all keys.
        fresh: a matcher without events.
    """

    def __init__(self, every: Sequence[KeyMatcher], fresh: KeyMatcher) -> None:
        super().__init__(every)
        self._fresh = _rest_of(fresh)
        self._places = _Places()
        self._numbers = {name: array("q") for name in _NUMBERS}
        self._saved = 0
        self.plain = {name: list[Any]() for name in (*_NUMBERS, "table", "rest")}

    def add(self, subjects: Sequence[KeyMatcher]) -> None:  # noqa: D102 - see LaterOfMany
        columns, places, logs = self._numbers, self._places, [own.log for own in subjects]
        columns["codes"].extend([own.code for own in subjects])
        columns["low"].extend([own.low for own in subjects])
        columns["sizes"].extend([len(log.numbers) for log in logs])
        columns["numbers"].extend(_all([log.numbers for log in logs]))
        columns["times_ns"].extend(_all([log.times_ns for log in logs]))
        columns["turns"].extend(_all([log.turns.values() for log in logs]))
        fits = _all([log.fits.values() for log in logs])
        columns["fits"].extend(map(places.__getitem__, fits))
        table = self.plain["table"]
        table += list(places)[len(table) :]
        self.plain["rest"] += [
            (at, rest)
            for at, own in enumerate(subjects, self._saved)
            if not own.has_only_events and (rest := self._beside(own))
        ]
        self._saved += len(subjects)
        self._part_off(_PART)

    def step(self, most: int) -> None:  # noqa: D102 - see Later
        super().step(most)
        if self.is_done:
            self._part_off(1)

    def _part_off(self, least: int) -> None:
        """Move columns of at least this length to the plain value."""
        for name, own in self._numbers.items():
            if len(own) >= least:
                self.plain[name].append(np.frombuffer(own, np.int64))
                self._numbers[name] = array("q")

    def _beside(self, subject: KeyMatcher) -> dict[str, Any]:
        """Return what a matcher has beside events, as far as a fresh matcher differs."""
        own = _rest_of(subject).items()
        return {name: value for name, value in own if value != self._fresh[name]}


def restored_matchers(
    plain: Mapping[str, Any], new: Callable[[int], KeyMatcher]
) -> Iterator[KeyMatcher]:
    """Yield the matcher of each key.

    Args:
        plain: plain value of `SavedMatchers`.
        new: returns a matcher without events, by its code.
    """
    rests, table = dict(plain["rest"]), [tuple(fits) for fits in plain["table"]]
    columns = {name: [n for part in plain[name] for n in part.tolist()] for name in _NUMBERS}
    end = 0
    for at, (code, low, size) in enumerate(
        zip(columns["codes"], columns["low"], columns["sizes"], strict=True)
    ):
        start, end = end, end + size
        numbers, times_ns, turns, fits = (columns[name][start:end] for name in _OF_EVENTS)
        events = numbers, times_ns, turns, [table[place] for place in fits]
        matcher = new(code)
        if (rest := rests.get(at)) is not None:
            rest = from_plain(rest)
            matcher.log.values = rest.pop("values", {})
            whole = {**save(matcher), **rest}
            restore(matcher, whole)
        matcher.begin_with(low, *events)
        yield matcher


def _rest_of(matcher: KeyMatcher) -> dict[str, Any]:
    """Return the state of a matcher but its events, as plain values."""
    state = save(matcher)
    del state["low"]
    values = state.pop("log")["values"]
    plain: dict[str, Any] = to_plain({**state, "values": values}, where="a pattern's matcher")
    return plain
