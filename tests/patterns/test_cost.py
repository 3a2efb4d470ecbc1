"""What matching costs where many events are open: steps are counted, not time."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import pytest

from slackwater.runtime.patterns import choose
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.naming import Naming
from slackwater.runtime.patterns.normal import Place, Sequence
from slackwater.runtime.patterns.reach import ReachMatcher
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.scopes import TimeWindows, Within
from slackwater.runtime.patterns.settings import Settings
from tests.patterns.spec import Event, Spec
from tests.patterns.worlds import (
    GREATER,
    WITH_GREATER,
    A,
    B,
    C,
    D,
    found_by,
    no_condition,
    normal,
    one,
)

PATTERNS = {
    "no": Sequence((one(A), one(B, C))),
    "any_of": Sequence((one(A), Place((B, C), count=2))),
    "any_of first": Sequence((Place((B, C), count=2), one(A))),
    "repeat": Sequence((one(A), Place((B,), least=2, most=2))),
    "repeat inside": Sequence((one(A), Place((B,), least=1, most=3), one(C))),
    "no at the end": Sequence((one(A), one(B)), (C,)),
}


class Counts:
    """Counts calls of some methods."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> None:
        self.calls = 0
        for owner, name in methods:
            self._count(monkeypatch, owner, name, getattr(owner, name))

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, was: Any) -> None:
        def counted(*given: Any, **named: Any) -> Any:
            self.calls += 1
            return was(*given, **named)

        monkeypatch.setattr(owner, name, counted)


def events_of(letters: list[int], many: int, *, seed: int) -> list[Event]:
    of = Random(seed)  # noqa: S311 - a seeded stream
    return [Event(n, n, (of.choice(letters),), {"v": of.randrange(50)}) for n in range(1, many + 1)]


@pytest.mark.parametrize("name", PATTERNS)
def test_used_up_events_do_not_make_lists_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is put into lists once, and once more if its window gets lists of its own."""
    events = events_of([A, A, A, B, B, C, D], 600, seed=1)
    for scope, times in ((Within(span_ns=200), 1), (TimeWindows(200, 200), 2)):
        counts = Counts(monkeypatch, (Chain, "take"), (Chain, "take_used"))
        spec = Spec(normal(PATTERNS[name]), scope, "first", True, None, "any", no_condition)
        assert len(found_by(spec, events)) > 10
        assert counts.calls <= times * len(events)
        monkeypatch.undo()


def test_a_key_of_a_begun_match_has_few_objects_for_collections() -> None:
    """Its matcher, its log, and the log's two lists; lists of places are 24 more."""
    rules = rules_of(normal(Sequence((one(A), one(B), one(C)))), skip="any")
    settings = Settings(rules, Within(span_ns=99), "first", consumes=True)
    keys, fits = 1_000, ((A,), (B,))
    gc.collect()
    before = len(gc.get_objects())
    matchers = [ReachMatcher(settings, no_condition) for _ in range(keys)]
    for matcher in matchers:
        for number, own in enumerate(fits, 1):
            assert not matcher.take(number, number, number, own)
    gc.collect()
    assert len(gc.get_objects()) - before < 5 * keys
    (match,) = matchers[0].take(3, 3, 3, (C,))
    assert [turn for turn, _ in match.parts] == [1, 2, 3]


def test_what_waits_is_asked_for_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each end of a match whenever one more a is used up."""
    events = events_of([A, B], 2000, seed=2)
    pattern = normal(Sequence((one(A), one(B)), (C,)))
    spec = Spec(pattern, Within(span_ns=400), "first", True, None, "any", no_condition)
    counts = Counts(monkeypatch, (ReachMatcher, "_next"))
    assert len(found_by(spec, events)) > 500
    assert counts.calls < 2 * len(events)


@pytest.mark.parametrize("selection", ["first", "each"])
@pytest.mark.parametrize("count", [3, 6, 10])
def test_any_of_different_values_before_a_no_is_not_tried_in_vain(
    count: int, selection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the last value lies behind the n, and one of the first events has it, too."""
    place = Place((A,), count=count, distinct="v")
    spec = Spec(
        normal(Sequence((place, one(B, C)))),
        Within(span_ns=1000),
        selection,
        True,
        None,
        "any",
        no_condition,
    )
    values = [*range(12), *range(12), -1, 0, -1]
    letters = [*[A] * 24, C, A, B]
    events = [
        Event(n, n, (letter,), {"v": value})
        for n, (letter, value) in enumerate(zip(letters, values, strict=True), 1)
    ]
    counts = Counts(monkeypatch, (choose.Listing, "_with"))
    (found,) = found_by(spec, events)
    assert [turn for turn, _ in found.parts][-2:] == [26, 27]
    assert counts.calls < 20 * count


def test_cumulative_does_not_list_what_it_unites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty of each are 64,000 matches that end with the last event."""
    letters = [*[A] * 40, *[B] * 40, *[C] * 40, D]
    events = [Event(n, n, (letter,)) for n, letter in enumerate(letters, 1)]
    pattern = normal(Sequence((one(A), one(B), one(C), one(D))))
    spec = Spec(pattern, Within(span_ns=999), "cumulative", False, None, "any", no_condition)
    counts = Counts(monkeypatch, (choose.Listing, "_with"))
    (found,) = found_by(spec, events)
    assert len(found.parts) == 121
    assert counts.calls == 0


def test_what_is_barred_by_a_predicate_is_looked_for_in_between_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = [0]

    def holds(_: int, number: int, read: dict[str, int]) -> bool:
        asked[0] += 1
        return False

    pattern = normal(Sequence((one(A), one(B, GREATER))), asked=WITH_GREATER)
    spec = Spec(pattern, Within(span_ns=9999), "last", False, None, "any", holds)
    letters = [(D, GREATER)] * 500 + [(A,), (GREATER,), (B,)] * 50
    events = [Event(n, n, fits) for n, fits in enumerate(letters, 1)]
    counts = Counts(monkeypatch, (Naming, "_is_true"))
    assert len(found_by(spec, events)) == 50
    assert asked[0] == 50
    assert counts.calls == 50
