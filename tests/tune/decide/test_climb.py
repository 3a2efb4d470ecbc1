"""Trigger and hill climbing ([ssg] §5.2.2, §5.2.3), beside every choice that there is."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.tune.decide.climb import Options, climb
from slackwater.runtime.tune.decide.model_rule import Search, triggered


@pytest.mark.parametrize(
    ("latency_ns", "search"),
    [
        (1_001, Search.RELAX),
        (1_000, Search.RELAX),  # Eq. 9: a laxity of 0 is too little
        (999, Search.NONE),
        (801, Search.NONE),
        (800, Search.RAISE),  # Eq. 10: α of the deadline is much
        (0, Search.RAISE),
    ],
)
def test_laxity_decides_whether_and_how_to_search(latency_ns: float, search: Search) -> None:
    assert triggered(latency_ns, deadline_ns=1_000, alpha=0.2) is search


def longest(latency: Mapping[str, float], deviation: Mapping[str, float]) -> float:
    """Eq. 2 of a chain, two deviations careful."""
    return sum(latency.values()) + 2 * sum(deviation.values())


def options(latency: list[int], slack_ready: list[int], sure: list[int] | None = None) -> Options:
    return Options(
        np.arange(len(latency)) * 10,
        np.array(latency, dtype=float),
        np.array(sure or [0] * len(latency), dtype=float),
        np.array(slack_ready, dtype=float),
    )


@st.composite
def grids(draw: st.DrawFn, *, is_lawful: bool) -> Options:
    """Return what slacks would do; lawful: more slack, more latency and fewer slack-ready."""
    size = draw(st.integers(1, 6))
    numbers = st.lists(st.integers(0, 30), min_size=size, max_size=size)
    latency, ready, sure = draw(numbers), draw(numbers), draw(numbers)
    if is_lawful:
        return options(sorted(latency), sorted(ready, reverse=True))
    return options(latency, ready, sure)


def expected(
    of: Mapping[str, Options], places: Mapping[str, int]
) -> tuple[float, float]:  # (latency, slack-ready)
    latency = {gate: float(of[gate].latency_ns[at]) for gate, at in places.items()}
    deviation = {gate: float(of[gate].deviation_ns[at]) for gate, at in places.items()}
    ready = sum(float(of[gate].slack_ready[at]) for gate, at in places.items())
    return longest(latency, deviation), ready


@given(one=grids(is_lawful=True), deadline_ns=st.integers(0, 40), data=st.data())
def test_one_gate_gets_the_best_slack_that_there_is(
    one: Options, deadline_ns: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(one.slacks_ns) - 1))
    found = climb({"g": one}, {"g": start}, latency_ns=longest, deadline_ns=deadline_ns)
    allowed = [
        at
        for at in range(start, len(one.slacks_ns))
        if expected({"g": one}, {"g": at})[0] <= deadline_ns
    ]
    assert found["g"] == max(allowed, default=start)  # and so with the fewest slack-ready events
    if allowed:
        assert one.slack_ready[found["g"]] == min(one.slack_ready[at] for at in allowed)


@given(
    of=st.dictionaries(st.sampled_from("abc"), grids(is_lawful=False), min_size=1),
    deadline_ns=st.integers(0, 150),
    data=st.data(),
)
def test_whatever_is_expected_the_climb_ends_above_its_start_and_within_the_deadline(
    of: dict[str, Options], deadline_ns: int, data: st.DataObject
) -> None:
    start = {g: data.draw(st.integers(0, len(one.slacks_ns) - 1)) for g, one in of.items()}
    found = climb(of, start, latency_ns=longest, deadline_ns=deadline_ns)
    assert all(found[gate] >= at for gate, at in start.items())
    latency_ns, _ = expected(of, found)
    assert latency_ns <= deadline_ns or found == start
    for gate, one in of.items():  # nothing is left that a single gate could take
        for at in range(found[gate] + 1, len(one.slacks_ns)):
            assert expected(of, {**found, gate: at})[0] > deadline_ns


@given(
    of=st.fixed_dictionaries({"a": grids(is_lawful=True), "b": grids(is_lawful=True)}),
    deadline_ns=st.integers(0, 80),
)
def test_two_gates_lose_no_more_than_at_the_start_and_no_less_than_the_best(
    of: dict[str, Options], deadline_ns: int
) -> None:
    start = {"a": 0, "b": 0}
    found = climb(of, start, latency_ns=longest, deadline_ns=deadline_ns)
    ways = [
        dict(zip("ab", places, strict=True))
        for places in product(*(range(len(of[gate].slacks_ns)) for gate in "ab"))
    ]
    allowed = [way for way in ways if expected(of, way)[0] <= deadline_ns]
    best = min((expected(of, way)[1] for way in allowed), default=expected(of, start)[1])
    assert best <= expected(of, found)[1] <= expected(of, start)[1]


def test_a_step_may_pass_slacks_that_take_nothing_away() -> None:
    plateau = options([0, 10, 20, 30], [9, 9, 9, 0])
    found = climb({"g": plateau}, {"g": 0}, latency_ns=longest, deadline_ns=30)
    assert found == {"g": 3}


def test_the_gate_that_gains_most_goes_first() -> None:
    of = {"a": options([0, 30], [5, 0]), "b": options([0, 30], [9, 0])}
    assert climb(of, {"a": 0, "b": 0}, latency_ns=longest, deadline_ns=30) == {"a": 0, "b": 1}


def test_of_equal_gains_the_cheaper_goes_first() -> None:
    of = {"a": options([0, 30], [9, 0]), "b": options([0, 20], [9, 0])}
    assert climb(of, {"a": 0, "b": 0}, latency_ns=longest, deadline_ns=30) == {"a": 0, "b": 1}


def test_an_unsure_expectation_is_a_careful_one() -> None:
    unsure = options([0, 10, 20], [9, 5, 0], [0, 0, 6])
    assert climb({"g": unsure}, {"g": 0}, latency_ns=longest, deadline_ns=31) == {"g": 1}
    assert climb({"g": unsure}, {"g": 0}, latency_ns=longest, deadline_ns=32) == {"g": 2}
