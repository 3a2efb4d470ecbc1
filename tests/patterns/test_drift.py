"""The matches of a key whose clocks may be off, against the specification."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.patterns.normal import Place, Sequence
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows, WindowRule, Within
from tests.patterns import spec as plain
from tests.patterns.drift_spec import DriftSpec, Event
from tests.patterns.drift_worlds import (
    MOST,
    TWO,
    as_they_leave,
    found_by,
    put_aways,
    same,
    scopes,
    streams,
)
from tests.patterns.worlds import (
    GREATER,
    WITH_GREATER,
    A,
    B,
    C,
    D,
    conditional,
    matcher_for,
    no_condition,
    normal,
    one,
    sequences,
)
from tests.support.chance import chance
from tests.support.examples import five_times


@five_times
@given(
    first=sequences(has_end=True),
    second=st.none() | sequences(has_end=False),
    events=streams(),
    scope=scopes,
    put_away=put_aways,
)
def test_any_pattern_is_possible_or_certain_as_specified(
    first: Sequence,
    second: Sequence | None,
    events: list[Event],
    scope: Within | WindowRule,
    put_away: frozenset[int],
) -> None:
    either = (first,) if second is None else (first, second)
    same(DriftSpec(normal(*either), scope, "any", no_condition, MOST), events, put_away)


@five_times
@given(
    some=st.lists(
        st.sampled_from([one(A), one(B), one(B, C), one(C, B), one(A, C, D), TWO]), max_size=3
    ),
    end=st.sampled_from([(), (C,), (B, D)]),
    skip=st.sampled_from(["any", "next"]),
    events=streams(),
    scope=scopes,
    put_away=put_aways,
)
def test_what_is_barred_in_several_places_is_somewhere_else_in_a_possible_match(
    some: list[Place],
    end: tuple[int, ...],
    skip: str,
    events: list[Event],
    scope: Within | WindowRule,
    put_away: frozenset[int],
) -> None:
    if skip == "next":
        some = [one(B) if place is TWO else place for place in some]
    pattern = normal(Sequence((one(A), *some), end))
    same(DriftSpec(pattern, scope, skip, no_condition, MOST), events, put_away)


@five_times
@given(
    data=st.data(),
    skip=st.sampled_from(["any", "next"]),
    events=streams(),
    scope=scopes,
    put_away=put_aways,
)
def test_predicates_over_earlier_events_are_as_specified(
    data: st.DataObject,
    skip: str,
    events: list[Event],
    scope: Within | WindowRule,
    put_away: frozenset[int],
) -> None:
    first = data.draw(conditional(skip=skip))
    if skip == "next":
        singles = tuple(replace(place, least=1, most=1) for place in first.places)
        first = replace(first, places=singles)
    events = [replace(one, fits=(*one.fits, GREATER)) if B in one.fits else one for one in events]
    values = {one.number: one.values["v"] for one in events}

    def holds(asked: int, number: int, read: dict[str, int]) -> bool:
        assert asked == GREATER
        return bool(values[number] > values[read["a"]])

    pattern = normal(first, asked=WITH_GREATER)
    same(DriftSpec(pattern, scope, skip, holds, MOST), events, put_away)


@five_times
@given(
    first=sequences(has_end=True),
    second=st.none() | sequences(has_end=False),
    events=streams(most=11),
    scope=scopes,
    most=st.sampled_from([0, 3]),
)
def test_clocks_that_are_right_give_each_match_of_a_pattern_without_drift_in_the_same_order(
    first: Sequence,
    second: Sequence | None,
    events: list[Event],
    scope: Within | WindowRule,
    most: int,
) -> None:
    either = (first,) if second is None else (first, second)
    events = [replace(one, off_ns=0) for one in events]
    spec = plain.Spec(normal(*either), scope, "each", False, None, "any", no_condition)
    others = matcher_for(spec)
    expected = []
    for event in events:
        expected += others.take(event.number, event.time_ns, event.number, event.fits, event.values)
    expected += others.waiting.decided(2**62)
    found = found_by(DriftSpec(spec.normal, scope, "any", no_condition, most), events)
    assert all(one.is_certain for one in found)
    if most == 0:  # else some wait, for what might have had a clock that is off
        assert [one[:4] for one in found] == [
            (one.time_ns, one.window_start_ns, one.alternative, one.parts)
            for one in as_they_leave(expected)
        ]
    assert sorted(one.parts for one in found) == sorted(one.parts for one in expected)


def interchangeable(sequence: Sequence) -> dict[int, int]:
    """Return {what is asked for: its group}: of a group, the order of events decides who is who.

    Two events that each fit both of an `any_of` are named by their order, which a clock may change.
    """
    groups: dict[int, int] = {}
    for place in sequence.places:
        joined = {groups.get(asked, asked) for asked in place.asked} | set(place.asked)
        groups |= dict.fromkeys(place.asked, min(joined))
        groups = {asked: min(joined) if of in joined else of for asked, of in groups.items()}
    return groups


@five_times
@given(
    first=sequences(has_end=True),
    events=streams(most=8),
    scope=scopes.filter(lambda one: not isinstance(one, OpenedWindows)),
    clocks=chance,
)
def test_whatever_clocks_were_off_by_no_match_is_lost_and_what_is_certain_is_so(
    first: Sequence, events: list[Event], scope: Within | TimeWindows, clocks: Random
) -> None:
    """The plain pattern, of true times in eighths of a nanosecond."""
    finer = (
        Within(span_ns=8 * (scope.span_ns or 0))
        if isinstance(scope, Within)
        else TimeWindows(8 * scope.size_ns, 8 * scope.slide_ns)
    )
    true = sorted(
        (8 * one.time_ns + clocks.randint(-8 * one.off_ns, 8 * one.off_ns), one.number)
        for one in events
    )
    by_number = {one.number: one for one in events}
    in_truth = [
        plain.Event(i, time_ns, by_number[number].fits, by_number[number].values)
        for i, (time_ns, number) in enumerate(true, 1)
    ]
    spec = plain.Spec(normal(first), finer, "each", False, None, "any", no_condition)
    groups = interchangeable(first)
    there_are = {
        (start_ns, frozenset((true[part[0] - 1][1], groups[part[2]]) for part in choice))
        for _, start_ns, _, choice in spec.run(in_truth)
    }
    found = found_by(DriftSpec(normal(first), scope, "any", no_condition, MOST), events)
    told = [
        (
            (
                None if one.start_ns is None else 8 * one.start_ns,
                frozenset((number, groups[asked]) for number, asked in one.parts),
            ),
            one.is_certain,
        )
        for one in found
    ]
    assert there_are <= {one for one, _ in told}, "a match is lost"
    assert {one for one, is_certain in told if is_certain} <= there_are
