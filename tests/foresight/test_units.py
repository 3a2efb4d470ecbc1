"""ε: what is not interrupted, an event in [mace], a slice or a message here."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.config import Limits
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import CostCurve, QueryGraph, QueryOperator, Workload
from slackwater.runtime.foresight.units import ONE_EVENT, Slices, epsilon_s
from tests.foresight.cases import random_case


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


@pytest.mark.parametrize("seed", range(8))
def test_an_event_is_one_event_however_many_come_of_it(seed: int) -> None:
    """[mace]'s ε is a sum of costs: an operator may be interrupted between two events."""
    rng = np.random.default_rng(seed)
    costs_s = rng.uniform(0.001, 0.1, 3)
    graph = chain(*costs_s, selectivity=float(rng.uniform(1, 9)))
    found = epsilon(graph, ONE_EVENT, rng.uniform(0, 5, 3).tolist())
    assert found == pytest.approx(float(costs_s.sum()))


def joined(curve: CostCurve, counts: dict[str, list[float]], *, within: str = "p") -> float:
    """Return ε of two sources, a gate that cuts what it gets, and a stage that costs 1 s a row."""
    operators = [
        QueryOperator(name=name, inputs=(f"of {name}",), cost_s=(0.0,), selectivity=(1.0,))
        for name in counts
    ]
    operators += [
        QueryOperator(
            name=within,
            inputs=tuple(counts),
            cost_s=(0.0,) * len(counts),
            selectivity=(0.0,) * len(counts),
            curve=curve,
        ),
        QueryOperator(name="behind", inputs=(within,), cost_s=(1.0,), selectivity=(1.0,)),
    ]
    graph = QueryGraph(tuple(f"of {name}" for name in counts), tuple(operators))
    work = Workload.of(graph, {f"of {name}": each for name, each in counts.items()}, 0.1)
    many = len(operators)
    cuts = Slices(slice_s=0.002, most_rows=2, cut={within})
    return epsilon_s(graph, work, np.ones(many), cuts, waits_s=np.full(many, 5.0))


def test_a_slice_of_a_join_has_the_results_of_its_own_rows() -> None:
    """Of 60 rows on each side in 100 ms, each meets about 60 partners within 100 ms."""
    curve = JoinCurve(within_s=0.1, row_s=(0.0, 0.0), pair_s=0.0, result=0.5)
    bursts = ([60.0] * 5 + [0.0] * 20) * 2
    assert joined(curve, {"a": bursts, "b": bursts}) == pytest.approx(2 * 60 * 0.5)
    few = [one / 60 for one in bursts]  # each of the few meets all of the many
    assert joined(curve, {"a": bursts, "b": few}) == pytest.approx(2 * 60 * 0.5)


def test_a_slice_that_closes_a_window_has_all_of_its_results() -> None:
    curve = WindowCurve(size_s=1.0, slide_s=1.0, keys=40.0, row_s=0.0, result_s=0.0)
    found = joined(curve, {"a": [100.0] * 50}, within="counts")
    assert found == pytest.approx(40.0)  # and not those of six windows
