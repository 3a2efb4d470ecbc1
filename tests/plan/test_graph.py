"""The graph of a flow: its order, what it needs, how it reads."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import (
    CycleError,
    DuplicateName,
    FlowError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.each_row.columns import WithColumnsStep
from slackwater.runtime.operators.each_row.filter import FilterStep
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SourceStep
from tests.support.streams import (
    BUS,
    LOOP,
    FakeInput,
    flow_of_steps,
    flow_with_streams,
    message,
)

# ---- the graph


def test_a_flow_that_leads_from_sources_to_sinks_can_run() -> None:
    flow, buses, loops = flow_with_streams()
    jams = buses.filter(sw.col("speed") < 8).join(loops, on="area", within="5s")
    jams.sink("jams", sw.parquet_sink("out/"))
    flow.check()
    assert list(flow.steps) == ["buses", "loops", "filter-1", "join-1", "jams"]


def test_check_names_what_is_missing_or_left_over() -> None:
    assert "has no source" in message(FlowError, sw.Dataflow("f").check)
    flow, buses, _ = flow_with_streams()
    assert message(FlowError, flow.check) == (
        "dataflow 'congestion' has no sink; end with stream.sink(name, ...)"
    )
    buses.sink("out", sw.collect_sink())
    assert "step 'loops' feeds nothing, so its rows would be lost" in message(FlowError, flow.check)


@pytest.mark.parametrize(
    ("one", "other"),
    [("out/x.jsonl", "out//x.jsonl"), ("out", "out/in"), ("out/in/x.jsonl", "out")],
)
def test_two_sinks_do_not_write_to_one_place(one: str, other: str) -> None:
    flow, buses, loops = flow_with_streams()
    buses.sink("a", sw.jsonl_sink(one))
    loops.sink("b", sw.jsonl_sink(other))
    assert "sinks 'a' and 'b' both write to" in message(FlowError, flow.check)


def test_sinks_of_two_formats_may_share_a_folder() -> None:
    flow, buses, loops = flow_with_streams()
    buses.sink("a", sw.jsonl_sink("out/x.jsonl"))
    loops.sink("b", sw.parquet_sink("out"))
    flow.check()


def test_a_sink_takes_an_output() -> None:
    _, buses, _ = flow_with_streams()
    with pytest.raises(
        TypeMismatch,
        match="sink 'out': 'out/' is not an output; an output is parquet_sink",
    ):
        buses.sink("out", "out/")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="takes a function of a record batch"):
        sw.callback_sink("out/")  # type: ignore[arg-type]
    buses.sink("called", sw.callback_sink(print))


def plain(name: str, *inputs: str) -> Step:
    schema = pa.schema([("x", pa.int64())])
    return FilterStep(name=name, inputs=inputs, schema=schema, predicate=sw.col("x") > 0)


def test_steps_made_elsewhere_are_put_in_order() -> None:
    flow, buses, loops = flow_with_streams()
    buses.filter(sw.col("speed") < 8).join(loops, on="area", within="5s").sink(
        "out", sw.collect_sink()
    )
    again = flow_of_steps("again", reversed(list(flow.steps.values())), slack="1s")
    again.check()
    seen: set[str] = set()
    for step in again.steps.values():
        assert seen >= set(step.inputs)
        seen.add(step.name)
    assert seen == set(flow.steps)
    assert again.release == ReleaseRule.slack(10**9)


def test_a_step_that_feeds_itself_is_drawn_as_a_circle() -> None:
    steps = [plain("a", "c"), plain("b", "a"), plain("c", "b"), plain("d", "c")]
    said = message(CycleError, lambda: flow_of_steps("f", steps))
    assert said.startswith("step 'a' feeds itself: a → b → c → a; take one of these inputs away")
    said = message(CycleError, lambda: flow_of_steps("f", [plain("a", "a")]))
    assert said.startswith("step 'a' feeds itself: a → a;")


def test_unknown_inputs_and_two_steps_of_one_name_are_refused() -> None:
    said = message(FlowError, lambda: flow_of_steps("f", [plain("slow", "slwo")]))
    assert said == (
        "step 'slow': its input 'slwo' is not a step of this flow; the nearest is 'slow'; "
        "there are: slow"
    )
    with pytest.raises(DuplicateName, match="two steps are named 'a'"):
        flow_of_steps("f", [plain("a"), plain("a")])


@given(st.permutations(range(8)), st.randoms(use_true_random=False))
def test_any_order_of_steps_is_put_behind_its_inputs(order: list[int], random: Any) -> None:
    inputs = {n: random.sample(range(n), k=random.randint(0, min(n, 2))) for n in range(8)}
    steps = [plain(str(n), *map(str, inputs[n])) for n in order]
    seen: set[str] = set()
    for step in flow_of_steps("f", steps).steps.values():
        assert seen >= set(step.inputs)
        seen.add(step.name)
    assert len(seen) == 8


def test_nothing_follows_a_sink() -> None:
    flow, buses, loops = flow_with_streams()
    buses.sink("out", sw.collect_sink())
    loops.sink("other", sw.collect_sink())
    steps = [*flow.steps.values(), plain("late", "out")]
    assert "step 'out' is a sink, and feeds other steps; feed them from its input" in message(
        FlowError, flow_of_steps("f", steps).check
    )


# ---- which columns are needed


def test_only_what_a_step_behind_reads_is_needed() -> None:
    flow, buses, loops = flow_with_streams()
    slow = buses.filter(sw.col("speed") < 8)
    jams = slow.join(loops, on="area", within="5s", where=sw.col("flow") > 1000)
    jams.select("area", "line").sink("jams", sw.collect_sink())
    assert flow.needed_columns() == {
        "buses": {"area", "line", "speed"},
        "loops": {"area", "flow"},
        "filter-1": {"area", "line"},
        "join-1": {"area", "line"},
        "select-1": {"area", "line"},
        "jams": set(),
    }


def test_a_stream_joined_with_itself_needs_what_both_sides_read() -> None:
    flow, buses, _ = flow_with_streams()
    pairs = buses.join(buses, on="area", within="5s", where=sw.col("line") != sw.col("line_right"))
    pairs.select("speed_right").sink("out", sw.collect_sink())
    assert flow.needed_columns()["buses"] == {"area", "line", "speed"}


def test_every_kind_of_step_asks_for_what_it_reads_as_it_is_written() -> None:
    flow, buses, loops = flow_with_streams()
    made = buses.with_columns(kmh=sw.col("speed") * 3.6, line=sw.lit("x"), unused=sw.col("area"))
    made.select("kmh", "line").sink("a", sw.collect_sink())
    loops.aggregate(by="area", window=sw.tumbling("1s"), n=sw.count(), m=sw.mean("flow")).select(
        "n"
    ).sink("b", sw.collect_sink())
    needed = flow.needed_columns()
    assert needed["with_columns-1"] == {"kmh", "line"}
    assert needed["buses"] == {"speed", "area"}
    assert needed["loops"] == {"area", "flow"}
    assert needed["aggregate-1"] == {"n"}


def test_functions_and_sinks_need_every_column_and_a_merge_passes_the_need_on() -> None:
    flow, buses, loops = flow_with_streams()
    buses.merge(buses).select("area").sink("a", sw.collect_sink())
    loops.map_rows(lambda row: row, schema={"x": "int64"}).sink("b", sw.collect_sink())
    needed = flow.needed_columns()
    assert needed["buses"] == {"area"}
    assert needed["loops"] == set(LOOP)
    assert needed["map-1"] == {"x"}


# ---- explain


def test_explain_draws_each_step_with_its_inputs_settings_and_columns() -> None:
    flow = sw.Dataflow("congestion", deadline="6s")
    buses = flow.source(
        "buses",
        FakeInput(BUS),
        event_time="ts",
        writer="line",
        speed=60,
        promise=sw.col("ts") - sw.duration("30s"),
    )
    loops = flow.source("loops", FakeInput(LOOP), event_time="ts")
    slow = buses.filter(sw.col("speed") < 8).with_columns(kmh=sw.col("speed") * 3.6)
    jams = slow.join(loops, on="area", within="5s", where=sw.col("flow") > 1000)
    counts = jams.aggregate(by="area", window=sw.tumbling("1s"), n=sw.count(), slack="500ms")
    counts.select("n", where="area").sink("jams", sw.parquet_sink("out/"))
    assert (
        flow.explain()
        == """\
dataflow congestion: slack by the deadline, deadline 6.00 s

buses (source)
    reads    a table of 4 columns
    time     ts, replayed at 60×, a writer for each line, promises col("ts") - duration("30s"), \
in order, or an error
    columns  ts timestamp[ms], area int32, speed double, line string

loops (source)
    reads    a table of 4 columns
    time     ts, in order, or an error
    columns  ts timestamp[ms], area int64, flow int64, on bool

filter-1 (filter) ← buses
    keeps    col("speed") < 8
    columns  ts timestamp[ms], area int32, speed double, line string

with_columns-1 (with_columns) ← filter-1
    assigns  kmh = col("speed") * 3.6
    columns  ts timestamp[ms], area int32, speed double, line string, kmh double

join-1 (join) ← with_columns-1, loops
    on       area, within 5.00 s
    where    col("flow") > 1000
    gate     slack by the deadline
    keeps    rows until all have promised 5.00 s more, so that late ones find all partners
    columns  ts timestamp[ms], area int32, speed double, line string, kmh double, \
ts_right timestamp[ms], flow int64, on bool

aggregate-1 (aggregate) ← join-1
    by       area
    window   1.00 s
    gives    n = count()
    gate     slack 500 ms
    columns  area int32, window_start timestamp[ns], window_end timestamp[ns], n int64

select-1 (select) ← aggregate-1
    renames  where = area
    columns  n int64, where int32

jams (sink) ← select-1
    writes   parquet out/"""
    )


def test_explain_says_why_a_flow_cannot_run_yet() -> None:
    flow, _, _ = flow_with_streams()
    assert flow.explain().endswith(
        "cannot run yet: dataflow 'congestion' has no sink; end with stream.sink(name, ...)"
    )


def test_a_flow_pickles_with_its_steps() -> None:
    flow, buses, loops = flow_with_streams()
    buses.join(loops, on="area", within="5s", where=sw.col("flow") > 1).sink(
        "out", sw.collect_sink()
    )
    again = pickle.loads(pickle.dumps(flow))  # noqa: S301 - our own bytes
    again.check()
    assert again.explain() == flow.explain()
    assert {type(step) for step in again.steps.values()} >= {SourceStep, JoinStep}
    assert not {WithColumnsStep, AggregateStep} & {type(step) for step in again.steps.values()}


def test_lengths_of_time_that_would_not_fit_together_are_refused() -> None:
    flow, buses, loops = flow_with_streams()
    far = buses.join(loops, on="area", within="14600d")  # 40 years
    far.aggregate(window=sw.tumbling("14600d"), n=sw.count()).sink("out", sw.collect_sink())
    told = message(SettingError, flow.check)
    assert "'congestion'" in told
    assert "more than 73 years together, 40 of them in step 'join-1'" in told
