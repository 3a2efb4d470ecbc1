"""The first rows of a stream, its early end, and what the ledger says of the rest."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.outcomes import BEYOND_LIMIT
from slackwater.runtime.model import END_NS, READY_ONLY, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.limit.limit import LimitMachine, LimitStep
from tests.support.told import gate_read

ROWS = {"t": [1, 2, 3, 3, 5, 8, 9], "x": [1, 2, 3, 4, 5, 6, 7]}


def run(made: Any, **how: Any) -> tuple[Any, list[dict[str, Any]]]:
    flow = sw.Dataflow("first")
    rows = flow.source("rows", sw.table(ROWS, **how), event_time="t", time_unit="s")
    made(rows).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job, job.result("out").to_pylist()


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_the_first_rows_leave_and_the_rest_have_a_name_in_the_ledger(batch_rows: int) -> None:
    job, rows = run(lambda s: s.limit(4), batch_rows=batch_rows)
    assert [row["x"] for row in rows] == [1, 2, 3, 4]
    ledger = job.report().ledger
    assert (ledger.entered, ledger.out, ledger.filtered) == (7, 4, 0)
    assert ledger.counts[BEYOND_LIMIT] == 3
    assert "3 beyond limit" in str(ledger)


def test_more_rows_than_there_are_change_nothing() -> None:
    job, rows = run(lambda s: s.limit(8))
    assert len(rows) == 7
    assert job.report().ledger.counts[BEYOND_LIMIT] == 0


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_windows_downstream_close_with_the_last_row(batch_rows: int) -> None:
    _, rows = run(
        lambda s: s.limit(3).aggregate(window=sw.tumbling("10s"), n=sw.count()),
        batch_rows=batch_rows,
    )
    assert [row["n"] for row in rows] == [3]


def test_a_limited_stream_does_not_hold_back_others() -> None:
    _, rows = run(lambda s: s.limit(2).merge(s.filter(sw.col("x") > 5)), batch_rows=1)
    assert [row["x"] for row in rows] == [1, 2, 6, 7]


def test_a_restored_limit_goes_on_where_it_was() -> None:
    step = LimitStep(name="first", inputs=("rows",), schema=None, rows=3, release=READY_ONLY)
    machine, again = (LimitMachine(step, most_kept_rows=1) for _ in range(2))
    first = machine.work(gate_read([batch_of([1, 2])], [None], 2, 0, 2), 0)
    assert first.promise_ns == 2
    restore(again, save(machine))
    result = again.work(gate_read([batch_of([3, 4, 5])], [None], 5, 0, 5), 0)
    assert result.rows is not None
    assert result.rows.event_time_ns.tolist() == [3]
    assert (result.promise_ns, again.counts()) == (END_NS, {"beyond_limit": 2})


def test_no_rows_at_all_are_refused() -> None:
    with pytest.raises(SettingError, match=r"'limit-1': limit\(0\) leaves no row; write 1"):
        run(lambda s: s.limit(0))
