"""The builder of dataflows: sources, names, slack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    SchemaError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, ReleaseRule
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.streams import (
    BUS,
    FakeInput,
    flow_with_streams,
    message,
    step_of,
    types,
)

# ---- sources


def test_a_source_has_the_columns_of_its_input_as_they_come() -> None:
    _, buses, _ = flow_with_streams()
    assert types(buses) == {
        "ts": pa.timestamp("ms"),
        "area": pa.int32(),
        "speed": pa.float64(),
        "line": pa.string(),
    }
    assert buses.columns == ("ts", "area", "speed", "line")


def test_a_source_takes_an_input_with_options_or_a_spec_alone() -> None:
    flow = sw.Dataflow("f")
    options: dict[str, Any] = {"writer": "line", "speed": 60.0, "out_of_order": "sort"}
    made = flow.source(
        "a", FakeInput(BUS), event_time="ts", disorder="500ms", idle="30s", **options
    )
    spec = step_of(made).source
    assert (spec.disorder_ns, spec.idle_ns) == (500_000_000, 30_000_000_000)
    assert (spec.writer, spec.speed, spec.out_of_order) == ("line", 60.0, "sort")
    same = flow.source("b", SourceSpec(input=FakeInput(BUS), event_time="ts"))
    assert same.schema == made.schema
    both = message(FlowError, lambda: flow.source("c", spec, speed=2.0))
    assert both.startswith("source 'c': speed would change a SourceSpec")


def test_integer_event_time_keeps_its_type_as_a_column() -> None:
    flow = sw.Dataflow("f")
    made = flow.source("a", FakeInput({"ts": "int64"}), event_time="ts", time_unit="ms")
    assert types(made) == {"ts": pa.int64()}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, FlowError, "source 'a' needs event_time=, the column of event times, or an expr"),
        ({"event_time": "tz"}, SchemaError, "event_time column 'tz' is not there; the nearest is"),
        ({"event_time": "speed"}, SchemaError, "event_time column 'speed' has type double"),
        ({"event_time": "line"}, SchemaError, "event_time column 'line' has type string"),
        ({"arrival": "line"}, SchemaError, "arrival column 'line' has type string"),
        ({"writer": "speed"}, SchemaError, "writer column 'speed' has type double"),
        ({"writer": "vehicle"}, SchemaError, "writer column 'vehicle' is not there"),
        ({"promise": sw.col("tss")}, SchemaError, "column 'tss' is not there; the nearest is 'ts'"),
        ({"promise": sw.col("area")}, TypeMismatch, 'promise col("area") has type int32'),
        ({"time_unit": "m"}, SettingError, "time_unit='m' must be 'ns' or 'us' or 'ms' or 's'"),
        ({"speed": 0}, SettingError, "source 'a': speed=0 must be a positive number"),
        ({"out_of_order": "sort"}, SettingError, "source 'a': out_of_order='sort' needs disorder"),
        ({"idle": "0s"}, SettingError, "source 'a': idle='0s' must be more than zero"),
        ({"ahead": "-2s"}, SettingError, "source 'a': ahead='-2s' is negative, and must be"),
        ({"disorder": "soon"}, SettingError, "source 'a': disorder='soon' is not a length"),
        ({"arival": "ts"}, SettingError, "no option 'arival'; the nearest is 'arrival'"),
    ],
)
def test_a_source_says_what_is_wrong_with_its_options(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    flow = sw.Dataflow("f")
    given: dict[str, Any] = options if not options else {"event_time": "ts", **options}
    assert words in message(error, lambda: flow.source("a", FakeInput(BUS), **given))
    assert flow.steps == {}


def test_a_promise_is_a_time() -> None:
    flow = sw.Dataflow("f")
    for number, promise in enumerate(
        (sw.col("ts") - sw.duration("30s"), sw.event_time() - sw.duration("30s"))
    ):
        flow.source(f"s{number}", FakeInput(BUS), event_time="ts", promise=promise)


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.month_day_nano_interval(), pa.list_view(pa.int64())], ids=str
)
def test_a_column_that_does_not_travel_is_refused_where_it_is_read(kind: pa.DataType) -> None:
    flow = sw.Dataflow("f")
    schema = pa.schema([("ts", pa.int64()), ("v", kind)])
    made = flow.source("a", FakeInput(schema), event_time="ts", time_unit="s")
    made.select("ts").sink("out", sw.collect_sink())
    flow.check()
    assert f"not read v ({kind})" in flow.explain()
    for wrong in (
        lambda: made.filter(sw.col("v") == 1),
        lambda: made.key_by("v"),
        lambda: made.select("v"),
        lambda: made.key_by("ts").aggregate(window=sw.tumbling("1s"), x=sw.max("v")),
    ):
        said = message(SchemaError, wrong)
        assert said.startswith("source 'a': column 'v'")
        assert "columns=[" in said
    made.filter(sw.col("ts") > 0).sink("all", sw.collect_sink())
    said = message(SchemaError, flow.check)
    assert said.startswith("source 'a': column 'v'")
    assert "columns=[" in said
    assert said in flow.explain()


def test_a_source_refuses_two_columns_of_one_name() -> None:
    flow = sw.Dataflow("f")
    twice = pa.schema([("ts", pa.int64()), ("ts", pa.int64())])
    said = message(DuplicateName, lambda: flow.source("a", FakeInput(twice), event_time="ts"))
    assert said.startswith("step 'a': two columns are named 'ts'")


class HalfAnInput:
    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64())])

    def open(self) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("buses.parquet", "write sw.parquet('buses.parquet')"),
        (Path("buses.csv"), "write sw.csv('buses.csv')"),
        (pa.table({"ts": range(10_000)}), "write sw.table(…) of it"),
        ({"ts": [1]}, "write sw.table(…) of it"),
        (HalfAnInput(), "has no describe()"),
        (HalfAnInput, "pass an object of it, HalfAnInput(…)"),
        (5, "write sw.parquet("),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_input_is_refused_with_what_to_write(wrong: Any, says: str) -> None:
    flow = sw.Dataflow("f")
    said = message(TypeMismatch, lambda: flow.source("a", wrong, event_time="ts"))
    assert "is not an input" in said
    assert says in said
    assert len(said) < 200


# ---- names


def test_steps_are_numbered_by_kind_and_skip_the_names_that_users_took() -> None:
    flow, buses, _ = flow_with_streams()
    slow = buses.filter(sw.col("speed") < 8, name="filter-1")
    assert slow.filter(sw.col("area") == 1).name == "filter-2"
    assert slow.with_columns(x=1).name == "with_columns-1"
    assert list(flow.steps) == ["buses", "loops", "filter-1", "filter-2", "with_columns-1"]


def test_a_name_is_used_once_in_a_flow() -> None:
    _, buses, loops = flow_with_streams()
    assert message(DuplicateName, lambda: buses.filter(sw.col("speed") < 8, name="loops")) == (
        "dataflow 'congestion' has a step 'loops' already; each needs its own name, sinks too: "
        "loops-2, say"
    )
    loops.sink("out", sw.collect_sink())
    with pytest.raises(DuplicateName, match="has a step 'out' already"):
        buses.sink("out", sw.collect_sink())
    with pytest.raises(FlowError, match="a filter cannot be named ' '"):
        buses.filter(sw.col("speed") < 8, name=" ")
    with pytest.raises(FlowError, match="a dataflow cannot be named ''"):
        sw.Dataflow("")


def test_a_name_that_could_be_meant_for_a_column_is_refused() -> None:
    _, buses, _ = flow_with_streams()
    way_out = r"for a column called 'name' write \{'name': \.\.\.\}"
    with pytest.raises(FlowError, match=way_out):
        buses.select("ts", name="line")
    with pytest.raises(FlowError, match=way_out):
        buses.with_columns(name=sw.col("line"))  # type: ignore[arg-type]
    assert buses.select("ts", {"name": "line"}).columns == ("ts", "name")
    assert buses.with_columns({"name": sw.col("line")}).columns[-1] == "name"


# ---- slack and deadline


def test_a_gate_has_the_slack_of_its_flow_unless_it_has_its_own() -> None:
    flow, buses, loops = flow_with_streams(slack="500ms", deadline="6s")
    assert (flow.release.text, flow.deadline_ns) == ("slack 500 ms", 6_000_000_000)
    joins = [
        buses.join(loops, on="area", within="5s"),
        buses.join(loops, on="area", within="5s", slack=None),
        buses.join(loops, on="area", within="5s", slack="0s"),
    ]
    assert [step_of(join).release for join in joins] == [
        ReleaseRule.slack(500_000_000),
        READY_ONLY,
        ON_ARRIVAL,
    ]
    assert sw.Dataflow("f").release == READY_ONLY
    assert sw.Dataflow("f", slack="0s").release == ON_ARRIVAL
    with pytest.raises(SettingError, match="dataflow 'f': slack='soon' is not a length"):
        sw.Dataflow("f", slack="soon")
    with pytest.raises(SettingError, match="dataflow 'f': deadline='0s' must be more than zero"):
        sw.Dataflow("f", deadline="0s")
