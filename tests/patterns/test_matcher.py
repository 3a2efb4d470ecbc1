"""The matches of a key, against the specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.patterns.normal import Place, Sequence
from slackwater.runtime.patterns.scopes import CountWindows, TimeWindows, Within
from tests.patterns.spec import Event, Spec
from tests.patterns.worlds import (
    BY_COUNT,
    BY_TIME,
    GREATER,
    WITH_GREATER,
    A,
    B,
    C,
    D,
    conditional,
    events_of,
    found_by,
    matcher_for,
    no_condition,
    normal,
    one,
    places,
    same,
    sequences,
    streams,
)
from tests.support.examples import eight_times


@pytest.mark.parametrize(
    ("selection", "consumes", "expected"),
    [
        ("first", True, [((1, 3)), ((2, 4))]),
        ("last", False, [((2, 3)), ((2, 4))]),
        ("last", True, [((2, 3))]),
        ("each", False, [(2, 3), (1, 3), (2, 4), (1, 4)]),
        ("cumulative", False, [(1, 2, 3), (1, 2, 4)]),
        ("cumulative", True, [(1, 2, 3)]),
    ],
)
def test_two_a_then_two_b_is_the_papers_example(
    selection: str, consumes: bool, expected: list[tuple[int, ...]]
) -> None:
    """[espice] §2: B4 B3 A2 A1, the lowest number first."""
    pattern = normal(Sequence((one(A), one(B))))
    spec = Spec(pattern, CountWindows(4, 4), selection, consumes, None, "any", no_condition)
    events = events_of("aabb")
    got = [tuple(turn for turn, _ in found.parts) for found in found_by(spec, events)]
    assert got == expected
    same(spec, events)


# -- any pattern, any stream ---------------------------------------------------------------


@eight_times
@given(
    first=sequences(has_end=True),
    second=st.none() | sequences(has_end=True),
    events=streams(),
    scope=st.sampled_from(BY_TIME),
    selection=st.sampled_from(["first", "last", "each", "cumulative"]),
    consumes=st.booleans(),
    most=st.sampled_from([None, None, 1, 2]),
)
def test_any_pattern_is_found_as_specified_in_scopes_of_time(
    first: Sequence, second: Sequence | None, events: list[Event], **given_: Any
) -> None:
    either = (first,) if second is None else (first, second)
    pattern = normal(*either)
    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    same(Spec(pattern, skip="any", holds=no_condition, **given_), events)


@eight_times
@given(
    first=sequences(has_end=False),
    events=streams(),
    scope=st.sampled_from(BY_COUNT),
    selection=st.sampled_from(["first", "last", "each", "cumulative"]),
    consumes=st.booleans(),
    most=st.sampled_from([None, 1, 2]),
)
def test_any_pattern_is_found_as_specified_in_scopes_of_a_number_of_events(
    first: Sequence, events: list[Event], **given_: Any
) -> None:
    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    same(Spec(normal(first), skip="any", holds=no_condition, **given_), events)


@eight_times
@given(
    data=st.data(),
    events=streams(),
    scope=st.sampled_from(BY_TIME),
    selection=st.sampled_from(["first", "last", "each", "cumulative"]),
    consumes=st.booleans(),
    most=st.sampled_from([None, 1, 2]),
    skip=st.sampled_from(["any", "next"]),
)
def test_predicates_over_earlier_events_are_as_specified(
    data: st.DataObject, events: list[Event], skip: str, **given_: Any
) -> None:
    pattern = normal(data.draw(conditional(skip=skip)), asked=WITH_GREATER)
    events = [replace(one, fits=(*one.fits, GREATER)) if B in one.fits else one for one in events]
    values = {one.number: one.values["v"] for one in events}

    def holds(asked: int, number: int, read: dict[str, int]) -> bool:
        assert asked == GREATER
        return bool(values[number] > values[read["a"]])

    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    same(Spec(pattern, skip=skip, holds=holds, **given_), events)


@eight_times
@given(
    data=st.data(),
    events=streams(),
    scope=st.sampled_from([*BY_TIME, *BY_COUNT]),
    selection=st.sampled_from(["first", "last", "each", "cumulative"]),
    consumes=st.booleans(),
    most=st.sampled_from([None, 1, 2]),
)
def test_each_must_be_the_next_that_fits(
    data: st.DataObject, events: list[Event], **given_: Any
) -> None:
    some = [
        data.draw(places(k == 0).filter(lambda one: not one.is_any))
        for k in range(data.draw(st.integers(1, 3)))
    ]
    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    pattern = normal(Sequence(tuple(some)))
    same(Spec(pattern, skip="next", holds=no_condition, **given_), events)


SETTINGS: dict[str, Any] = {
    "selection": st.sampled_from(["first", "last", "each", "cumulative"]),
    "consumes": st.booleans(),
    "most": st.sampled_from([None, 1, 2]),
}


@pytest.mark.parametrize("scope", [TimeWindows(600, 600), Within(span_ns=600)])
@pytest.mark.parametrize(
    ("most", "text", "expected"),
    [
        (None, "abcb", [(1, 4)]),
        (None, "aabcbb", [(1, 5), (2, 6)]),
        (None, "abbcabb", [(1, 6), (5, 7)]),
        (None, "aabb", [(1, 3), (2, 4)]),
        (1, "abcabb", [(1, 5)]),
        (2, "abbcabb", [(1, 6), (5, 7)]),
    ],
)
def test_an_event_is_used_once_its_match_has_left(
    most: int | None, text: str, expected: list[tuple[int, ...]], scope: Any
) -> None:
    """What a later c forbids uses nothing up, and takes no place among `matches=`."""
    if most is not None and isinstance(scope, Within):
        return  # it counts those of a window
    pattern = normal(Sequence((one(A), one(B)), (C,)))
    spec = Spec(pattern, scope, "first", True, most, "any", no_condition)
    got = [tuple(turn for turn, _ in found.parts) for found in found_by(spec, events_of(text))]
    assert got == expected
    same(spec, events_of(text))


def test_what_leaves_first_uses_events_up_first() -> None:
    """(a, d) leaves at once; (a, b) would wait for the end of its window, and a is gone then."""
    pattern = normal(Sequence((one(A), one(B)), (C,)), Sequence((one(A), one(D))))
    spec = Spec(pattern, TimeWindows(600, 600), "first", True, None, "any", no_condition)
    for text, expected in (("abd", [(1, 3)]), ("abdc", [(1, 3)]), ("aabd", [(1, 4), (2, 3)])):
        found = found_by(spec, events_of(text))
        assert [tuple(turn for turn, _ in one.parts) for one in found] == expected
        same(spec, events_of(text))


@pytest.mark.parametrize("selection", ["first", "each"])
def test_of_two_beginnings_at_one_time_the_first_in_the_stream_takes_the_end(
    selection: str,
) -> None:
    pattern = normal(Sequence((one(A), one(B)), (C,)))
    spec = Spec(pattern, Within(span_ns=50), selection, True, None, "any", no_condition)
    events = [replace(one, time_ns=max(one.time_ns, 10)) for one in events_of("aab")]
    assert [[turn for turn, _ in found.parts] for found in found_by(spec, events)] == [[1, 3]]
    same(spec, events)


def test_repeated_more_often_than_the_least_is_found_where_each_is_the_next() -> None:
    """All three a after the b, each the next one; and the first two."""
    pattern = normal(Sequence((one(B), Place((A,), least=2, most=3))))
    spec = Spec(pattern, Within(span_ns=600), "each", False, None, "next", no_condition)
    got = [tuple(turn for turn, _ in found.parts) for found in found_by(spec, events_of("baaa"))]
    assert got == [(1, 2, 3), (1, 2, 3, 4)]


@pytest.mark.parametrize("selection", ["first", "last", "each", "cumulative"])
def test_no_number_of_places_is_too_many(selection: str) -> None:
    pattern = normal(Sequence((*(one(A) for _ in range(1200)), one(B))))
    spec = Spec(pattern, Within(events=1201), selection, False, None, "any", no_condition)
    matcher = matcher_for(spec)
    chain = matcher._chains[0]
    for number in range(1, 1201):  # as if each had come at its place only
        matcher.log.add(number, number, number, (A,), None)
        chain.ends[number - 1].add(number, 1, number)
    (found,) = matcher.take(1201, 1201, 1201, (B,))
    assert len(found.parts) == 1201


# -- put away, and with losses --------------------------------------------------------------


@eight_times
@given(
    first=sequences(has_end=True),
    events=streams(),
    scope=st.sampled_from(BY_TIME),
    selection=st.sampled_from(["first", "last", "each", "cumulative"]),
    consumes=st.booleans(),
    most=st.sampled_from([None, 1, 2]),
    put_away=st.frozensets(st.integers(1, 11)),
)
def test_a_matcher_that_was_put_away_goes_on_as_before(
    first: Sequence, events: list[Event], put_away: frozenset[int], **given_: Any
) -> None:
    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    spec = Spec(normal(first), skip="any", holds=no_condition, **given_)
    same(spec, events, put_away=put_away)


@eight_times
@given(
    first=sequences(has_end=False),
    second=st.none() | sequences(has_end=False),
    events=streams(),
    scope=st.sampled_from([*BY_TIME, *BY_COUNT]).filter(lambda one: not isinstance(one, Within)),
    lost=st.frozensets(st.tuples(st.integers(-3, 10), st.integers(1, 11)), min_size=1, max_size=20),
    put_away=st.frozensets(st.integers(1, 11), max_size=2),
    **SETTINGS,
)
def test_a_window_that_lost_events_is_as_if_it_never_had_them(
    first: Sequence,
    second: Sequence | None,
    events: list[Event],
    lost: frozenset[tuple[int, int]],
    put_away: frozenset[int],
    **given_: Any,
) -> None:
    either = (first,) if second is None else (first, second)
    spec = Spec(normal(*either), skip="any", holds=no_condition, lost=lost, **given_)
    same(spec, events, put_away=put_away)


@eight_times
@given(
    first=sequences(has_end=True),
    events=streams(),
    scope=st.sampled_from(BY_TIME).filter(lambda one: not isinstance(one, Within)),
    lost=st.frozensets(st.tuples(st.integers(-3, 10), st.integers(1, 11)), min_size=1, max_size=20),
    **SETTINGS,
)
def test_what_was_lost_forbids_nothing_up_to_the_end(
    first: Sequence, events: list[Event], lost: frozenset[tuple[int, int]], **given_: Any
) -> None:
    same(Spec(normal(first), skip="any", holds=no_condition, lost=lost, **given_), events)


@eight_times
@given(
    letters=st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=4),
    events=streams(),
    scope=st.sampled_from([*BY_TIME, *BY_COUNT]),
    selection=st.sampled_from(["first", "each", "cumulative"]),
    most=st.sampled_from([None, 2]),
    put_away=st.frozensets(st.integers(1, 11), max_size=2),
)
def test_what_is_used_up_leaves_the_lists_of_plain_sequences_as_if_they_were_made_anew(
    letters: list[int], events: list[Event], put_away: frozenset[int], **given_: Any
) -> None:
    given_["most"] = None if isinstance(given_["scope"], Within) else given_["most"]
    pattern = normal(Sequence(tuple(one(letter) for letter in letters)))
    spec = Spec(pattern, consumes=True, skip="any", holds=no_condition, **given_)
    same(spec, events, put_away=put_away)
