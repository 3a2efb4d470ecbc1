"""What gates add to a predicted latency, beside what the simulator then measures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.foresight.chosen.admission import admitted_plan
from slackwater.runtime.foresight.predicted.gate_waits import relieves
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.simulate import CostModel
from slackwater.sampling import sample_flow

SECONDS, RATE = 30, 40
COST = CostModel(per_slice_ns=0, per_row_ns=1_000)


def stream(rng: np.random.Generator, *, late_s: float) -> pa.Table:
    """Rows in order, that come later and later by up to `late_s`, and then in time again."""
    ts = (np.arange(SECONDS * RATE) + 0.5) / RATE
    lag = late_s * np.clip((ts % 15) / 10, 0, 1) * (ts % 15 < 11)
    came = np.maximum.accumulate(ts + lag)
    return pa.table(
        {
            "ts": pa.array((ts * 1e9).astype("int64"), pa.timestamp("ns")),
            "came": pa.array(((came - came[0]) * 1e9).astype("int64"), pa.timestamp("ns")),
            "k": rng.integers(0, 8, len(ts)),
        }
    )


def flow_of(
    *, slack: str | None = None, deadline: str | None = None, late_s: float = 3.0, seed: int = 1
) -> sw.Dataflow:
    """Two streams, one late in waves; pairs of them."""
    flow = sw.Dataflow("gates", deadline=deadline)
    a, b = late_streams(flow, seed=seed, a=late_s, b=0.0)
    wait = {} if slack is None and deadline is not None else {"slack": slack}
    pairs = a.join(b, on="k", within="2s", name="pairs", **wait)
    pairs.sink("out", sw.collect_sink())
    return flow


def predicted(flow: sw.Dataflow) -> Prediction:
    """Return what is predicted from all rows."""
    return sw.Simulation(nodes=2, cost=COST).predict(
        flow, {"a": RATE, "b": RATE}, sample=SECONDS * RATE, horizon=f"{SECONDS}s"
    )


@pytest.mark.parametrize("slack", [None, "500ms", "2s"])
def test_the_gates_part_is_predicted_as_the_simulator_then_measures_it(slack: str | None) -> None:
    made = predicted(flow_of(slack=slack))
    (sink,) = sw.Simulation(nodes=2, cost=COST).submit(flow_of(slack=slack)).wait().sinks
    measured_s = sink.latency.max_ns / 1e9
    assert made.gates is not None
    assert made.estimate.worst_s == pytest.approx(measured_s, rel=0.05)
    assert made.gates.worst_work_s < 0.1
    assert not made.has_backlog  # of work


@pytest.mark.parametrize("step", ["dedupe", "followed_by"])
def test_a_gate_after_one_that_lets_rows_go_at_once_is_counted(step: str) -> None:
    flow = sw.Dataflow("gates")
    a, b = late_streams(flow, seed=1, a=3.0, b=0.0)
    both = a.merge(b, slack="0s")
    if step == "dedupe":
        rows = both.with_columns(at=sw.col("ts").cast("int64"))
        rows.dedupe(("k", "at"), within="1s", slack=None).sink("out", sw.collect_sink())
    else:
        first, then = sw.col("k") == 1, sw.col("k") == 2
        pairs = both.followed_by(first=first, then=then, within="5s", slack=None)
        pairs.sink("out", sw.collect_sink())
    made = predicted(flow)
    (sink,) = sw.Simulation(nodes=2, cost=COST).submit(flow).wait().sinks
    assert made.estimate.worst_s == pytest.approx(sink.latency.max_ns / 1e9, rel=0.1)


def test_a_stream_joined_with_itself_counts_its_work_once() -> None:
    """The join has a load of 0.6. Counted twice, its backlog grows by 0.2 s a second."""
    flow = sw.Dataflow("gates")
    (a,) = late_streams(flow, seed=1, a=0.0)
    a.join(a, on="k", within="100ms", name="pairs").sink("out", sw.collect_sink())
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages={"pairs": 0.6e9 / (2 * RATE)})
    rows = SECONDS * RATE
    made = sw.Simulation(nodes=2, cost=cost).predict(
        flow, {"a": RATE}, sample=rows, horizon=f"{SECONDS}s"
    )
    assert made.estimate.worst_s < 0.2


def test_the_verdict_on_a_deadline_counts_what_gates_hold_back() -> None:
    assert predicted(flow_of(slack="500ms", deadline="1s")).keeps_deadline is True
    broken = predicted(flow_of(slack="2s", deadline="1s"))
    assert broken.keeps_deadline is False
    text = broken.text()
    assert "deadline    1.00 s is not kept" in text
    assert "pairs holds rows slack 2.00 s: at most 2." in text
    assert ", the longest for a;" in text
    assert 'relief      a smaller slack for pairs: slack="' in text
    said = json.loads(json.dumps(broken.to_json()))
    assert said["keeps_deadline"] is False
    assert said["gates"]["each"][0]["waits_for"] == "a"
    assert said["gates"]["worst_gate_s"] == pytest.approx(2.0, abs=0.1)


def test_a_relief_that_leaves_the_worst_as_it_is_is_none() -> None:
    assert not relieves(0.012499, 0.0125)
    assert not relieves(0.0125, 0.0125)
    assert relieves(0.9, 1.0)
    assert relieves(3.09, float("inf"))


def test_where_gates_break_a_deadline_more_nodes_are_no_way_out() -> None:
    found = fewest_nodes(
        flow_of(slack="2s"), {"a": RATE, "b": RATE}, deadline_s=1.0, sample=400, most=2
    )
    assert found.nodes is None
    assert "no number of nodes keeps 1.00 s: rows wait in gates for longer, most" in found.text()


def test_a_gate_that_the_deadline_tunes_gives_way_to_it() -> None:
    made = predicted(flow_of(deadline="1s"))
    assert made.verdict == "may be missed", "what work leaves of it is all taken"
    assert 0.5 < made.estimate.worst_s <= 1
    assert "as the deadline leaves" in made.text()
    assert "smaller slack" not in made.text()  # it is the deadline that says how long


def test_provision_tunes_gates_by_the_deadline_that_is_asked_for() -> None:
    """Tuned for 5 s, rows wait for the late stream, 3 s; for 1 s they cannot."""
    flow, rates = flow_of(deadline="5s"), {"a": RATE, "b": RATE}
    assert fewest_nodes(flow, rates, deadline_s=5.0, sample=400).made.worst_s > 2
    found = fewest_nodes(flow, rates, deadline_s=1.0, sample=400, most=2)
    assert found.nodes == 1
    assert found.made.worst_s <= 1
    assert "deadline    1.00 s may be missed: up to 1." in found.made.text()
    assert flow.deadline_ns == 5_000_000_000


def test_a_gate_that_waits_for_the_end_of_a_source_keeps_no_deadline_and_says_so() -> None:
    rng = np.random.default_rng(1)
    flow = sw.Dataflow("never", deadline="1s")
    a = flow.source(
        "a", sw.table(stream(rng, late_s=0.0)), event_time="ts", arrival="came", writer="k"
    )
    b = flow.source("b", sw.table(stream(rng, late_s=0.0)), event_time="ts", arrival="came")
    a.join(b, on="k", within="2s", slack=None, name="pairs").sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=2).predict(flow, 2 * RATE, horizon="10s")
    assert made.is_unbounded
    assert made.keeps_deadline is False
    assert "pairs holds its rows for longer than the time ahead: a promises nothing" in made.text()


@pytest.mark.parametrize(
    ("late", "waits_s", "said"),
    [
        ("15s", 15.0, "until all have promised: at most 15.0"),
        ("5min", None, "some 5.00 min, longer than is looked ahead: a promises that late; give it"),
    ],
)
def test_a_gate_that_waits_for_longer_than_the_time_ahead_says_how_long(
    late: str, waits_s: float | None, said: str
) -> None:
    """Ten seconds are asked for; what waits at their end is looked at for twenty more."""
    rng = np.random.default_rng(1)
    flow = sw.Dataflow("late", deadline="1min")
    a, b = (
        flow.source(
            name,
            sw.table(stream(rng, late_s=0.0)),
            event_time="ts",
            arrival="came",
            speed=1,
            **more,
        )
        for name, more in (("a", {"promise": sw.col("ts") - sw.duration(late)}), ("b", {}))
    )
    pairs = a.join(b, on="k", within="2s", slack=None, name="pairs")
    pairs.sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=2).predict(flow, 2 * RATE, horizon="10s", sample=1_200)
    assert said in made.text()
    assert ("of what leaves by then: worst" in made.text()) is (waits_s is None)
    if waits_s is not None:
        assert made.worst_s == pytest.approx(waits_s, abs=0.3)
    assert made.keeps_deadline is (waits_s is not None)


def test_a_gate_that_lets_its_first_rows_go_and_holds_the_rest_keeps_no_deadline() -> None:
    """One of two sources is in time for 15 s, and then 1,000 s late."""
    flow = sw.Dataflow("stops", deadline="5s")
    ts = (np.arange(600) + 0.5) / 20
    sides = []
    for name, late_s in (("late", 1_000.0), ("prompt", 0.0)):
        came = ts + late_s * (ts > 15)
        columns = {
            key: pa.array((each * 1e9).astype("int64"), pa.timestamp("ns"))
            for key, each in (("ts", ts), ("came", came))
        }
        table = sw.table(pa.table(columns))
        sides.append(flow.source(name, table, event_time="ts", arrival="came", speed=1))
    merged = sides[0].merge(sides[1], name="both", slack=None)
    merged.sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=1, cost=COST).predict(
        flow, {"late": 20, "prompt": 20}, sample=600, horizon="1min"
    )
    assert made.gates is not None
    assert [(one.name, one.waits_for) for one in made.gates.never] == [("both", "late")]
    assert made.keeps_deadline is False
    assert "both holds its rows for some 16.7 min, longer than is looked ahead" in made.text()


def test_a_source_that_promises_now_and_then_is_looked_at_until_it_does() -> None:
    """Promises come every seven seconds, up to then: so long rows wait, and no longer."""
    at_ms = np.arange(SECONDS * RATE) * 1_000 // RATE
    columns = {"ts": pa.array(at_ms, pa.timestamp("ms"))}
    columns["told"] = pa.array(at_ms // 7_000 * 7_000, pa.timestamp("ms"))
    flow = sw.Dataflow("seldom", deadline="8s")
    table, promise = sw.table(pa.table(columns)), sw.col("told")
    rows = flow.source("a", table, event_time="ts", promise=promise, speed=1)
    rows.merge(name="one", slack=None).sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=1, cost=COST).predict(
        flow, RATE, sample=SECONDS * RATE, horizon="8s"
    )
    assert made.gates is not None
    assert made.gates.never == ()
    assert made.worst_s == pytest.approx(7.0, abs=0.2)
    assert made.keeps_deadline is True


@pytest.mark.parametrize(("speed", "waits_s"), [(1, 15.0), (0.5, 30.0)])
def test_slacks_in_a_row_are_looked_ahead_for_all_together_by_the_clock(
    speed: float, waits_s: float
) -> None:
    """A source that promises nothing: three slacks of 5 s, at half the pace of the clock 10 s."""
    rng = np.random.default_rng(1)
    flow = sw.Dataflow("slow")
    rows = flow.source(
        "a",
        sw.table(stream(rng, late_s=0.0)),
        event_time="ts",
        arrival="came",
        speed=speed,
        writer="k",
    )
    for name in ("one", "two", "three"):
        rows = rows.merge(name=name, slack="5s")
    rows.sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=1, cost=COST).predict(flow, RATE * speed, horizon="1min")
    assert made.gates is not None
    assert made.gates.never == ()
    assert made.worst_s == pytest.approx(waits_s, abs=1.0)


@pytest.mark.parametrize("until_s", [0.0, 0.01, 5.0])
def test_a_source_that_is_empty_or_has_ended_holds_no_gate(until_s: float) -> None:
    """No row, one, and rows of the first five of thirty seconds."""
    rng = np.random.default_rng(1)
    whole = stream(rng, late_s=0.0)
    few = stream(rng, late_s=0.0).slice(0, math.ceil(until_s * RATE))

    def flow() -> sw.Dataflow:
        made = sw.Dataflow("ends", deadline="1s")
        a, b = (
            made.source(name, sw.table(rows), event_time="ts", arrival="came", speed=1)
            for name, rows in (("a", whole), ("b", few))
        )
        a.merge(b, slack=None, name="all").sink("out", sw.collect_sink())
        return made

    rates = {"a": RATE, "b": len(few) / SECONDS}
    host = sw.Simulation(nodes=2, cost=COST)
    made = host.predict(flow(), rates, sample=SECONDS * RATE, horizon=f"{SECONDS}s")
    (sink,) = host.submit(flow()).wait().sinks
    assert sink.latency.max_ns < 100 * 10**6
    assert made.worst_s == pytest.approx(sink.latency.max_ns / 1e9, abs=0.1)
    assert made.verdict == "kept"
    more = {"a": RATE, "b": RATE}  # rows that the source has not: it goes on
    if until_s == 0.0:
        assert host.predict(flow(), more, sample=SECONDS * RATE).verdict == "not kept"


def test_where_no_gate_holds_anything_back_nothing_is_said_of_gates() -> None:
    rng = np.random.default_rng(1)
    flow = sw.Dataflow("one")
    rows = flow.source("a", sw.table(stream(rng, late_s=3.0)), event_time="ts", arrival="came")
    rows.merge(name="gate").sink("out", sw.collect_sink())
    made = sw.Simulation(nodes=1).predict(flow, RATE, horizon="10s")
    assert made.gates is None
    assert "gates " not in made.text()
    assert made.to_json()["gates"] is None


def test_a_sample_has_the_lags_of_its_sources_and_what_they_promise() -> None:
    sample = sample_flow(flow_of(), rows=SECONDS * RATE)
    assert set(sample.times) == {"a", "b"}
    assert np.ptp(sample.times["a"].lag_s) == pytest.approx(3.0, abs=0.1)
    assert np.ptp(sample.times["b"].lag_s) < 0.02
    assert np.array_equal(sample.times["a"].event_s, sample.times["a"].promise_s)


def test_a_source_that_puts_rows_in_order_hands_them_on_when_its_promise_lets_them() -> None:
    rng = np.random.default_rng(3)
    ts = np.arange(500) * 10_000_000
    mixed = ts + rng.integers(0, 100_000_000, len(ts))
    table = pa.table({"ts": pa.array(mixed, pa.timestamp("ns")), "came": ts.astype("M8[ns]")})
    flow = sw.Dataflow("sorted")
    flow.source(
        "a",
        sw.table(table),
        event_time="ts",
        arrival="came",
        out_of_order="sort",
        disorder="200ms",
    ).sink("out", sw.collect_sink())
    times = sample_flow(flow, rows=500).times["a"]
    assert (times.at_s - times.stimulus_s)[50:].mean() == pytest.approx(0.2, abs=0.08)
    assert (np.diff(times.event_s) >= 0).all()


def late_streams(flow: sw.Dataflow, *, seed: int = 1, **late_s: float) -> list[sw.Stream]:
    """Streams of a flow that come so late, {name: seconds}, drawn one behind the other."""
    rng = np.random.default_rng(seed)
    return [
        flow.source(
            name, sw.table(stream(rng, late_s=late)), event_time="ts", arrival="came", speed=1
        )
        for name, late in late_s.items()
    ]


def two_gates() -> sw.Dataflow:
    """A merge with a slack, and what leaves it joined with a third stream, under another."""
    flow = sw.Dataflow("two")
    a, b, c = late_streams(flow, a=3.0, b=0.0, c=1.0)
    merged = a.merge(b, name="all", slack="1s")
    pairs = c.join(merged, on="k", within="2s", name="pairs", slack="500ms")
    pairs.sink("out", sw.collect_sink())
    return flow


def windows() -> sw.Dataflow:
    """Windows over a merge: a result counts from what has closed its window."""
    flow = sw.Dataflow("windows")
    a, b = late_streams(flow, a=3.0, b=0.0)
    counts = a.merge(b, name="all").aggregate(
        by="k", window=sw.tumbling("1s"), n=sw.count(), name="counts"
    )
    counts.sink("out", sw.collect_sink())
    return flow


def replicas() -> sw.Dataflow:
    """A join whose gate is a stage of its own."""
    flow = sw.Dataflow("replicas")
    a, b = late_streams(flow, a=3.0, b=0.0)
    pairs = a.join(b, on="k", within="2s", name="pairs", slack="1s", replicas=2)
    pairs.sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("build", [two_gates, windows, replicas])
def test_gates_in_a_row_windows_and_replicas(build: Callable[[], sw.Dataflow]) -> None:
    host = sw.Simulation(nodes=3, cost=COST)
    flow = build()
    names = [stage.name for stage in host.plan(flow).stages if not stage.inputs]
    made = host.predict(
        flow,
        dict.fromkeys(names, RATE),
        sample=SECONDS * RATE,
        horizon=f"{SECONDS}s",
    )
    (sink,) = host.submit(build()).wait().sinks
    assert made.estimate.worst_s == pytest.approx(sink.latency.max_ns / 1e9, rel=0.05, abs=0.03)


@pytest.mark.parametrize("held", ["numbers", "buffer"])
def test_what_rows_wait_for_their_order_is_predicted_in_front_of_a_gate(held: str) -> None:
    flow = out_of_order(held, gated=True)
    made = predicted(flow)
    (sink,) = sw.Simulation(nodes=2, cost=COST).submit(flow).wait().sinks
    assert made.estimate.worst_s == pytest.approx(sink.latency.max_ns / 1e9, rel=0.05)
    assert made.estimate.worst_s > 0.5


@pytest.mark.parametrize("held", ["numbers", "buffer"])
def test_what_rows_wait_for_their_order_is_predicted_without_a_gate_too(held: str) -> None:
    host = sw.Simulation(nodes=2, cost=COST)
    flow = out_of_order(held, gated=False).with_deadline(0.5)
    made = host.predict(flow, {"a": RATE}, sample=SECONDS * RATE)
    (sink,) = host.submit(flow).wait().sinks
    assert made.worst_s == pytest.approx(sink.latency.max_ns / 1e9, rel=0.05)
    assert made.worst_s > 0.5
    assert made.verdict == "not kept"
    assert "in order    rows wait for those that are late: a at most " in made.text()
    assert "would not be kept" in (admitted_plan(made, "reject").verdict.refusal or "")
    few = fewest_nodes(flow, {"a": RATE}, deadline_s=0.5, sample=made.sample)
    assert "no number of nodes keeps 500 ms: rows of a wait for longer" in few.text()


def test_where_it_is_not_known_how_long_rows_wait_for_their_order_no_deadline_is_kept() -> None:
    """A record does not tell how long a source that learns it has held its rows."""
    flow = out_of_order("numbers", gated=False).with_deadline(5.0)
    made = sw.Simulation(nodes=2, cost=COST).predict(flow, {"a": RATE}, sample=SECONDS * RATE)
    assert (made.uncounted, made.verdict) == ((), "kept")
    one = made.sample.times["a"]
    times = {"a": replace(one, at_s=one.stimulus_s)}
    recorded = {"a": RecordedRate([RATE] * SECONDS, interval_s=1.0)}
    from_record = replace(made, sample=replace(made.sample, times=times, recorded=recorded))
    assert (from_record.uncounted, from_record.verdict) == (("a",), "may be missed")
    assert "upper bound not known: rows wait for their order" in from_record.text()
    assert "not counted what rows of 'a' wait to be put in order is not known" in from_record.text()
    notes = admitted_plan(from_record, None).verdict.notes
    assert any("wait to be put in order is not known" in note for note in notes)


def out_of_order(held: str, *, gated: bool) -> sw.Dataflow:
    """Rows of one device, some of them 0.6 to 0.9 s late, and rows in order, pairs of both."""
    rng = np.random.default_rng(5)
    ts = (np.arange(SECONDS * RATE) + 0.5) / RATE
    came = ts + np.where(
        (rng.random(len(ts)) < 0.02) & (ts < SECONDS - 2), rng.uniform(0.6, 0.9, len(ts)), 0
    )
    order = np.argsort(came, kind="stable")
    table = pa.table(
        {
            "ts": pa.array((ts[order] * 1e9).astype("int64"), pa.timestamp("ns")),
            "came": pa.array((came[order] * 1e9).astype("int64"), pa.timestamp("ns")),
            "n": order,
            "k": order % 8,
            "device": np.zeros(len(ts), dtype=np.int64),
        }
    )
    flow = sw.Dataflow("held")
    words = (
        {"out_of_order": sw.order.by_sequence(timeout="2s"), "sequence": "n", "writer": "device"}
        if held == "numbers"
        else {"out_of_order": sw.order.k_slack("1s")}
    )
    a = flow.source("a", sw.table(table), event_time="ts", arrival="came", speed=1, **words)
    if gated:
        (b,) = late_streams(flow, b=0.0)
        a = a.join(b, on="k", within="2s", name="pairs")
    a.sink("out", sw.collect_sink())
    return flow
