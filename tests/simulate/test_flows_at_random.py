"""Whole flows drawn at random give what pandas and DuckDB make of them, as 2,000 in a benchmark."""

from __future__ import annotations

from benchmarks.engine.flows_at_random import outcome
from benchmarks.engine.random_flows import draw_flow

FLOWS = 25


def test_whole_flows_at_random_give_what_pandas_makes_of_them() -> None:
    wrong = {}
    for number in range(FLOWS):
        found, _ = outcome(draw_flow(9, number, most_rows=40), lambda drawn: drawn.simulated())
        if found:
            wrong[f"draw_flow(9, {number}, most_rows=40)"] = found
    assert not wrong


def test_a_flow_is_drawn_again_by_its_numbers() -> None:
    first, again = draw_flow(9, 3, most_rows=40), draw_flow(9, 3, most_rows=40)
    assert first.flow.explain() == again.flow.explain()
    assert all(first.answers[sink].rows.equals(again.answers[sink].rows) for sink in first.answers)
