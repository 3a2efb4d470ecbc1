"""Results that are held back meet rows of their own source, in gates that hold few rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import slackwater as sw

ROWS = 2_000
TABLE = {
    "t": list(range(ROWS)),
    "k": [n % 7 for n in range(ROWS)],
    "x": [n % 90 for n in range(ROWS)],
}


def unmatched(rows: sw.Stream) -> sw.Stream:
    return rows.join(rows.filter(sw.col("x") < 0), on="k", within="300ms", how="anti")


def later(rows: sw.Stream) -> sw.Stream:
    others = rows.select("k", y="x")
    return rows.asof(others, on="k", tolerance="300ms", direction="forward").drop("y")


def greatest(rows: sw.Stream) -> sw.Stream:
    return rows.top_k("x", 3, by="k")


def waiting(make: Callable[[sw.Stream], sw.Stream]) -> sw.Dataflow:
    flow = sw.Dataflow("withheld")
    rows = flow.source("rows", sw.table(TABLE), event_time="t", time_unit="ms")
    some = rows.dedupe(["k", "x", "t"], within="1ms")
    some.merge(make(some), name="both").sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize(("make", "results"), [(unmatched, ROWS), (later, ROWS), (greatest, 3 * 7)])
def test_a_gate_that_waits_for_rows_of_its_own_source_takes_more_of_it(
    make: Callable[[sw.Stream], sw.Stream], results: int, *, fuse: bool
) -> None:
    with sw.Simulation() as nodes:
        job = nodes.submit(
            waiting(make),
            limits=sw.Limits(gate_rows=50, credit_rows=40, max_slice_rows=10, fuse=fuse),
        )
        assert job.wait().ledger.is_balanced
        assert job.result("out").num_rows == ROWS + results


def test_one_that_holds_too_many_rows_says_whom_it_waits_for() -> None:
    limits = sw.Limits(gate_rows=50, most_gate_rows=100, credit_rows=40, max_slice_rows=10)
    with sw.Simulation() as nodes:
        job = nodes.submit(waiting(unmatched), limits=limits)
        with pytest.raises(sw.SlackwaterError, match=r"'both' holds .* until .* shorter within="):
            job.wait()


def test_a_gate_takes_no_more_of_a_source_than_the_step_before_it_holds() -> None:
    flow = sw.Dataflow("withheld")
    rows = flow.source("rows", sw.table(TABLE), event_time="t", time_unit="ms")
    others = flow.source("others", sw.table(TABLE), event_time="t", time_unit="ms")
    both = others.merge(rows, rows.join(rows.limit(1), on="k", within="300ms", how="anti"))
    both.sink("out", sw.collect_sink())
    limits = sw.Limits(gate_rows=50, most_gate_rows=500, credit_rows=40, max_slice_rows=10)
    with sw.Simulation() as nodes:
        job = nodes.submit(flow, limits=limits)
        report = job.wait()
        assert report.ledger.is_balanced
        most = {stage.name: stage.max_gate_rows for stage in report.stages}
    assert max(most.values()) < 2 * 300 + 200
