"""Eq. 2 of [ssg] and the even split over any graph, beside all of its paths one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.tune.record.paths import Paths

CHAIN = Paths({"in": (), "one": ("in",), "two": ("one",), "out": ("two",)}, ("one", "two"))
DIAMOND = Paths(
    {"in": (), "fast": ("in",), "slow": ("in",), "join": ("fast", "slow"), "out": ("join",)},
    ("slow", "join"),
)
TWO_SINKS = Paths({"in": (), "gate": ("in",), "here": ("gate",), "there": ("gate",)}, ("gate",))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Paths, dict[str, float]]:
    """Return a random graph and what its stages take, whole ns."""
    size = draw(st.integers(1, 7))
    inputs: dict[str, tuple[str, ...]] = {}
    for n in range(size):
        feeds = draw(st.sets(st.sampled_from(list(inputs)), max_size=3)) if inputs else set()
        inputs[f"s{n}"] = tuple(sorted(feeds))
    tuned = draw(st.sets(st.sampled_from(list(inputs))))
    takes = {s: float(draw(st.integers(0, 50))) for s in inputs if draw(st.booleans())}
    return Paths(inputs, tuple(s for s in inputs if s in tuned)), takes


def all_paths(paths: Paths) -> list[tuple[str, ...]]:
    """Return every path from a source to a stage that feeds nothing."""
    feeds_something = {feed for feeds in paths.inputs.values() for feed in feeds}

    def to(stage: str) -> list[tuple[str, ...]]:
        feeds = paths.inputs[stage]
        return [(*path, stage) for feed in feeds for path in to(feed)] or [(stage,)]

    return [path for end in paths.inputs if end not in feeds_something for path in to(end)]


def took(path: tuple[str, ...], op_ns: Mapping[str, float]) -> float:
    return sum(op_ns.get(stage, 0.0) for stage in path)


@given(graph=graphs())
def test_latency_is_that_of_the_longest_of_all_paths(graph: tuple[Paths, dict[str, float]]) -> None:
    paths, op_ns = graph
    longest = max(took(path, op_ns) for path in all_paths(paths))
    assert paths.latency_ns(op_ns) == longest
    deviations = dict.fromkeys(paths.inputs, 9.0)
    assert paths.careful_latency_ns(op_ns, deviations, deviations=0.0) == longest
    assert paths.careful_latency_ns(op_ns, {}, deviations=3.0) == longest


@given(graph=graphs(), data=st.data())
def test_careful_latency_is_that_of_the_path_with_the_largest_mean_and_margin(
    graph: tuple[Paths, dict[str, float]], data: st.DataObject
) -> None:
    paths, op_ns = graph
    off = {stage: float(data.draw(st.integers(0, 50))) for stage in paths.inputs}
    expected = max(
        took(path, op_ns) + 2.0 * math.hypot(*(off[stage] for stage in path))
        for path in all_paths(paths)
    )
    assert paths.careful_latency_ns(op_ns, off, deviations=2.0) == pytest.approx(expected)


@given(graph=graphs())
def test_latency_through_a_stage_is_that_of_the_longest_path_that_has_it(
    graph: tuple[Paths, dict[str, float]],
) -> None:
    paths, op_ns = graph
    for stage in paths.inputs:
        longest = max(took(path, op_ns) for path in all_paths(paths) if stage in path)
        assert paths.latency_through_ns(stage, op_ns) == longest


@given(graph=graphs(), deadline_ns=st.integers(0, 300))
def test_an_even_share_is_the_least_over_all_paths_through_the_gate(
    graph: tuple[Paths, dict[str, float]], deadline_ns: int
) -> None:
    paths, op_ns = graph
    rest = {stage: ns for stage, ns in op_ns.items() if stage not in paths.tuned}
    expected = {
        gate: min(
            (deadline_ns - took(path, rest)) / sum(stage in paths.tuned for stage in path)
            for path in all_paths(paths)
            if gate in path
        )
        for gate in paths.tuned
    }
    shares = paths.even_split_ns(op_ns, deadline_ns)
    assert shares == {gate: max(int(share), 0) for gate, share in expected.items()}
    if min(expected.values(), default=0) >= 0:  # then the shares keep the deadline
        assert paths.latency_ns({**rest, **shares}) <= max(deadline_ns, paths.latency_ns(rest))


@given(graph=graphs(), deviations=st.floats(0, 3))
def test_careful_is_never_less_than_plain_and_grows_with_the_margin(
    graph: tuple[Paths, dict[str, float]], deviations: float
) -> None:
    paths, op_ns = graph
    sure = dict.fromkeys(paths.inputs, 4.0)
    careful_ns = paths.careful_latency_ns(op_ns, sure, deviations=deviations)
    assert careful_ns >= paths.latency_ns(op_ns)
    assert paths.careful_latency_ns(op_ns, sure, deviations=deviations + 1) > careful_ns


def test_deviations_of_a_chain_add_up_as_variances() -> None:
    op_ns, sure = {"one": 100.0, "two": 50.0}, {"one": 3.0, "two": 4.0}
    assert CHAIN.careful_latency_ns(op_ns, sure, deviations=2.0) == 150 + 2 * 5


@pytest.mark.parametrize(
    ("paths", "shares"),
    [
        (CHAIN, {"one": 40, "two": 40}),  # (100 − 20) / 2
        (DIAMOND, {"slow": 40, "join": 40}),  # the path over slow has two gates
        (TWO_SINKS, {"gate": 70}),  # the slower of the sinks counts
    ],
)
def test_shares_worked_by_hand(paths: Paths, shares: dict[str, int]) -> None:
    op_ns = {"in": 15.0, "out": 5.0, "fast": 1.0, "here": 15.0, "there": 2.0, "one": 999.0}
    assert paths.even_split_ns(op_ns, 100) == shares


def test_a_path_that_takes_longer_than_the_deadline_leaves_nothing() -> None:
    assert CHAIN.even_split_ns({"in": 200.0}, 100) == {"one": 0, "two": 0}


def test_a_graph_without_gates_has_no_shares() -> None:
    assert Paths({"in": (), "out": ("in",)}, ()).even_split_ns({"in": 5.0}, 100) == {}
