"""Partial results beside a source: fewer rows sent, each accounted for, the same bytes.

Of floats they are made on request, and last bits of sums and means may then differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, OperatorError, SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.operators.aggregate import combine
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
            "short_float": rng.random(ROWS).astype(np.float32),
            "maybe_float": pa.array([None if n is None else n / 7 for n in maybe], pa.float64()),
            "odd_float": rng.choice([np.nan, np.inf, -np.inf, 1.5], ROWS, p=[0.1, 0.1, 0.1, 0.7]),
            "float_key": rng.choice([np.nan, 0.0, -0.0, 2.5], ROWS),
        }
    )


def exact() -> dict[str, sw.Aggregate]:
    return {
        "n": sw.count(),
        "there": sw.count("maybe"),
        "sum": sw.sum("v"),
        "sum_short": sw.sum("short"),
        "sum_maybe": sw.sum("maybe"),
        "mean": sw.mean("v"),
        "mean_maybe": sw.mean("maybe"),
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
    combine: Any = "exact",
    output: Any = None,
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
        combine=combine,
        name="counts",
    ).sink("out", output or sw.collect_sink())
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
    aggregates = exact()
    if big:  # a sum would not fit
        aggregates |= {"sum": sw.max("v"), "mean": sw.min("v")}
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


@pytest.mark.parametrize("most_keys", [10, 65_536])
@pytest.mark.parametrize("by", ["k", "text", ["text", "k"]])
def test_keys_that_come_later_and_go_change_no_bit(
    by: Any, most_keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some batches have known keys, some have new ones, and some are not combined."""
    monkeypatch.setattr(combine, "_MOST_KEYS", most_keys)
    rng = np.random.default_rng(3)
    many = [5, 20, 400, 20, 900, 600, 5, 300]
    keys = np.concatenate([rng.integers(0, least, 500) + least // 3 for least in many])
    text = [None if key % 11 == 3 else f"t{key}" for key in keys.tolist()]
    table = pa.table({"ts": np.arange(ROWS), "k": keys.astype(np.int16), "text": pa.array(text)})
    results, combined = [], []
    for replicas in (1, 3):
        flow = sw.Dataflow("later")
        rows = flow.source("rows", sw.table(table, batch_rows=500), event_time="ts", time_unit="ms")
        rows.aggregate(
            by=by,
            window=sw.tumbling("300ms"),
            n=sw.count(),
            total=sw.sum("k"),
            replicas=replicas,
        ).sink("out", sw.collect_sink())
        job = sw.Simulation(nodes=2).submit(flow)
        combined.append(job.wait().ledger.counts.of_job()["combined"])
        results.append(job.result("out"))
    assert results[0].equals(results[1])
    assert 1_000 < combined[1] < 2_500, "some batches are combined, and some are not"


FLOATS = {
    "n": sw.count(),
    "there": sw.count("maybe_float"),
    "mean": sw.mean("x"),
    "sum": sw.sum("x"),
    "mean.count": sw.mean("maybe_float"),
    "sum_short": sw.sum("short_float"),
    "least": sw.min("maybe_float"),
    "most": sw.max("short_float"),
    "odd_sum": sw.sum("odd_float"),
    "odd_mean": sw.mean("odd_float"),
    "odd_least": sw.min("odd_float"),
    "odd_most": sw.max("odd_float"),
}
SUMMED = ("mean", "sum", "mean.count", "sum_short")
"""Columns of `FLOATS` that may differ in last bits."""
MOST_APART = 1e-13
"""Relative error: 40 values and less add up to a window, and none is below 0."""


@pytest.mark.parametrize("window", [sw.tumbling("100ms"), sw.sliding("250ms", "100ms")])
@pytest.mark.parametrize("by", ["k", ["text", "k"], "float_key"])
def test_floats_combined_anywhere_differ_in_last_bits_alone(window: Any, by: Any) -> None:
    job = sw.Simulation().submit(flow_of(1, window=window, by=by, aggregates=FLOATS))
    job.wait()
    expected = job.result("out")
    for replicas, batch_rows in ((2, 60), (2, 1_000), (3, 4_000)):
        flow = flow_of(
            replicas,
            batch_rows=batch_rows,
            window=window,
            by=by,
            aggregates=FLOATS,
            combine="anywhere",
        )
        assert combines(flow)
        job = sw.Simulation(nodes=2, seed=replicas).submit(flow)
        report = job.wait()
        assert (report.ledger.counts.of_job()["combined"] > 0) is (batch_rows > 60)
        assert imbalances(report) == []
        result = job.result("out")
        for column in expected.column_names:
            if column in SUMMED:
                assert result[column].is_null().equals(expected[column].is_null())
                near = pytest.approx(expected[column].drop_null().to_numpy(), rel=MOST_APART)
                assert result[column].drop_null().to_numpy() == near
            else:  # NaN equals NaN, and −0.0 equals 0.0
                np.testing.assert_array_equal(expected[column], result[column])


def test_explain_resuming_and_recovery_all_say_that_last_bits_differ() -> None:
    aggregates = {"n": sw.count(), "mean": sw.mean("x"), "whole": sw.mean("v")}
    why = "last bits of mean depend on replicas= and on how rows are read"

    def explained(replicas: Any, **more: Any) -> tuple[str, str]:
        flow = flow_of(replicas, aggregates=aggregates, combine="anywhere", **more)
        first, *rest = flow.explain(checkpoints=True).splitlines()
        return first, "\n".join(rest)

    def output(*, resume: bool) -> Any:
        return sw.parquet_sink("never-written", resume=resume)

    for replicas in (2, "auto"):
        first, rest = explained(replicas, output=output(resume=False))
        assert "results may differ from run to run" in first
        assert rest.count(why) == 3, "the note, the step, and the sink after a failure"
        assert "out (sink): exactly once, held" in rest
        with pytest.raises(FlowError, match=why):
            flow_of(
                replicas, aggregates=aggregates, combine="anywhere", output=output(resume=True)
            ).check()
    first, rest = explained(1, output=output(resume=True))
    assert "ready-only" in first
    assert "combine  anywhere, but rows are sent: replicas=1" in rest
    assert why not in rest


@pytest.mark.parametrize(
    ("replicas", "source", "why"),
    [
        (None, {}, "replicas= is not written"),
        (2, {"idle": "1s"}, "source 'rows' has idle="),
        (2, {"out_of_order": sw.order.k_slack("5ms", late="pass")}, "rows of 'rows' may be late"),
    ],
)
def test_explain_says_why_rows_are_sent_though_floats_may_be_combined(
    replicas: Any, source: dict[str, Any], why: str
) -> None:
    flow = flow_of(replicas, aggregates={"mean": sw.mean("x")}, combine="anywhere", **source)
    assert f"anywhere, but rows are sent: {why}" in flow.explain()
    assert "last bits" not in flow.explain()
    assert not combines(flow)


def test_explain_says_that_whole_numbers_are_exact_with_partial_results_too() -> None:
    flow = flow_of(2, aggregates={"mean": sw.mean("v")}, combine="anywhere")
    assert "anywhere; all results are exact" in flow.explain()
    assert "last bits" not in flow.explain()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"q": sw.quantile("x", 0.5)}, r"q = quantile\(x, 0.5\) needs each row"),
        ({"s": sw.sum("big")}, "s is the sum of 'big', uint64"),
        ({"late": "correct"}, "late= needs each row"),
        ({"drift": "1ms"}, "drift= needs each row"),
        ({"close": sw.closing.ignore()}, "close= needs each row"),
    ],
)
def test_what_has_no_partial_results_is_refused_with_the_reason(
    more: dict[str, Any], why: str
) -> None:
    table = {"ts": [1], "x": [0.5], "big": pa.array([1], pa.uint64())}
    stream = sw.Dataflow("partial").source("rows", sw.table(table), event_time="ts")
    with pytest.raises(SettingError, match=f"'counts'.*{why}.*omit one of the two"):
        stream.aggregate(
            window=sw.tumbling("1s"), m=sw.mean("x"), name="counts", combine="anywhere", **more
        )


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
        ({"mean": sw.mean("x")}, "k", {}),
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


def test_a_step_may_have_the_name_that_partial_results_would_have() -> None:
    results = []
    for name in ("most", "counts.combine"):
        flow = sw.Dataflow("named")
        stream = flow.source("rows", sw.table(rows(1)), event_time="ts", time_unit="ms")
        stream.filter(sw.col("x") > 0.05, name=name).aggregate(
            exact(), by="k", window=sw.tumbling("1s"), replicas=2, name="counts"
        ).sink("out", sw.collect_sink())
        job = sw.Simulation(nodes=2).submit(flow)
        assert job.wait().ledger.counts.of_job()["combined"] > 0
        results.append(job.result("out"))
    assert results[0].equals(results[1])


def test_rows_that_another_step_wants_are_sent_as_they_are() -> None:
    flow = flow_of(2)
    assert combines(flow)
    late = sw.Dataflow("late")
    stream = late.source("rows", sw.table(rows(1)), event_time="ts", time_unit="ms")
    counts = stream.aggregate(exact(), by="k", window=sw.tumbling("1s"), replicas=2, name="counts")
    counts.sink("out", sw.collect_sink())
    stream.sink("all", sw.collect_sink())
    assert not combines(late), "the source has another consumer"
