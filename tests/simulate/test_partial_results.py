"""Partial results beside a source: the same bytes, fewer rows sent, each row accounted for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.plan.plan import plan_stages

ROWS = 4_000
BIG = 2**60


def test_a_sum_that_does_not_fit_names_the_column_of_the_source() -> None:
    table = {"ts": range(1_000), "k": [1] * 1_000, "v": [2**62] * 1_000}
    flow = sw.Dataflow("partial")
    stream = flow.source("rows", sw.table(table), event_time="ts", time_unit="ms")
    sums = stream.aggregate(by="k", window=sw.tumbling("1s"), s=sw.sum("v"), replicas=2)
    sums.sink("out", sw.collect_sink())
    with pytest.raises(OperatorError, match=r"sum of column 'v': .*col\('v'\)\.cast"):
        sw.Simulation(nodes=2).submit(flow).wait()


def rows(seed: int, *, big: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    maybe = [None if n % 7 == 0 else int(n) for n in rng.integers(0, 100, ROWS)]
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 3_000, ROWS)),
            "k": rng.integers(0, 20, ROWS),
            "text": pa.array([None if n == 3 else f"t{n}" for n in rng.integers(0, 9, ROWS)]),
            "v": rng.integers(-BIG, BIG, ROWS) if big else rng.integers(-9, 9, ROWS),
            "short": rng.integers(-9, 9, ROWS).astype(np.int16),
            "maybe": pa.array(maybe, pa.int64()),
            "x": rng.random(ROWS),
        }
    )


def exact() -> dict[str, sw.Aggregate]:
    return {
        "n": sw.count(),
        "there": sw.count("maybe"),
        "sum": sw.sum("v"),
        "sum_short": sw.sum("short"),
        "sum_maybe": sw.sum("maybe"),
        "least": sw.min("maybe"),
        "most": sw.max("short"),
    }


def flow_of(
    replicas: int | None,
    *,
    batch_rows: int = 1_000,
    window: Any = None,
    by: Any = "k",
    big: bool = False,
    aggregates: dict[str, Any] | None = None,
    **source: Any,
) -> sw.Dataflow:
    flow = sw.Dataflow("partial")
    table = sw.table(rows(1, big=big), batch_rows=batch_rows)
    stream = flow.source("rows", table, event_time="ts", time_unit="ms", **source)
    stream.filter(sw.col("x") > 0.05, name="most").aggregate(
        aggregates or exact(),
        by=by,
        window=window or sw.tumbling("100ms"),
        replicas=replicas,
        name="counts",
    ).sink("out", sw.collect_sink())
    return flow


def combines(flow: sw.Dataflow) -> bool:
    source, *_ = plan_stages(flow.graph)
    return any(step.name == "counts.combine" for step in source.chain)


@pytest.mark.parametrize(
    "window", [sw.tumbling("100ms"), sw.sliding("300ms", "100ms"), sw.sliding("250ms", "100ms")]
)
@pytest.mark.parametrize("by", ["k", ["text", "k"]])
@pytest.mark.parametrize("big", [False, True])
def test_partial_results_change_no_bit_and_no_row_is_lost(window: Any, by: Any, big: bool) -> None:
    aggregates = {**exact(), "sum": sw.max("v")} if big else exact()  # a sum would not fit
    expected, whole = None, None
    for replicas, batch_rows in ((1, 1_000), (2, 60), (2, 1_000), (3, 4_000)):
        flow = flow_of(
            replicas, batch_rows=batch_rows, window=window, by=by, big=big, aggregates=aggregates
        )
        assert combines(flow) is (replicas > 1)
        job = sw.Simulation(nodes=2, seed=replicas).submit(flow)
        report = job.wait()
        assert imbalances(report) == []
        counts = report.ledger.counts.of_job()
        accounted = sum(counts[name] for name in ("out", "filtered", "combined"))
        assert report.ledger.entered == accounted == ROWS
        assert (counts["combined"] > 0) is (batch_rows > 60 and replicas > 1)
        expected = expected or job.result("out")
        whole = whole or counts["filtered"]
        assert job.result("out").equals(expected)
        assert counts["filtered"] == whole


def test_sums_that_leave_64_bits_on_their_way_are_those_of_rows() -> None:
    """Two numbers of a window may add up to too much, and a third bring the sum back."""
    times = [n * 3_000 // ROWS for n in range(ROWS)]
    values = [BIG * 4 if n % 2 else -BIG * 4 for n in range(ROWS)]
    table = pa.table({"ts": times, "k": [n % 2 for n in range(ROWS)], "v": values})
    table = table.set_column(1, "k", pa.array([0] * ROWS))
    found = []
    for replicas in (1, 2):
        flow = sw.Dataflow("large")
        flow.source("rows", sw.table(table), event_time="ts", time_unit="ms").aggregate(
            by="k", window=sw.tumbling("1s"), sum=sw.sum("v"), n=sw.count(), replicas=replicas
        ).sink("out", sw.collect_sink())
        job = sw.Simulation(nodes=2).submit(flow)
        job.wait()
        found.append(job.result("out"))
    assert found[0].equals(found[1])


@pytest.mark.parametrize(
    ("aggregates", "by", "source"),
    [
        ({"mean": sw.mean("v")}, "k", {}),
        ({"sum": sw.sum("x")}, "k", {}),
        ({"least": sw.min("x")}, "k", {}),
        ({"n": sw.count()}, "x", {}),
        ({"n": sw.count()}, "k", {"idle": "1s"}),
    ],
)
def test_where_a_bit_could_change_or_a_row_be_late_rows_are_sent(
    aggregates: dict[str, Any], by: str, source: dict[str, Any]
) -> None:
    assert not combines(flow_of(2, aggregates=aggregates, by=by, **source))


def test_rows_that_another_step_wants_are_sent_as_they_are() -> None:
    flow = flow_of(2)
    assert combines(flow)
    late = sw.Dataflow("late")
    stream = late.source("rows", sw.table(rows(1)), event_time="ts", time_unit="ms")
    counts = stream.aggregate(exact(), by="k", window=sw.tumbling("1s"), replicas=2, name="counts")
    counts.sink("out", sw.collect_sink())
    stream.sink("all", sw.collect_sink())
    assert not combines(late), "the source has another consumer"
