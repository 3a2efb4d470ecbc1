"""The example of numbered messages, on real phones."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from examples import phones_in_order


@pytest.mark.data
def test_numbers_put_phones_in_order_sooner_than_a_buffer_and_account_for_each_message() -> None:
    table = phones_in_order.messages(sessions=2)
    assert phones_in_order.steps_back(table) > len(table) / 10
    waits = {}
    for name, order in (
        ("number", phones_in_order.BY_NUMBER),
        ("buffer", phones_in_order.BY_BUFFER),
    ):
        job, counts = ran(table, order)
        rows = job.result("in-order")
        assert phones_in_order.steps_back(rows) == 0
        assert len(rows) + counts["late_dropped"] + counts["duplicate"] == len(table)
        waits[name] = job.latency["in-order"]["p50_ms"]
    assert waits["number"] < waits["buffer"] / 2


def ran(table: Any, order: dict[str, Any]) -> tuple[Any, dict[str, int]]:
    job = sw.Simulation(nodes=1).submit(phones_in_order.build(sw.table(table), order))
    report = job.wait()
    assert report.state == "done", report.error
    assert report.ledger.is_balanced
    (source,) = [stage for stage in report.stages if stage.kind == "source"]
    return job, source.counts.by_name()
