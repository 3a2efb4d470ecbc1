"""ε: what is not interrupted, an event in [mace], a slice or a message here."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.config import Limits
from runtime.estimate.query_graph import QueryGraph, QueryOperator, Workload
from runtime.estimate.units import ONE_EVENT, Slices, epsilon_s
from tests.estimate.cases import random_case

NO_WAIT = np.zeros(3)


def chain(*costs_s: float, selectivity: float = 1.0) -> QueryGraph:
    names = ("s", "a", "b", "c")
    operators = [
        QueryOperator(name=name, inputs=(feeder,), cost_s=(cost,), selectivity=(selectivity,))
        for feeder, name, cost in zip(names, names[1:], costs_s, strict=False)
    ]
    return QueryGraph(("s",), tuple(operators))


def epsilon(graph: QueryGraph, slices: Slices, waits_s: list[float], rate: float = 100.0) -> float:
    work = Workload.of(graph, {"s": [rate] * 10}, 1.0)
    return epsilon_s(graph, work, np.ones(3), slices, waits_s=np.array(waits_s))


@pytest.mark.parametrize("seed", range(8))
def test_with_slices_of_one_row_it_is_the_sum_of_what_an_event_costs(seed: int) -> None:
    case = random_case(seed, most_sources=4)
    waits_s = np.full(len(case.nodes), 5.0)
    speed = np.full(len(case.nodes), 2.0)
    costs_s = sum(sum(one.cost_s) for one in case.graph.operators) / 2
    one_row = Slices.of(Limits(max_slice_rows=1, source_gap_ns=1), gated=case.graph.names)
    for slices in (ONE_EVENT, one_row):
        found = epsilon_s(case.graph, case.work, speed, slices, waits_s=waits_s)
        assert found == pytest.approx(costs_s, abs=1e-7)


def test_a_stage_without_a_gate_takes_a_message_whole_and_one_with_a_gate_cuts_it() -> None:
    """A source that is 2 s late hands over 300 rows; b is behind a gate, or is not."""
    graph = chain(0.00001, 0.01)
    passing, cutting = (
        Slices(slice_s=0.002, most_rows=10_000, cut=cut) for cut in (frozenset[str](), {"b"})
    )
    assert epsilon(graph, passing, [2.0, 0.0]) == pytest.approx(300 * 0.00001 + 100 * 0.01)
    assert epsilon(graph, passing, [2.0, 2.0]) == pytest.approx(300 * 0.00001 + 300 * 0.01)
    assert epsilon(graph, cutting, [2.0, 2.0]) == pytest.approx(300 * 0.00001 + 2 * 0.01)


def test_a_slice_has_as_many_rows_as_fit_and_no_more_than_it_may() -> None:
    graph, waits = chain(0.0001), [9.0]
    fits = Slices(slice_s=0.002, most_rows=10_000)
    assert epsilon(graph, fits, waits) == pytest.approx(
        2 * 0.002
    )  # and is then tried twice as long
    assert epsilon(graph, Slices(slice_s=0.002, most_rows=5), waits) == pytest.approx(5 * 0.0001)
    assert epsilon(graph, fits, [0.0], rate=7.0) == pytest.approx(7 * 0.0001)  # no more come
    assert epsilon(graph, Slices(slice_s=0.002, most_rows=1, gap_s=0.5), waits) == 0.5001


def test_a_message_has_what_comes_of_a_slice() -> None:
    slices = Slices(slice_s=0.002, most_rows=40)
    half, more = (
        epsilon(chain(0.0, 0.001, selectivity=each), slices, [5.0, 5.0]) for each in (0.5, 2.0)
    )
    assert (half, more) == pytest.approx((20 * 0.001, 80 * 0.001))
