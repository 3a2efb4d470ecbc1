"""The work on a row itself counts in latency, where no queue before it counts it already."""

from __future__ import annotations

import pytest

from slackwater.runtime.foresight.latency_estimate import LatencyEstimate, estimate_latency
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator, Workload


def chained(row_s: float, *, rows: float, count: int = 5, own: float = 1.0) -> LatencyEstimate:
    """Return the estimate of operators in a row, each on a node of its own."""
    names = [f"o{n}" for n in range(count)]
    feeders = ["s", *names[:-1]]
    operators = tuple(
        QueryOperator(
            name=name,
            inputs=(feeder,),
            cost_s=(row_s,),
            selectivity=(1.0,),
            alone_s=row_s * own,
        )
        for name, feeder in zip(names, feeders, strict=True)
    )
    graph = QueryGraph(("s",), operators)
    work = Workload.of(graph, {"s": [rows] * 20}, 1.0)
    placement = {name: name for name in names}
    hop_s = {(a, b): 0.01 for a in names for b in names}
    return estimate_latency(graph, work, placement, dict.fromkeys(names, 1.0), hop_s=hop_s)


def test_a_row_that_finds_nothing_before_it_takes_its_own_way() -> None:
    found = chained(0.15, rows=1.0)
    assert found.worst_s == pytest.approx(5 * 0.15 + 4 * 0.01)
    assert found.bounds_s[0] == pytest.approx(found.worst_s)
    assert found.mace_worst_s == 0.0, "[mace] has work that is behind, and none is"
    assert found.behind_s == pytest.approx(0.0, abs=1e-9)
    assert chained(0.15, rows=1.0, own=0.0).worst_s == pytest.approx(0.04)


def test_a_row_that_waits_counts_its_own_work_in_the_queue_alone() -> None:
    queued, by_mace = (chained(0.15, rows=8.0, count=1, own=own) for own in (1.0, 0.0))
    assert queued.worst_s == pytest.approx(20 * 0.2)
    assert queued.worst_s == by_mace.worst_s


def test_without_results_no_way_is_counted() -> None:
    assert chained(0.15, rows=0.0).bounds_s[0] == 0.0
