"""The matches of a key whose clocks may be off, against the specification."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runtime.patterns.drift_layout import layout_of
from runtime.patterns.drifting import DriftMatcher
from runtime.patterns.normal import Sequence
from runtime.patterns.rules import rules_of
from runtime.patterns.stamped import OFF
from tests.patterns.drift_spec import DriftSpec, Event, Match
from tests.patterns.worlds import (
    BY_TIME,
    no_condition,
    normal,
    sequences,
)
from tests.support.examples import five_times

MOST = 2


@st.composite
def streams(draw: st.DrawFn, most: int = 6) -> list[Event]:
    time_ns, events = 0, []
    for number in range(1, draw(st.integers(1, most)) + 1):
        time_ns += draw(st.integers(0, 3))
        fits = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=1, max_size=2))))
        off_ns = draw(st.sampled_from([0, 0, 1, 2]))
        events.append(Event(number, time_ns, off_ns, fits, {"v": draw(st.integers(0, 2))}))
    return events


def found_by(
    spec: DriftSpec, events: list[Event], *, put_away: frozenset[int] = frozenset()
) -> list[Match]:
    def begin() -> DriftMatcher:
        rules = rules_of(spec.normal, skip=spec.skip)
        return DriftMatcher(layout_of(rules, spec.scope, spec.most_ns), spec.holds)

    matcher = begin()
    found = []
    for event in events:
        values = event.values | {OFF: event.off_ns}
        found += matcher.take(event.number, event.time_ns, event.number, event.fits, values)
        if event.number in put_away:
            state = deepcopy(matcher.snapshot())
            matcher = begin()
            matcher.restore(state)
    found += matcher.waiting.decided(2**62)
    return [
        Match(one.time_ns, one.window_start_ns, one.alternative, one.parts, one.is_certain)
        for one in found
    ]


def same(spec: DriftSpec, events: list[Event], put_away: frozenset[int] = frozenset()) -> None:
    def key(one: Match) -> Any:
        return (one.alternative, one.parts, -99 if one.start_ns is None else one.start_ns, one)

    got, expected = found_by(spec, events, put_away=put_away), spec.run(events)
    assert sorted(got, key=key) == sorted(expected, key=key)


@five_times
@given(
    first=sequences(has_end=True),
    second=st.none() | sequences(has_end=False),
    events=streams(),
    scope=st.sampled_from(BY_TIME),
    put_away=st.frozensets(st.integers(1, 6), max_size=2),
)
def test_any_pattern_is_possible_or_certain_as_specified(
    first: Sequence,
    second: Sequence | None,
    events: list[Event],
    scope: Any,
    put_away: frozenset[int],
) -> None:
    either = (first,) if second is None else (first, second)
    same(DriftSpec(normal(*either), scope, "any", no_condition, MOST), events, put_away)
