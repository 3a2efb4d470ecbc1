"""Streams with clocks that may be off, and how a matcher is held against the specification."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.drift_layout import layout_of
from slackwater.runtime.patterns.drifting import DriftMatcher
from slackwater.runtime.patterns.normal import Place
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.settings import Found
from slackwater.runtime.patterns.stamped import OFF
from tests.patterns.drift_spec import DriftSpec, Event, Match
from tests.patterns.worlds import (
    BY_TIME,
    B,
    C,
)

MOST = 2
TWO = Place((B,), least=2, most=2, barred=(C,))
put_aways = st.frozensets(st.integers(1, 6), max_size=2)
scopes = st.sampled_from(BY_TIME)


@st.composite
def streams(draw: st.DrawFn, *, most: int = 6) -> list[Event]:
    time_ns, events = 0, []
    for number in range(1, draw(st.integers(1, most)) + 1):
        time_ns += draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
        fits = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=1, max_size=2))))
        off_ns = draw(st.sampled_from([0, 0, 1, 2]))
        events.append(Event(number, time_ns, off_ns, fits, {"v": draw(st.integers(0, 2))}))
    return events


def matcher_of(spec: DriftSpec) -> DriftMatcher:
    layout = layout_of(rules_of(spec.normal, skip=spec.skip), spec.scope, spec.most_ns)
    return DriftMatcher(layout, spec.holds)


def found_by(
    spec: DriftSpec, events: list[Event], put_away: frozenset[int] = frozenset()
) -> list[Match]:
    """Return what leaves; behind the numbers of `put_away` it goes on from a snapshot."""
    matcher, found = matcher_of(spec), []
    for event in events:
        values = event.values | {OFF: event.off_ns}
        found += matcher.take(event.number, event.time_ns, event.number, event.fits, values)
        if event.number in put_away:
            state = deepcopy(save(matcher))
            matcher = matcher_of(spec)
            restore(matcher, state)
    found += matcher.waiting.decided(2**62)
    return [
        Match(one.time_ns, one.window_start_ns, one.alternative, one.parts, one.is_certain)
        for one in as_they_leave(found)
    ]


def as_they_leave(found: list[Found]) -> list[Found]:
    """Return what is decided in one read in the order in which the operator lets it leave."""
    return sorted(found, key=lambda one: (one.time_ns, one.has_waited, one.turn, one.order))


def same(spec: DriftSpec, events: list[Event], put_away: frozenset[int] = frozenset()) -> None:
    def key(match: Match) -> Any:
        start_ns = -99 if match.start_ns is None else match.start_ns
        return match.alternative, match.parts, start_ns, match.time_ns, match.is_certain

    found, expected = found_by(spec, events, put_away), spec.run(events)
    assert sorted(found, key=key) == sorted(expected, key=key)


def letters(text: str, *, off_ns: int) -> list[Event]:
    """One letter an event; "." is a nanosecond."""
    found: list[Event] = []
    time_ns = 0
    for letter in text:
        if letter == ".":
            time_ns += 1
        else:
            found.append(Event(len(found) + 1, time_ns, off_ns, ("abcd".index(letter),)))
    return found


def told(spec: DriftSpec, events: list[Event]) -> list[tuple[tuple[int, ...], bool]]:
    return [
        (tuple(turn for turn, _ in one.parts), one.is_certain) for one in found_by(spec, events)
    ]
