"""Patterns, streams, and how a matcher is held against the specification."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.matcher import KeyMatcher
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.operator.matchers import new_matcher
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, Within
from slackwater.runtime.patterns.settings import Found, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher
from tests.patterns.spec import Event, Spec
from tests.support.rows import bound

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


def matcher_for(spec: Spec) -> KeyMatcher:
    return new_matcher(
        Settings(
            rules_of(spec.normal, skip=spec.skip),
            spec.scope,
            spec.selection,  # type: ignore[arg-type]
            spec.consumes,
            spec.most,
        ),
        spec.holds,
    )


def found_by(
    spec: Spec, events: list[Event], *, put_away: frozenset[int] = frozenset()
) -> list[Found]:
    """Return what leaves; behind the numbers of `put_away` it goes on from a snapshot."""
    matcher = matcher_for(spec)
    found: list[Found] = []
    for event in events:
        if spec.lost:
            assert isinstance(matcher, WindowMatcher)
            matcher.open(event.number, event.time_ns, event.fits)
            lost = frozenset(key for key, number in spec.lost if number == event.number)
            found += matcher.take_opened(
                event.number, event.time_ns, event.number, event.fits, event.values, lost
            )
        else:
            found += matcher.take(
                event.number, event.time_ns, event.number, event.fits, event.values
            )
        if event.number in put_away:
            state = deepcopy(save(matcher))
            matcher = matcher_for(spec)
            restore(matcher, state)
    found += matcher.decided(2**62)
    return found


def same(spec: Spec, events: list[Event], *, put_away: frozenset[int] = frozenset()) -> None:
    expected = [
        (time, start, which, tuple((part[0], part[2]) for part in choice))
        for time, start, which, choice in spec.run(events)
    ]
    got = [
        (one.time_ns, one.window_start_ns, one.order[0], one.parts)
        for one in found_by(spec, events, put_away=put_away)
    ]

    def key(one: Any) -> Any:
        return (one[0], one[1] if one[1] is not None else -1, one[2], one[3])

    assert sorted(got, key=key) == sorted(expected, key=key)


def no_condition(asked: int, number: int, read: dict[str, int]) -> bool:
    raise AssertionError((asked, number, read))


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


GREATER = 4  # "b" that is greater than the a of the match
WITH_GREATER = (
    *ASKED,
    Asked("more", also=bound(col("v") > col("a.v"), pa.int64()), refers=frozenset({"a"})),
)


@st.composite
def conditional(draw: st.DrawFn, *, skip: str) -> Sequence:
    """Return a sequence that begins with an a, and reads its value later."""
    asked = st.sampled_from([B, C, D, GREATER, GREATER])
    some = [one(A)]
    for _ in range(draw(st.integers(1, 2))):
        kinds = ["one", "repeat", "either"] + (["any", "distinct"] if skip == "any" else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "any":
            some.append(Place(draw(st.sampled_from([(GREATER, C, D), (B, GREATER)])), count=2))
            continue
        if kind == "distinct":
            some.append(Place((GREATER, C), count=2, distinct="v"))
            continue
        barred = draw(st.sampled_from([(), (), (C,), (GREATER,)]))
        least, most = (
            (1, 1)
            if kind in ("one", "either")
            else draw(st.sampled_from([(1, 2), (2, 2), (1, None)]))
        )
        either = draw(st.sampled_from([(GREATER, B), (GREATER, C), (C, GREATER, B)]))
        is_either = kind == "either" or draw(st.integers(0, 3)) == 0
        which = either if is_either else (draw(asked),)
        some.append(Place(which, least=least, most=most, barred=barred))
    return Sequence(tuple(some), draw(st.sampled_from([(), (), (GREATER,)])))
