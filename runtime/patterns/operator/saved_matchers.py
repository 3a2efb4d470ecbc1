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
from typing import Any, NamedTuple

import numpy as np

from slackwater.runtime.model.later import LaterOfMany
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.matcher import KeyMatcher

__all__ = ["SavedMatchers", "restored_matchers"]

_OF_EVENTS = ("numbers", "times_ns", "turns", "fits")
_NUMBERS = ("codes", "low", "sizes", *_OF_EVENTS)
"""Columns of whole numbers: arrays, once all are there."""


class _Row(NamedTuple):
    """State of a matcher: its events, and what it has beside them."""

    code: int
    low: int
    numbers: tuple[int, ...]
    times_ns: tuple[int, ...]
    turns: tuple[int, ...]
    fits: tuple[tuple[int, ...], ...]
    rest: dict[str, Any] | None


class SavedMatchers(LaterOfMany[KeyMatcher]):
    """State of matchers at a cut.

    Args:
        every: matchers of all keys.
        fresh: a matcher without events.
    """

    def __init__(self, every: Sequence[KeyMatcher], fresh: KeyMatcher) -> None:
        super().__init__(every)
        self._fresh = _rest_of(fresh)
        self._places: dict[tuple[int, ...], int] = {}
        self._numbers = {name: array("q") for name in _NUMBERS}
        self.plain = {name: list[Any]() for name in (*_NUMBERS, "table", "rest")}

    def row(self, subject: KeyMatcher) -> _Row:  # noqa: D102 - see LaterOfMany
        rest = None
        if not subject.has_only_events:
            own = _rest_of(subject).items()
            rest = {name: value for name, value in own if value != self._fresh[name]}
        log = subject.log
        turns, fits = tuple(log.turns.values()), tuple(log.fits.values())
        return _Row(
            subject.code, subject.low, tuple(log.numbers), tuple(log.times_ns), turns, fits, rest
        )

    def add(self, rows: Sequence[_Row]) -> None:  # noqa: D102 - see LaterOfMany
        columns, places, start = self._numbers, self._places, len(self._numbers["codes"])
        codes, lows, numbers, times_ns, turns, fits, rests = zip(*rows, strict=True)
        columns["codes"].extend(codes)
        columns["low"].extend(lows)
        columns["sizes"].extend(map(len, numbers))
        for name, own in (("numbers", numbers), ("times_ns", times_ns), ("turns", turns)):
            columns[name].extend(chain.from_iterable(own))
        columns["fits"].extend(
            [places.setdefault(own, len(places)) for own in chain.from_iterable(fits)]
        )
        table, rest_of = self.plain["table"], self.plain["rest"]
        table += list(places)[len(table) :]
        rest_of += [(start + at, rest) for at, rest in enumerate(rests) if rest]

    def step(self, most: int) -> None:  # noqa: D102 - see Later
        super().step(most)
        if self.is_done:
            arrays = {name: np.frombuffer(own, np.int64) for name, own in self._numbers.items()}
            self.plain |= arrays


def restored_matchers(
    plain: Mapping[str, Any], new: Callable[[int], KeyMatcher]
) -> Iterator[KeyMatcher]:
    """Yield the matcher of each key.

    Args:
        plain: plain value of `SavedMatchers`.
        new: returns a matcher without events, by its code.
    """
    rests, table = dict(plain["rest"]), [tuple(fits) for fits in plain["table"]]
    columns, end = {name: np.asarray(plain[name], np.int64).tolist() for name in _NUMBERS}, 0
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
