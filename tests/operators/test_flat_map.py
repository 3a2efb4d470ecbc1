"""Functions of a row that return any number of rows, and what they may not return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError

ROWS = {"t": [1, 2, 3, 4], "n": [2, 0, 1, 3], "at": ["a", None, "c", "d"]}


def run(function: Callable[..., Any], schema: Any = None, **how: Any) -> tuple[Any, list[Any]]:
    flow = sw.Dataflow("many")
    rows = flow.source(
        "rows", sw.table(ROWS, batch_rows=how.pop("batch_rows", 100)), event_time="t", time_unit="s"
    )
    made = rows.flat_map(function, schema or {"at": "string", "i": "int64"}, **how)
    made.with_columns(t=sw.event_time() // 10**9).sink("out", sw.collect_sink())
    if how.get("on_error") == "divert":
        made.diverted().sink("bad", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job, [tuple(row.values()) for row in job.result("out").to_pylist()]


def listed(row: dict[str, Any]) -> list[dict[str, Any]] | None:
    made = [{"at": row["at"], "i": i} for i in range(row["n"])]
    return made or None


def yielded(row: dict[str, Any]) -> Any:
    same: dict[str, Any] = {}
    for i in range(row["n"]):
        same.update(at=row["at"], i=i)
        yield same  # filled again


@pytest.mark.parametrize("function", [listed, yielded])
@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_leave_in_the_order_of_the_list_with_the_time_of_theirs(
    function: Callable[..., Any], batch_rows: int
) -> None:
    job, rows = run(function, batch_rows=batch_rows)
    assert rows == [
        ("a", 0, 1),
        ("a", 1, 1),
        ("c", 0, 3),
        ("d", 0, 4),
        ("d", 1, 4),
        ("d", 2, 4),
    ]
    assert str(job.report().ledger).startswith("4 in + 3 copied = 6 out + 0 late + 1 filtered")


def raises(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at": row["at"], "i": 6 // row["n"]}, {"at": row["at"], "i": 0}]


def test_an_error_names_the_row_and_the_line_of_the_function() -> None:
    with pytest.raises(OperatorError) as problem:
        run(raises)
    says = str(problem.value)
    assert "step 'flat_map-1': its function raised ZeroDivisionError" in says
    assert "6 // row[" in says
    assert "'n': 0" in says


def test_a_row_that_fails_is_diverted_whole_and_the_ledger_balances() -> None:
    job, rows = run(raises, on_error="divert")
    assert len(rows) == 6
    assert job.result("bad")["error"].to_pylist() == [
        "ZeroDivisionError: integer division or modulo by zero"
    ]
    assert job.report().ledger.is_balanced


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda row: row, "it must return a list of dicts of at, i, or None"),
        (lambda _: "text", "it must return a list of dicts of at, i, or None"),
        (lambda _: 3, "it must return a list of dicts of at, i, or None"),
        (lambda _: [{"at": "x", "i": 1}, 4], "a list whose element 1 is"),
        (lambda _: [{"at": "x"}], "lacks i"),
        (lambda _: [{"at": "x", "i": "y"}], "column 'i' should be int64"),
    ],
)
def test_what_is_no_list_of_rows_is_refused_with_the_row(
    function: Callable[..., Any], says: str
) -> None:
    with pytest.raises(OperatorError) as problem:
        run(function)
    assert says in str(problem.value)
    assert "'n': 2" in str(problem.value)
