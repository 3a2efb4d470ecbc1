"""Whole flows drawn at random give what pandas and DuckDB make of them, as 2,000 in a benchmark."""

from __future__ import annotations

from collections import Counter

from benchmarks.engine.flows_at_random import outcome
from benchmarks.engine.random_flows import draw_flow

FLOWS = 25


def test_whole_flows_at_random_give_what_pandas_makes_of_them() -> None:
    wrong, kinds = {}, Counter[str]()
    for number in range(FLOWS):
        flow = draw_flow(9, number, most_rows=40)
        kinds.update(flow.kinds)
        found, _ = outcome(flow, lambda drawn: drawn.simulated())
        if found:
            wrong[f"draw_flow(9, {number}, most_rows=40)"] = found
    assert not wrong
    new = {"reread", "sessions by row", "join of tables where"}
    assert {"over", "totals", "windows", "lookup", "join of tables", *new} <= kinds.keys()


def test_an_answer_that_lacks_a_row_is_found() -> None:
    kinds = ["none", "whole", "split"]  # of changes
    for number in range(FLOWS):
        flow = draw_flow(9, number, most_rows=40)
        twins = [t for t in flow.answers.values() if len(t.rows) and t.changes in kinds]
        if not twins:
            continue
        kinds.remove(twins[0].changes)
        twins[0].rows = twins[0].rows.iloc[1:]
        found, is_error = outcome(flow, lambda drawn: drawn.simulated())
        assert found, f"draw_flow(9, {number}, most_rows=40)"
        assert not is_error, found
        if not kinds:
            break
    assert not kinds


def test_a_flow_is_drawn_again_by_its_numbers() -> None:
    first, again = draw_flow(9, 3, most_rows=40), draw_flow(9, 3, most_rows=40)
    assert first.flow.explain() == again.flow.explain()
    assert all(first.answers[sink].rows.equals(again.answers[sink].rows) for sink in first.answers)
