"""The matches of a key whose clocks may be off, against the specification."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.patterns.drift_layout import layout_of
from runtime.patterns.drifting import DriftMatcher
from runtime.patterns.normal import Place, Sequence
from runtime.patterns.rules import rules_of
from runtime.patterns.scopes import OpenedWindows, TimeWindows, WindowRule, Within
from runtime.patterns.stamped import OFF
from tests.patterns import spec as plain
from tests.patterns.drift_spec import DriftSpec, Event, Match
from tests.patterns.worlds import (
    BY_TIME,
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
            state = deepcopy(matcher.snapshot())
            matcher = matcher_of(spec)
            matcher.restore(state)
    found += matcher.waiting.decided(2**62)
    return [
        Match(one.time_ns, one.window_start_ns, one.alternative, one.parts, one.is_certain)
        for one in found
    ]


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


# -- any pattern, any stream, any clocks ------------------------------------------------------


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
            (one.time_ns, one.window_start_ns, one.alternative, one.parts) for one in expected
        ]
    assert sorted(one.parts for one in found) == sorted(one.parts for one in expected)


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
    there_are = {
        (start_ns, frozenset((true[part[0] - 1][1], part[2]) for part in choice))
        for _, start_ns, _, choice in spec.run(in_truth)
    }
    found = found_by(DriftSpec(normal(first), scope, "any", no_condition, MOST), events)
    all_told = {
        (None if one.start_ns is None else 8 * one.start_ns, frozenset(one.parts)): one.is_certain
        for one in found
    }
    assert there_are <= all_told.keys(), "a match is lost"
    assert {one for one, is_certain in all_told.items() if is_certain} <= there_are


# -- by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.....b.....c", [((1, 2, 3), True)]),
        ("a.....b..c", [((1, 2, 3), False)]),  # b and c are not further apart than both bounds
        ("a.....c..b", [((1, 3, 2), False)]),  # so they may be the other way round
        ("a.....c.....b", []),
        ("b..a..c", [((2, 1, 3), False)]),
        ("c..b..a", [((3, 2, 1), False)]),  # all at 2
        ("c..b...a", []),  # b may be behind a, but c cannot be
        ("a.....b......c", [((1, 2, 3), False)]),  # 15 apart at most
        ("a.....b.............c", [((1, 2, 3), False)]),  # 14 apart at least
        ("a.....b..............c", []),
    ],
)
def test_three_steps_with_bounds_of_two_within_fourteen(
    text: str, expected: list[tuple[tuple[int, ...], bool]]
) -> None:
    pattern = normal(Sequence((one(A), one(B), one(C))))
    spec = DriftSpec(pattern, Within(span_ns=14), "any", no_condition, 2)
    events = letters(text, off_ns=2)
    assert told(spec, events) == expected
    same(spec, events)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.....b", True),
        ("a.....b..c", False),  # c may be before b
        ("c..a.....b", False),
        ("a...c..b", False),  # a may be late, or c, or b early
        ("a.....c.....b", None),  # surely between
        ("a.....b.....c", True),
    ],
)
def test_what_may_not_come_between_makes_doubtful_or_impossible(
    text: str, expected: bool | None
) -> None:
    pattern = normal(Sequence((one(A), one(B, C))))
    spec = DriftSpec(pattern, Within(span_ns=12), "any", no_condition, 2)
    events = letters(text, off_ns=2)
    assert [is_certain for _, is_certain in told(spec, events)] == (
        [] if expected is None else [expected]
    )
    same(spec, events)


def test_an_event_that_may_be_nowhere_else_is_between() -> None:
    """2 is behind the first a, and neither behind the scope of both nor between them: nowhere."""
    pattern = normal(Sequence((one(A), one(A, C)), (C,)))
    spec = DriftSpec(pattern, Within(span_ns=9), "any", no_condition, 2)
    doubtful = Event(3, 4, 2, (C,))
    events = [Event(1, 0, 0, (A,)), Event(2, 4, 0, (A,)), doubtful]
    assert told(spec, events) == []
    same(spec, events)


@pytest.mark.parametrize(
    ("of_b", "of_c", "expected"),
    [
        ([(5, 0), (8, 0)], [(7, 3)], False),  # it may be between the two
        ([(5, 0), (6, 1)], [(6, 2)], False),
        ([(5, 5), (5, 1)], [(2, 1)], False),  # the first of them may be before it
        ([(5, 5), (5, 1)], [(9, 1)], False),  # or the last of them behind it
        ([(5, 5), (5, 1)], [(2, 1), (9, 1)], None),  # but no one event both
        ([(5, 5), (5, 4)], [(2, 1), (9, 1)], False),
    ],
)
def test_two_events_in_any_order_have_room_between_them(
    of_b: list[tuple[int, int]], of_c: list[tuple[int, int]], expected: bool | None
) -> None:
    """Of an a at 0 and one at 11, with two b between them, and no c between those and these."""
    pattern = normal(Sequence((one(A), TWO, one(A, C))))
    spec = DriftSpec(pattern, Within(span_ns=11), "any", no_condition, 5)
    each = sorted([(0, 0, A), (11, 0, A), *((*b, B) for b in of_b), *((*c, C) for c in of_c)])
    events = [Event(n, time_ns, off_ns, (of,)) for n, (time_ns, off_ns, of) in enumerate(each, 1)]
    assert [is_certain for _, is_certain in told(spec, events)] == (
        [] if expected is None else [expected]
    )
    same(spec, events)


def test_it_waits_until_nothing_that_forbids_it_can_come() -> None:
    pattern = normal(Sequence((one(A), one(B, C))))
    matcher = matcher_of(DriftSpec(pattern, Within(span_ns=12), "any", no_condition, 2))
    assert matcher.take(1, 0, 1, (A,), {OFF: 1}) == []
    assert matcher.take(2, 9, 2, (B,), {OFF: 1}) == []
    assert matcher.waiting.due_ns == 12  # a c of 12 with a bound of 2 may be at 10, just before b
    assert matcher.waiting.decided(12) == []
    assert matcher.take(3, 12, 3, (C,), {OFF: 2}) == []
    (found,) = matcher.take(4, 13, 4, (C,), {OFF: 2})
    assert (found.time_ns, found.is_behind, found.turn, found.is_certain) == (12, True, 2, False)


def tried(spec: DriftSpec, events: list[Event]) -> tuple[int, int]:
    """Return how often a predicate of the first event was asked, and how many matches there are."""
    asked = [0]

    def count(*of: Any) -> bool:
        asked[0] += 1
        return True

    found = found_by(replace(spec, holds=count), events)
    return asked[0], len(found)


def test_nothing_is_tried_where_no_match_is_listed() -> None:
    """400 events of each place: 25,600,000,000 choices, if order did not tell at once."""
    more = [replace(WITH_GREATER[k], also=WITH_GREATER[GREATER].also) for k in (B, C, D)]
    asked = (WITH_GREATER[A], *(replace(one, refers=frozenset({"a"})) for one in more))
    pattern = normal(Sequence((one(A), one(B), one(C), one(D))), asked=asked)
    spec = DriftSpec(pattern, Within(span_ns=100_000), "any", no_condition, 2)
    assert tried(spec, letters("abc" * 400, off_ns=2)) == (0, 0)
    apart = ".....".join(["c" * 400, "b" * 400, "a" * 400, "d" * 400])
    assert tried(spec, letters(apart, off_ns=2)) == (0, 0)
    # The next that fits: of the events that may be it, not of all.
    close = replace(spec, skip="next")
    asked_of, found = tried(close, letters("a....." + "b....." * 400, off_ns=2))
    assert found == 0
    assert asked_of <= 2 * 400


def test_events_are_held_as_long_as_they_may_be_needed() -> None:
    pattern = normal(Sequence((one(A), one(B, C))))
    spec = DriftSpec(pattern, Within(span_ns=12), "any", no_condition, 2)
    matcher = matcher_of(spec)
    most = 0
    for number in range(1, 3000):
        matcher.take(number, number, number, (number % 3,), {OFF: 2})
        most = max(most, len(matcher.turns_held()))
    assert most <= 2 * (64 + 12 + 6 * 2)
