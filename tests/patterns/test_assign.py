"""Which of several things events are: every assignment counts, and the order of words does not."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.patterns.assign import NO_FITS, assignable, assigned, with_label
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.scopes import TimeWindows, Within
from slackwater.runtime.patterns.several import Several
from tests.patterns.spec import Event, Spec
from tests.patterns.worlds import A, B, C, found_by, no_condition, normal, one, same
from tests.support.rows import bound

choices = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple), max_size=5
).map(tuple)


@given(choices)
def test_an_assignment_is_found_if_there_is_one_and_it_is_the_first(
    some: tuple[tuple[int, ...], ...],
) -> None:
    every = [ways for ways in product(*some) if len(set(ways)) == len(ways)]
    assert assignable(some) is bool(every)
    assert assigned(some) == (every[0] if every else None)


@given(
    labels=st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(
            lambda some: tuple(sorted(some))
        ),
        max_size=9,
    ),
    count=st.integers(1, 4),
    gone=st.sets(st.integers(1, 9), max_size=4),
)
def test_the_latest_events_that_may_be_together_are_known(
    labels: list[tuple[int, ...]], count: int, gone: set[int]
) -> None:
    """Whatever came, and whatever of it is used up."""
    several = Several(count, is_distinct=False)

    def since(numbers: list[int]) -> int:
        """Try all choices that end with the last event."""
        *before, last = numbers
        found = [
            min(chosen, default=last)
            for chosen in permutations(before, count - 1)
            if list(chosen) == sorted(chosen)
            and assignable(tuple(labels[n - 1] for n in (*chosen, last)))
        ]
        return max(found, default=0)

    here: list[int] = []
    for number, label in enumerate(labels, 1):
        here.append(number)
        assert several.add(number, label) == since(here)
    left = [number for number in here if number not in gone]
    several.remove([number for number in here if number in gone])
    for number in left:
        assert several.since(number) == since([n for n in left if n <= number])
    state = NO_FITS
    for number in several.taken(0, len(labels) + 1, NO_FITS, count):
        state = with_label(state, labels[number - 1])
        assert state is not None


# -- what a user sees -----------------------------------------------------------------------


def words(*order: int, makes: Any = sw.patterns.all_of) -> Normal:
    """x is anything, z an event of type z."""
    x, z = sw.patterns.event("x"), sw.patterns.event("z", of_type="z")
    return normal_of(makes(*((x, z)[i] for i in order)), step="found")


def letters(pattern: Normal, text: str) -> list[Event]:
    numbers = {asked.name: number for number, asked in enumerate(pattern.asked)}
    return [
        Event(
            i + 1,
            i,
            tuple(sorted({numbers["x"], *([numbers["z"]] if letter == "z" else [])})),
        )
        for i, letter in enumerate(text)
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["all_of(x, z)", "all_of(z, x)"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("az", [["x", "z"]]),
        ("za", [["z", "x"]]),
        ("zz", [["x", "z"]]),
        ("aa", []),
        ("aza", [["x", "z"]]),
    ],
)
def test_an_event_that_fits_everything_leaves_room_for_the_others(
    order: tuple[int, int], text: str, expected: list[list[str]]
) -> None:
    pattern = words(*order)
    spec = Spec(pattern, Within(span_ns=9), "first", True, None, "any", no_condition)
    events = letters(pattern, text)
    found = [
        [pattern.asked[asked].name for _, asked in one.parts] for one in found_by(spec, events)
    ]
    assert found == expected
    same(spec, events)


@given(data=st.data(), selection=st.sampled_from(["first", "last", "each", "cumulative"]))
def test_the_order_in_which_events_of_any_of_are_written_does_not_matter(
    data: st.DataObject, selection: str
) -> None:
    events = [
        Event(number, number, tuple(sorted(fits)))
        for number, fits in enumerate(
            data.draw(st.lists(st.sets(st.integers(0, 3), max_size=3), max_size=8)), 1
        )
    ]
    count, consumes = data.draw(st.integers(2, 3)), data.draw(st.booleans())
    matches = data.draw(st.sampled_from([None, 1]))

    def found(order: tuple[int, ...]) -> list[Any]:
        pattern = normal(Sequence((Place(order, count=count),)))
        scope = TimeWindows(6, 3)
        spec = Spec(pattern, scope, selection, consumes, matches, "any", no_condition)
        return [(one.window, one.parts) for one in found_by(spec, events)]

    first = found((A, B, C))
    for order in permutations((A, B, C)):
        assert found(order) == first


def test_either_is_what_its_predicates_let_it_be() -> None:
    """b is higher than a, or b at all: an event for which the first is false is the second."""
    asked = (
        Asked("a"),
        Asked("b"),
        Asked(
            "higher", refers=frozenset({"a"}), also=bound(sw.col("v") > sw.col("a.v"), pa.int64())
        ),
    )
    pattern = Normal(asked, (Sequence((one(0), Place((2, 1)))),))

    def holds(asked: int, number: int, read: dict[str, int]) -> bool:
        return number == 3

    spec = Spec(pattern, Within(span_ns=9), "each", False, None, "any", holds)
    events = [Event(1, 1, (0,)), Event(2, 2, (1, 2)), Event(3, 3, (1, 2))]
    assert [one.parts for one in found_by(spec, events)] == [((1, 0), (2, 1)), ((1, 0), (3, 2))]
    same(spec, events)
