"""Steps on streams: each checked on the call that makes it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    ColumnError,
    DuplicateName,
    FlowError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.operators.each_row.columns import SelectStep
from slackwater.runtime.operators.each_row.filter import FilterStep
from slackwater.runtime.operators.merge.merge import MergeStep
from tests.support.streams import (
    BUS,
    TIMES,
    FakeInput,
    flow_with_streams,
    message,
    step_of,
    types,
)

# ---- steps on one stream


def test_filter_keeps_the_columns_and_takes_only_what_is_true_or_false() -> None:
    _, buses, _ = flow_with_streams()
    slow = buses.filter((sw.col("speed") < 8) & (sw.col("line") == "20"))
    assert slow.schema == buses.schema
    assert isinstance(step_of(slow), FilterStep)
    assert message(TypeMismatch, lambda: buses.filter(sw.col("speed"), name="slow")) == (
        "step 'slow': filter col(\"speed\") is double, and must be true or false; "
        "compare it with something"
    )
    assert "'filter-2': there is no column 'sped'; the nearest is 'speed'" in message(
        ColumnError, lambda: buses.filter(sw.col("sped") < 8)
    )
    function: Any = len  # the mistake that is meant
    assert "for functions there are map_elements, map_batches and map_rows" in message(
        TypeMismatch, lambda: buses.filter(function)
    )


def test_assign_replaces_in_place_adds_behind_and_takes_literals() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.with_columns(kmh=sw.col("speed") * 3.6, area=sw.col("area") // 10, zone=7)
    assert made.columns == ("ts", "area", "speed", "line", "kmh", "zone")
    assert types(made)["area"] == types(made)["zone"] == pa.int64()
    assert str(step_of(made).columns["zone"]) == "lit(7)"
    said = message(ColumnError, lambda: buses.with_columns(x=sw.col("linee"), name="derive"))
    assert said.startswith("step 'derive': there is no column 'linee'; the nearest is 'line'")
    with pytest.raises(TypeMismatch, match=r"step 'with_columns-2': x: \[1\] cannot stand"):
        buses.with_columns(x=[1])  # type: ignore[arg-type]
    with pytest.raises(FlowError, match="with_columns has no columns"):
        buses.with_columns()
    with pytest.raises(DuplicateName, match="column 'x' is given twice"):
        buses.with_columns({"x": 1}, x=2)


def test_select_keeps_and_renames_in_the_order_written() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.select("speed", "ts", bus_line="line")
    assert made.columns == ("speed", "ts", "bus_line")
    kept = {new: str(each) for new, each in step_of(made).columns.items()}
    assert kept == {"speed": 'col("speed")', "ts": 'col("ts")', "bus_line": 'col("line")'}
    said = message(ColumnError, lambda: buses.select("speeds"))
    assert "step 'select-2': there is no column 'speeds'; the nearest is 'speed'" in said
    with pytest.raises(DuplicateName, match="two columns are named 'speed'"):
        buses.select("speed", speed="area")
    with pytest.raises(FlowError, match="no column would be left"):
        buses.select()
    with pytest.raises(TypeMismatch, match=r"has no name; give it one, such as select\(x=col"):
        buses.select(sw.col("speed") * 3.6)
    with pytest.raises(
        TypeMismatch, match=r"\['speed'\] is not a column; write select\('a', 'b'\)"
    ):
        buses.select(["speed"])  # type: ignore[arg-type]


def test_select_takes_expressions_as_polars_does() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.select(
        sw.col("line"), kmh=sw.col("speed") * 3.6, street=sw.lit("mill"), speed="area"
    )
    assert [*types(made)] == ["line", "kmh", "street", "speed"]
    assert types(made)["kmh"] == pa.float64()


def test_drop_keeps_the_rest() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.drop("line", "speed")
    assert made.columns == ("ts", "area")
    assert isinstance(step_of(made), SelectStep)
    assert made.name == "drop-1"
    with pytest.raises(ColumnError, match="step 'drop-2': there is no column 'lin'"):
        buses.drop("lin")
    with pytest.raises(FlowError, match="no column would be left"):
        buses.drop(*buses.columns)


def test_a_function_declares_the_columns_that_leave_it() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.map_batches(lambda c: {"kmh": c["speed"]}, schema={"kmh": "float64"})
    assert types(made) == {"kmh": pa.float64()}
    rows = made.map_rows(dict, schema={"t": "timestamp", "n": pa.int16()})
    assert types(rows) == {"t": TIMES, "n": pa.int16()}
    assert (made.name, rows.name) == ("map-1", "map-2")
    with pytest.raises(TypeMismatch, match=r"schema of 'x': there is no type 'flot64'"):
        buses.map_batches(lambda c: c, schema={"x": "flot64"})
    with pytest.raises(
        TypeMismatch, match=r"step 'map-3': schema of 'x': column 'x' has type month_day"
    ):
        buses.map_rows(lambda r: r, schema={"x": pa.month_day_nano_interval()})
    with pytest.raises(FlowError, match="schema= must name the columns"):
        buses.map_rows(lambda r: r, schema={})
    with pytest.raises(TypeMismatch, match="is not a function; expressions go to with_columns"):
        buses.map_batches(sw.col("speed") * 2, schema={"x": "int64"})  # type: ignore[arg-type]


def test_a_function_may_declare_a_pyarrow_schema_and_types_as_arrow_prints_them() -> None:
    _, buses, _ = flow_with_streams()
    declared = pa.schema([("kmh", pa.float64()), ("line", pa.dictionary(pa.int8(), pa.string()))])
    for made in (buses.map_batches(dict, schema=declared), buses.map_rows(dict, schema=declared)):
        assert types(made) == {
            "kmh": pa.float64(),
            "line": pa.dictionary(pa.int32(), pa.string()),
        }
    short = buses.map_rows(dict, schema={"a": "float", "b": "double"})
    assert types(short) == {"a": pa.float32(), "b": pa.float64()}
    assert types(buses.with_columns(wide=sw.col("ts").cast("double")))["wide"] == pa.float64()


@pytest.mark.parametrize(
    ("schema", "problem", "words"),
    [
        (pa.schema([]), FlowError, "schema= must name the columns"),
        (pa.schema([("x", pa.int8())] * 2), DuplicateName, "two columns are named 'x'"),
        (pa.schema([("x", pa.null())]), TypeMismatch, "schema of 'x': column 'x' shows nothing"),
        (["x"], TypeMismatch, r"schema=\['x'\] is neither a dict such as .* nor a pyarrow schema"),
        ({"x": float}, TypeMismatch, "'float'> is not a type; write 'float64'"),
        ({"x": "long"}, TypeMismatch, "no type 'long'; write 'int64'"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(
    schema: Any, problem: type[FlowError], words: str
) -> None:
    _, buses, _ = flow_with_streams()
    for declare in (buses.map_batches, buses.map_rows):
        with pytest.raises(problem, match=words):
            declare(dict, schema=schema)


# ---- merge


def test_merge_takes_the_same_columns_in_any_order() -> None:
    flow, buses, _ = flow_with_streams()
    fast = buses.filter(sw.col("speed") >= 8).select("line", "speed", "area", "ts")
    made = buses.merge(fast, slack="500ms")
    assert made.schema == buses.schema
    assert step_of(made) == MergeStep(
        name="merge-1",
        inputs=("buses", "select-1"),
        schema=buses.schema,
        release=ReleaseRule.slack(500_000_000),
    )
    assert step_of(flow.merge(buses, buses, name="twice")).inputs == ("buses", "buses")


def test_merge_says_which_column_differs() -> None:
    flow, buses, loops = flow_with_streams()
    assert message(TypeMismatch, lambda: flow.merge(buses, loops, name="both")) == (
        "step 'both': merged streams must have the same columns, and 'area' is int32 in 'buses' "
        "and int64 in 'loops'; make them alike before, .with_columns(area=…), or .drop it"
    )
    said = message(TypeMismatch, lambda: buses.merge(buses.drop("speed")))
    assert "'speed' is double in 'buses' and missing in 'drop-1'" in said
    said = message(TypeMismatch, lambda: buses.drop("speed").merge(buses))
    assert "'speed' is missing in 'drop-2' and double in 'buses'" in said
    with pytest.raises(FlowError, match="merge has no streams"):
        flow.merge()


def test_streams_of_another_flow_are_refused() -> None:
    flow, buses, _ = flow_with_streams()
    other = sw.Dataflow("other").source("trams", FakeInput(BUS), event_time="ts")
    expected = "stream 'trams' belongs to dataflow 'other', not to 'congestion'"
    assert expected in message(FlowError, lambda: flow.merge(buses, other))
    assert expected in message(FlowError, lambda: buses.join(other, on="area", within="5s"))
    with pytest.raises(TypeMismatch, match="step 'merge-1': 'buses' is not a stream"):
        flow.merge("buses")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="'buses' is keyed"):
        flow.merge(buses.key_by("area"))  # type: ignore[arg-type]


# ---- aggregate


def test_aggregate_gives_keys_the_window_and_the_aggregates() -> None:
    _, _, loops = flow_with_streams()
    made = loops.aggregate(
        by=("area", "on"),
        window=sw.sliding("10s", "2s"),
        n=sw.count(),
        total=sw.sum("flow"),
        low=sw.min("area"),
        middle=sw.mean("flow"),
        q=sw.quantile("flow", 0.95),
    )
    assert types(made) == {
        "area": pa.int64(),
        "on": pa.bool_(),
        "window_start": TIMES,
        "window_end": TIMES,
        "n": pa.int64(),
        "total": pa.int64(),
        "low": pa.int64(),
        "middle": pa.float64(),
        "q": pa.float64(),
    }
    step = step_of(made)
    assert step.window == Window(10_000_000_000, 2_000_000_000)
    assert step.aggregates["q"] == Aggregate("quantile", "flow", 0.95)


def test_min_and_max_keep_the_type_and_sums_of_floats_are_double() -> None:
    flow = sw.Dataflow("f")
    made = flow.source("a", FakeInput({"t": "int64", "x": "float", "n": "int8"}), event_time="t")
    out = made.aggregate(
        window=sw.tumbling(1), s=sw.sum("x"), m=sw.max("x"), i=sw.sum("n"), k=sw.min("n")
    )
    kinds = types(out)
    assert [kinds[c] for c in "smik"] == [pa.float64(), pa.float32(), pa.int64(), pa.int8()]


def test_key_by_gives_its_keys_to_the_aggregate_and_the_join() -> None:
    _, buses, loops = flow_with_streams()
    counted = loops.key_by("area").aggregate(window=sw.tumbling("1s"), n=sw.count())
    assert step_of(counted).keys == ("area",)
    joined = buses.key_by("area").join(loops.key_by("flow"), within="5s")
    assert (step_of(joined).left_on, step_of(joined).right_on) == (("area",), ("flow",))
    assert buses.flow.steps.keys() == {"buses", "loops", "aggregate-1", "join-1"}
    with pytest.raises(ColumnError, match="step 'buses': there is no column 'aera'"):
        buses.key_by("aera")
    with pytest.raises(FlowError, match="needs a column"):
        buses.key_by()
    with pytest.raises(TypeMismatch, match="takes a stream after key_by, not <Stream 'loops'"):
        buses.key_by("area").join(loops, within="5s")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="'loops' is keyed"):
        buses.join(loops.key_by("area"), on="area", within="5s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, FlowError, "step 'agg': aggregate has no columns"),
        ({"n": sw.mean("flw")}, ColumnError, "'agg': there is no column 'flw'; the nearest is 'fl"),
        ({"n": sw.mean("on")}, TypeMismatch, "n=mean('on') takes numbers, and 'on' is bool"),
        ({"n": sw.sum("ts")}, TypeMismatch, "n=sum('ts') takes numbers, and 'ts' is timestamp"),
        ({"n": 3}, TypeMismatch, "n=3 is not an aggregate"),
        ({"n": sw.count(), "by": "aera"}, ColumnError, "'aera'; the nearest is 'area'"),
        ({"n": sw.count(), "by": ("area", "area")}, DuplicateName, "two columns are named 'area'"),
        ({"area": sw.count(), "by": "area"}, DuplicateName, "two columns are named 'area'"),
        ({"window_end": sw.count()}, DuplicateName, "two columns are named 'window_end'"),
        ({"n": sw.count(), "slack": "-1"}, SettingError, "step 'agg': slack='-1' is not a length"),
        ({"n": sw.count(), "window": "1s"}, TypeMismatch, "window='1s' is not a window"),
    ],
)
def test_aggregate_says_what_is_wrong(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    _, _, loops = flow_with_streams()
    given = {"window": sw.tumbling("1s"), "name": "agg", **options}
    assert words in message(error, lambda: loops.aggregate(**given))


def test_windows_and_quantiles_are_checked_where_they_are_written() -> None:
    assert sw.tumbling("1s").is_tumbling
    with pytest.raises(SettingError, match="tumbling size='0s' must be more than zero"):
        sw.tumbling("0s")
    with pytest.raises(SettingError, match="slide='0s' must be more than zero"):
        sw.sliding("1s", "0s")
    with pytest.raises(SettingError, match="slide='2s' must not be more than size='1s'"):
        sw.sliding("1s", "2s")
    for level in (0, 1, 95, float("nan"), True):
        with pytest.raises(SettingError, match=r"level.* must (lie between|be a number)"):
            sw.quantile("flow", level)
    with pytest.raises(TypeMismatch, match=r"takes a column's name; give the expression a name"):
        sw.mean(sw.col("flow") * 2)  # type: ignore[arg-type]


# ---- join


def test_join_gives_the_left_columns_then_the_right_ones_without_their_keys() -> None:
    _, buses, loops = flow_with_streams()
    made = buses.join(loops, on="area", within="5s", where=sw.col("flow") * sw.col("speed") > 4e5)
    assert made.columns == ("ts", "area", "speed", "line", "ts_right", "flow", "on")
    assert types(made)["area"] == pa.int32()
    step = step_of(made)
    assert (step.left_on, step.right_on, step.within_ns) == (("area",), ("area",), 5 * 10**9)
    assert step.right_names == {"ts": "ts_right", "flow": "flow", "on": "on"}


def test_a_stream_joins_with_itself() -> None:
    _, buses, _ = flow_with_streams()
    made = buses.join(
        buses,
        on="area",
        within="60s",
        where=sw.col("line") != sw.col("line_2"),
        suffix="_2",
        name="jams",
    )
    assert step_of(made).inputs == ("buses", "buses")
    assert made.columns == ("ts", "area", "speed", "line", "ts_2", "speed_2", "line_2")


def test_join_keys_may_have_other_names_and_widths() -> None:
    _, buses, loops = flow_with_streams()
    made = buses.join(loops, left_on=["area"], right_on=["flow"], within=5)
    assert made.columns == ("ts", "area", "speed", "line", "ts_right", "area_right", "on")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"on": "aera"}, ColumnError, "step 'j': there is no column 'aera'; the nearest is 'area'"),
        ({"on": "line"}, ColumnError, "step 'j': there is no column 'line'"),
        ({}, FlowError, "step 'j': a join needs keys, as many on the left (0)"),
        ({"left_on": "area"}, FlowError, "as many on the left (1) as on the right (0)"),
        ({"on": "area", "left_on": "area"}, FlowError, "give on=, or left_on= and right_on="),
        (
            {"left_on": "line", "right_on": "area"},
            TypeMismatch,
            "left key 'line' is string and right key 'area' is int64; keys need one type on both "
            "sides: write .cast('string') on both, in with_columns before",
        ),
        ({"left_on": "speed", "right_on": "flow"}, TypeMismatch, "key 'speed' is double"),
        ({"on": "area", "within": "0s"}, SettingError, "step 'j': within='0s' must be more than"),
        ({"on": "area", "suffix": ""}, DuplicateName, "two columns are named 'ts'; choose another"),
        ({"on": "area", "where": sw.col("flow")}, TypeMismatch, "must be true or false"),
        ({"on": "area", "where": sw.col("flo") > 1}, ColumnError, "the nearest is 'flow'"),
    ],
)
def test_join_says_what_is_wrong(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    _, buses, loops = flow_with_streams()
    given = {"within": "5s", "name": "j", **options}
    assert words in message(error, lambda: buses.join(loops, **given))


def test_a_keyed_stream_has_its_keys_and_refuses_others_by_name_or_place() -> None:
    flow = sw.Dataflow("keyed")
    rows = sw.table(pa.table({"ts": [1], "k": [7], "v": [1]}))
    one, other = (
        flow.source(name, rows, event_time="ts", time_unit="s").key_by("k") for name in "ab"
    )
    assert other.join(other=one, within="1s").schema.names == [
        "ts",
        "k",
        "v",
        "ts_right",
        "v_right",
    ]
    with pytest.raises(
        FlowError, match=r"after key_by\('k'\) has its keys; omit on=, or write join"
    ):
        one.join(other, "k", within="1s")
    with pytest.raises(FlowError, match="omit by=, or write aggregate before key_by"):
        one.aggregate(window=sw.tumbling("1s"), by="v", n=sw.count())
    with pytest.raises(FlowError, match=r"a column called 'by' write \{'by': …\} as the first"):
        one.aggregate(window=sw.tumbling("1s"), by=sw.count())  # type: ignore[arg-type]
    assert "by" not in signature(type(one).aggregate).parameters
    assert "left_on" not in signature(type(one).join).parameters


def test_a_keyed_stream_calls_the_methods_of_its_own_stream() -> None:
    class Mine(sw.Stream):
        def aggregate(self, **options: Any) -> Any:  # type: ignore[override]
            return "mine", options["by"]

    flow = sw.Dataflow("mine")
    rows = sw.table(pa.table({"ts": [1], "k": [7]}))
    source = flow.source("rows", rows, event_time="ts", time_unit="s")
    mine = Mine(flow, flow.steps[source.name])
    assert mine.key_by("k").aggregate(window=sw.tumbling("1s"), n=sw.count()) == ("mine", ("k",))
