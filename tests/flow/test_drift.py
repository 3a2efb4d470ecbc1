"""What `drift=` may be, what columns it gives, and what `explain` says of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    ColumnError,
    DuplicateName,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)

MS = 1_000_000
TABLE = pa.table(
    {
        "ts": pa.array([1, 99, 103, 250], pa.int64()),
        "line": ["a", "a", "a", "b"],
        "speed": [1.0, 2.0, 6.0, 4.0],
        "stops": [3, 4, 5, 6],
        "off": [0, 2 * MS, 90 * MS, 0],
        "x": [0.5, 0.5, 0.5, 0.5],
    }
)


def buses(flow: sw.Dataflow | None = None) -> sw.Stream:
    flow = flow or sw.Dataflow("clocks", slack=None)
    return flow.source("buses", sw.table(TABLE), event_time="ts", time_unit="ms")


def averages(stream: sw.Stream, **given: Any) -> sw.Stream:
    return stream.aggregate(
        by="line", window=sw.tumbling("100ms"), v=sw.mean("speed"), least=sw.min("stops"), **given
    )


@pytest.mark.parametrize(
    ("drift", "error", "words"),
    [
        ("-5ms", SettingError, "drift='-5ms' is negative, and must be"),
        (-1, SettingError, "must be zero or more"),
        (True, SettingError, "is not a length of time"),
        ([5], SettingError, "is not a length of time"),
        (sw.col("off"), SettingError, "or the name of a column .* such as drift='bound_ns'"),
        ("5 parsecs", SettingError, "write a number and one of"),
        ("51ms", SettingError, "more than half of window=100 ms.*T_a.*lengthen it"),
        ("of", ColumnError, "neither a length such as '5ms' nor a column.*there are: ts, line"),
        ("x", TypeMismatch, r"drift='x' is double, and a bound is a whole number; cast"),
        ("line", TypeMismatch, "drift='line' is string"),
        (sw.clocks.clock_bound("off", most="51ms"), SettingError, "more than half"),
        (sw.clocks.clock_bound("offs", most="1ms"), ColumnError, "drift='offs'"),
        (sw.clocks.clock_bound("off", most="soon"), SettingError, r"clock_bound\(most\)='soon'"),
    ],
)
def test_what_is_no_drift_is_refused_with_the_rule(
    drift: Any, error: type[SlackwaterError], words: str
) -> None:
    with pytest.raises(error, match=words) as problem:
        averages(buses(), drift=drift)
    assert "step 'aggregate-1'" in str(problem.value)


def test_an_aggregate_named_as_one_that_drift_adds_is_refused() -> None:
    with pytest.raises(DuplicateName, match=r"v_low.*give the aggregate another name"):
        averages(buses(), v_low=sw.count(), drift="1ms")


def test_each_aggregate_has_four_columns_of_its_type_and_a_mean() -> None:
    made = averages(buses(), n=sw.count(), drift="5ms")
    assert [(one.name, str(one.type)) for one in made.schema][3:] == [
        *[(name, "double") for name in ("v", "v_mean", "v_low", "v_high")],
        ("least", "int64"),
        ("least_mean", "double"),
        ("least_low", "int64"),
        ("least_high", "int64"),
        ("n", "int64"),
        ("n_mean", "double"),
        ("n_low", "int64"),
        ("n_high", "int64"),
    ]


@pytest.mark.parametrize(
    ("drift", "text"),
    [
        ("5ms", "drift    ± 5.00 ms: of the window as it is, and moved either way"),
        ("off", "drift    ± off, at most 50.0 ms:"),
        (sw.clocks.clock_bound("off", most="20ms"), "drift    ± off, at most 20.0 ms:"),
    ],
)
def test_explain_says_how_far_clocks_may_be_off(drift: Any, text: str) -> None:
    stream = averages(buses(), drift=drift)
    stream.sink("out", sw.collect_sink())
    assert text in stream.flow.explain()


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_flow_gives_the_interval_and_counts_bounds_that_were_cut(replicas: int) -> None:
    flow = sw.Dataflow("clocks", slack=None)
    given = sw.clocks.clock_bound("off", most="4ms")
    averages(buses(flow), drift=given, replicas=replicas, name="means").sink(
        "out", sw.collect_sink()
    )
    job = sw.Simulation().submit(flow)
    report = job.wait()
    columns = ["line", "v", "v_mean", "v_low", "v_high", "least", "least_low", "least_high"]
    rows = job.result("out").select(columns).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("a", 1.5, pytest.approx((1 + 1.5 + 3) / 3), 1.0, 3.0, 3.0, 3, 3),
        ("a", 6.0, pytest.approx((4 + 6) / 2), 4.0, 6.0, 5.0, 4, 5),
        ("b", 4.0, 4.0, 4.0, 4.0, 6.0, 6, 6),
    ]
    assert report.ledger.is_balanced
    counted = [one.counted for one in report.stages if one.kind == "aggregate"]
    assert sum(one["bounds_cut"] for one in counted) == 1


def pairs(flow: sw.Dataflow, **given: Any) -> sw.Stream:
    """Return pairs of a bus and an alarm 10 ms apart at most; alarms at 0, 115 and 300 ms."""
    alarms = flow.source(
        "alarms",
        sw.table(pa.table({"ts": [0, 115, 300], "line": ["a", "a", "b"], "off": [0, MS, 0]})),
        event_time="ts",
        time_unit="ms",
    )
    return buses(flow).join(
        alarms.select("line", "off"), on="line", within="10ms", name="pairs", **given
    )


@pytest.mark.parametrize(
    ("drift", "error", "words"),
    [
        ("6ms", SettingError, "drift of 6.00 ms is more than half of within=10.0 ms"),
        ("stops", ColumnError, r"drift='stops'.*there are: line, off"),  # of the right only
        ("x", TypeMismatch, "drift='x' is double"),
    ],
)
def test_a_join_refuses_what_is_no_drift_of_both_its_sides(
    drift: Any, error: type[SlackwaterError], words: str
) -> None:
    with pytest.raises(error, match=words):
        pairs(sw.Dataflow("clocks", slack=None), drift=drift)


def test_a_join_with_drift_takes_the_name_of_its_own_column() -> None:
    flow = sw.Dataflow("clocks", slack=None)
    stream = buses(flow).with_columns(certain=sw.col("x") > 0)
    with pytest.raises(DuplicateName, match=r"'certain'; drift= adds one of that name"):
        stream.join(buses_again(flow), on="line", within="10ms", drift="1ms")


def buses_again(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("again", sw.table(TABLE), event_time="ts", time_unit="ms")


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("wanted", ["certain", "speed"])
def test_a_flow_keeps_pairs_that_may_be_near_enough_and_counts_them_at_the_sink(
    replicas: int, wanted: str
) -> None:
    flow = sw.Dataflow("clocks", slack=None)
    pairs(flow, drift="2ms", replicas=replicas).select(wanted).sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    report = job.wait()
    # 0 and 1 ms: surely; 103 and 115 ms are 12 apart: perhaps 10. 99 and 115 are not.
    assert job.result("out")[wanted].to_pylist() == (
        [True, False] if wanted == "certain" else [1.0, 6.0]
    )
    (sink,) = report.sinks
    assert sink.marked == {"uncertain": 1}
    assert report.ledger.is_balanced


def test_a_filter_on_what_is_certain_stays_behind_its_join() -> None:
    flow = sw.Dataflow("clocks", slack=None)
    made = pairs(flow, drift="2ms").filter(sw.col("certain"))
    assert flow.steps["pairs"].names_before("certain") == (None, None)
    made.sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    assert job.wait().ledger.is_balanced
    assert job.result("out")["speed"].to_pylist() == [1.0]


def follows(stream: sw.Stream, **given: Any) -> sw.Stream:
    wanted: dict[str, Any] = {
        "first": sw.col("speed") <= 2,
        "then": sw.col("speed") > 2,
        "within": "10ms",
        "by": "line",
        "name": "jumps",
    }
    return stream.followed_by(**(wanted | given))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"first": sw.col("speed")}, TypeMismatch, "first .*must be true or false"),
        ({"then": 3}, TypeMismatch, "then .*must be true or false"),
        ({"then": sw.col("sped") > 1}, ColumnError, "sped"),
        ({"within": 0}, SettingError, "within=0 must be more than zero"),
        ({"drift": "5.1ms"}, SettingError, "more than half of within=10.0 ms"),
        ({"drift": "later"}, ColumnError, "drift='later' is neither a length"),
        ({"by": (), "replicas": 2}, SlackwaterError, "replicas=2 share its rows by key"),
    ],
)
def test_followed_by_refuses_what_cannot_be(
    given: dict[str, Any], error: type[SlackwaterError], words: str
) -> None:
    with pytest.raises(error, match=words) as problem:
        follows(buses(), **given)
    assert "'jumps'" in str(problem.value)


def test_explain_says_what_is_to_follow_what() -> None:
    stream = follows(buses(), drift="2ms")
    stream.sink("out", sw.collect_sink())
    text = stream.flow.explain()
    for line in (
        "by       line",
        'then     col("speed") > 2, within 10.0 ms',
        "drift    ± 2.00 ms: each match that may be one, marked",
    ):
        assert line in text


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_flow_keeps_matches_of_which_clocks_leave_the_order_open(
    replicas: int, is_keyed: bool
) -> None:
    flow = sw.Dataflow("clocks", slack=None)
    given: dict[str, Any] = {
        "first": sw.col("speed") <= 2,
        "then": sw.col("speed") > 2,
        "within": "10ms",
        "drift": "2ms",
        "replicas": replicas,
    }
    stream = buses(flow)
    found = (
        stream.key_by("line").followed_by(**given)
        if is_keyed
        else stream.followed_by(by="line", **given)
    )
    found.sink("out", sw.collect_sink())
    found.late().sink("late", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    report = job.wait()
    columns = ["line", "first_ts", "then_ts", "then_stops", "certain"]
    rows = job.result("out").select(columns).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", 99, 103, 5, False)]
    (sink, late) = report.sinks
    assert sink.marked == {"uncertain": 1}
    assert late.rows == 0
    assert report.ledger.is_balanced


def test_what_follows_can_be_followed_by_steps_and_filters_on_its_key_go_first() -> None:
    flow = sw.Dataflow("clocks", slack=None)
    found = follows(buses(flow)).filter(sw.col("line") == "a").select("line", after="then_ts")
    assert flow.steps["jumps"].names_before("line") == ("line",)
    assert flow.steps["jumps"].names_before("then_ts") == (None,)
    found.sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    job.wait()
    assert job.result("out").to_pylist() == [{"line": "a", "after": 103}]
