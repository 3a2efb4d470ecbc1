"""Loads, cumulative excess and Mace against the paper's own numbers, and against its recurrence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.excess import cumulative_excess, mace, node_load
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator, Workload


def test_the_series_of_figure_3() -> None:
    """Capacity 1, width 2. Of N2 the loads 3 and 6 are in the text, the others follow from its
    excess; N1 and N3 are only drawn: loads that give 2 and 3 at t2, as the text has it."""
    loads = np.array([[3.0, 3, 0, 1, 2], [3, 6, 0, 1, 4], [2, 5, 1, 1, 3]])
    excess = cumulative_excess(loads, 1.0, width_s=2.0)
    assert excess[1].tolist() == [1, 5, 3, 2, 4]
    assert excess[:, 1].tolist() == [2, 5, 3]
    found = mace(excess, np.ones(3))
    assert found.tolist() == [1, 5, 3, 2, 4]
    assert found.max() == 5


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0.1, 10), st.floats(0.01, 10)
)
def test_the_running_minimum_is_definition_8(
    load: list[float], capacity: float, width_s: float
) -> None:
    behind, expected = 0.0, []
    for one in load:
        behind = max(0.0, behind + one - capacity * width_s)
        expected.append(behind)
    found = cumulative_excess(np.array([load]), np.array([capacity]), width_s=width_s)
    assert found[0] == pytest.approx(expected, abs=1e-9 * (1 + sum(load)))


def test_faster_nodes_are_behind_for_less_long() -> None:
    excess = cumulative_excess(np.array([[6.0], [6.0]]), np.array([1.0, 2.0]), width_s=1.0)
    assert excess[:, 0].tolist() == [5, 4]
    assert mace(excess, np.array([1.0, 2.0])).tolist() == [5]
    assert mace(excess[1:], np.array([2.0])).tolist() == [2]


def test_loads_are_counted_where_their_stimulus_is() -> None:
    """§VI-C: A_j = A_parent · σ_parent, l_j = A_j · ω_j, and several inputs add up."""
    graph = QueryGraph(
        ("a", "b"),
        (
            QueryOperator(name="half", inputs=("a",), cost_s=(0.1,), selectivity=(0.5,)),
            QueryOperator(name="both", inputs=("half", "b"), cost_s=(1.0, 2.0), selectivity=(3, 1)),
        ),
    )
    work = Workload.of(graph, {"a": [10, 0], "b": [1, 4]}, 1.0)
    assert work.arrivals["half"].tolist() == [5, 0]
    assert work.load_s.tolist() == [[1, 0], [7, 8]]
    assert work.arrivals["both"].tolist() == [16, 4]
    assert node_load(work.load_s, [0, 0], 2).tolist() == [[8, 8], [0, 0]]
    assert graph.sinks == ("both",)


def one(**changed: object) -> QueryOperator:
    said = {"name": "f", "inputs": ("a",), "cost_s": (1.0,), "selectivity": (1.0,)} | changed
    return QueryOperator(**said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: one(cost_s=(1.0, 2.0)), "'f' has 1 inputs, 2 costs"),
        (lambda: one(cost_s=(-1.0,)), "finite and >= 0"),
        (lambda: one(selectivity=(float("nan"),)), "finite and >= 0"),
        (lambda: QueryGraph(("a",), (one(inputs=("b",)),)), "fed by 'b'.*topological order"),
        (lambda: QueryGraph(("a",), (one(), one())), "two sources or operators are named 'f'"),
        (lambda: QueryGraph(("a", "a"), ()), "two sources of one name"),
        (lambda: Workload.of(QueryGraph(("a",), ()), {}, 1.0), "source 'a' has no rate"),
        (lambda: Workload.of(QueryGraph(("a",), ()), {"a": [-1]}, 1.0), "finite count >= 0"),
        (lambda: Workload.of(QueryGraph(("a",), ()), {"a": [1]}, 0.0), "must be above 0"),
        (lambda: Workload.of(QueryGraph(("a",), ()), {"a": []}, 1.0), "one at least"),
        (lambda: node_load(np.ones((1, 2)), [3], 2), "name a node of 0 to 1"),
        (lambda: cumulative_excess(np.ones((1, 2)), 0.0, width_s=1.0), "capacity must be above"),
    ],
)
def test_what_cannot_be_is_said(make, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        make()
