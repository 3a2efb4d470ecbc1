"""The matches of a key, against the specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.expressions.expressions import col
from runtime.patterns.matcher import KeyMatcher
from runtime.patterns.normal import Asked, Normal, Place, Sequence
from runtime.patterns.rules import rules_of
from runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, Within
from runtime.patterns.settings import Found, Settings
from tests.patterns.spec import Event, Spec

ASKED = tuple(Asked(name) for name in "abcd")
A, B, C, D = range(4)


def one(asked: int, *barred: int) -> Place:
    return Place((asked,), barred=barred)


def normal(*alternatives: Sequence, asked: tuple[Asked, ...] = ASKED) -> Normal:
    return Normal(asked, alternatives)


def events_of(text: str) -> list[Event]:
    """One letter an event, a second apart; "." fits nothing."""
    return [
        Event(i + 1, i * 10, tuple(k for k, name in enumerate("abcd") if name == letter))
        for i, letter in enumerate(text)
    ]


def found_by(spec: Spec, events: list[Event]) -> list[Any]:
    matcher = KeyMatcher(
        Settings(
            rules_of(spec.normal, skip=spec.skip),
            spec.scope,
            spec.selection,  # type: ignore[arg-type]
            spec.consumes,
            spec.most,
        ),
        spec.holds,
    )
    found: list[Found] = []
    for event in events:
        found += matcher.take(event.number, event.time_ns, event.number, event.fits, event.values)
    found += matcher.decided(2**62)
    return found


def same(spec: Spec, events: list[Event]) -> None:
    expected = [
        (time, start, which, tuple((part[0], part[2]) for part in choice))
        for time, start, which, choice in spec.run(events)
    ]
    got = [
        (one.time_ns, one.window_start_ns, one.alternative, one.parts)
        for one in found_by(spec, events)
    ]

    def key(one: Any) -> Any:
        return (one[0], one[1] if one[1] is not None else -1, one[2], one[3])

    assert sorted(got, key=key) == sorted(expected, key=key)


def no_condition(asked: int, number: int, read: dict[str, int]) -> bool:
    raise AssertionError((asked, number, read))


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


@st.composite
def places(draw: st.DrawFn, is_first: bool) -> Place:
    kind = draw(st.sampled_from(["one", "one", "one", "either", "any", "repeat", "distinct"]))
    barred = (
        ()
        if is_first or kind in ("any", "distinct")
        else draw(st.sampled_from([(), (), (C,), (D,), (C, D)]))
    )
    letters = draw(st.permutations([A, B, C, D]))
    if kind == "one":
        return Place((letters[0],), barred=barred)
    if kind == "either":
        return Place(tuple(letters[:2]), barred=barred)
    if kind == "any":
        asked = tuple(letters[: draw(st.integers(2, 3))])
        return Place(asked, count=draw(st.integers(2, len(asked))))
    if kind == "distinct":
        return Place((letters[0],), count=2, distinct="v")
    least = draw(st.integers(1, 2))
    most = draw(st.sampled_from([None, least, least + 1]))
    if (least, most) == (1, 1):
        most = None
    return Place((letters[0],), least=least, most=most, barred=barred)


@st.composite
def sequences(draw: st.DrawFn, *, has_end: bool) -> Sequence:
    some = [draw(places(k == 0)) for k in range(draw(st.integers(1, 3)))]
    after = draw(st.sampled_from([(), (), (C,)])) if has_end else ()
    return Sequence(tuple(some), after)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    time_ns = 0
    events = []
    for number in range(1, draw(st.integers(1, 11)) + 1):
        time_ns += draw(st.integers(0, 3))
        fits = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=0, max_size=2))))
        events.append(Event(number, time_ns, fits, {"v": draw(st.integers(0, 2))}))
    return events


BY_TIME = [Within(span_ns=5), TimeWindows(6, 2), TimeWindows(4, 4), OpenedWindows(A, span_ns=6)]
BY_COUNT = [Within(events=5), CountWindows(5, 2), OpenedWindows(A, events=6)]


@settings(max_examples=150)
@given(
    first=sequences(has_end=True),
    second=st.none() | sequences(has_end=False),
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


@settings(max_examples=150)
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


GREATER = 4  # "b" that is greater than the a of the match
WITH_GREATER = (*ASKED, Asked("more", also=col("v") > col("a.v"), refers=frozenset({"a"})))


@st.composite
def conditional(draw: st.DrawFn, *, skip: str) -> Sequence:
    """Return a sequence that begins with an a, and reads its value later."""
    asked = st.sampled_from([B, C, D, GREATER, GREATER])
    some = [one(A)]
    for _ in range(draw(st.integers(1, 2))):
        kinds = ["one", "repeat"] if skip == "next" else ["one", "repeat", "any"]
        kind = draw(st.sampled_from(kinds))
        if kind == "any":
            some.append(Place((GREATER, C, D), count=2))
            continue
        barred = draw(st.sampled_from([(), (), (C,), (GREATER,)]))
        least, most = (
            (1, 1) if kind == "one" else draw(st.sampled_from([(1, 2), (2, 2), (1, None)]))
        )
        some.append(Place((draw(asked),), least=least, most=most, barred=barred))
    return Sequence(tuple(some), draw(st.sampled_from([(), (), (GREATER,)])))


@settings(max_examples=150)
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


@settings(max_examples=150)
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
