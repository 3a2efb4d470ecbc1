"""Matches of clocks that may be off, by hand; what is tried, held and forgotten on the way."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given

from slackwater.runtime.patterns.drift_layout import layout_of
from slackwater.runtime.patterns.drifting import DriftMatcher
from slackwater.runtime.patterns.normal import Sequence
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.scopes import WindowRule, Within
from slackwater.runtime.patterns.stamped import OFF
from tests.patterns.drift_spec import DriftSpec, Event
from tests.patterns.drift_worlds import (
    MOST,
    TWO,
    found_by,
    letters,
    matcher_of,
    same,
    scopes,
    told,
)
from tests.patterns.worlds import (
    GREATER,
    WITH_GREATER,
    A,
    B,
    C,
    D,
    no_condition,
    normal,
    one,
)
from tests.support.chance import chance
from tests.support.examples import a_third


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
    assert (found.time_ns, found.has_waited, found.turn, found.is_certain) == (12, True, 2, False)


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


class Remembers(DriftMatcher):
    """Forgets nothing."""

    def _forget(self, time_ns: int) -> None:
        del time_ns


@a_third
@given(scope=scopes, chance=chance)
def test_what_is_forgotten_is_in_no_match_and_forbids_none(
    scope: Within | WindowRule, chance: Random
) -> None:
    """Of 300 events, which is more than are kept out of laziness."""
    some = chance.choice([(one(A), one(B, C)), (one(A), one(C), one(B, D)), (one(A), one(B))])
    spec = DriftSpec(
        normal(Sequence(some, chance.choice([(), (C,)]))), scope, "any", no_condition, MOST
    )
    layout = layout_of(rules_of(spec.normal, skip=spec.skip), spec.scope, spec.most_ns)
    forgets, remembers = matcher_of(spec), Remembers(layout, spec.holds)
    time_ns, found, expected = 0, [], []
    for turn in range(1, 301):
        time_ns += chance.choice([0, 1, 2, 3, 4])
        event = time_ns, turn, (chance.choice([A, B, C, D]),), {OFF: chance.randint(0, MOST)}
        found += forgets.take(turn, *event)
        expected += remembers.take(turn, *event)
    assert found == expected
    assert len(forgets.turns_held()) < 200 < len(remembers.turns_held())


def test_events_are_held_as_long_as_they_may_be_needed() -> None:
    pattern = normal(Sequence((one(A), one(B, C))))
    spec = DriftSpec(pattern, Within(span_ns=12), "any", no_condition, 2)
    matcher = matcher_of(spec)
    most = 0
    for number in range(1, 3000):
        matcher.take(number, number, number, (number % 3,), {OFF: 2})
        most = max(most, len(matcher.turns_held()))
    assert most <= 2 * (64 + 12 + 6 * 2)
