"""ksqlDB's query-validation tests: windows and joins, read from a checkout of that project.

`KSQLDB=<folder>` names the checkout; nothing of it is kept here. A translation says which columns
a topic has, and what its flow is. An answer is the rows of a stream, or those that are left of a
table when the input ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, Way, heard, results, rows_of
from benchmarks.frame import NotHereError

Record = Mapping[str, Any]
TESTS = "ksqldb-functional-tests/src/test/resources/query-validation-tests"
AGAIN = " (again, by revisions)"
MS = 1_000_000
DAYS = "10000d"
START, END = (sw.col(f"window_{side}").cast("int64") // MS for side in ("start", "end"))
SINCE_1970 = sw.col("start") >= 0
"""No window of theirs begins earlier."""


@cache
def _tests(path: Path) -> dict[str, Any]:
    tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
    return {test["name"]: test for test in tests}


def with_checkout(cases: list[Case]) -> list[Case]:
    """Return the cases, those of ksqlDB with the rows of a checkout where one is named.

    Raises:
        NotHereError: the folder that is named is not a checkout of ksqlDB.
    """
    named = os.environ.get("KSQLDB")
    if not named:
        return cases
    folder = Path(named) / TESTS
    if not folder.is_dir():
        raise NotHereError(f"KSQLDB={named} has no {TESTS}; name a checkout of confluentinc/ksql")
    return [_had(case, folder) if case.suite == KSQL.name else case for case in cases]


def _had(case: Case, folder: Path) -> Case:
    _, _, place = case.source.partition("query-validation-tests/")
    file, _, name = place.partition(": ")
    test = _tests(folder / file)[name.removesuffix(AGAIN)]
    return replace(case, input=test.get("inputs", []), expected=test.get("outputs", []))


def _values(record: Record) -> list[Any]:
    """Return the values of a record: its columns by name, or those of a text in order."""
    value = record["value"]
    if isinstance(value, str):
        return value.split(",")
    return [value[name] for name in sorted(value)]


def _answer(case: Case) -> list[Any]:
    """Return the rows of an answer: all of a stream, the last ones of a table with windows."""
    if not any("window" in record and record["window"]["type"] for record in case.expected):
        return [[record.get("key"), *_values(record)] for record in case.expected]
    left: dict[Any, Any] = {}
    for record in case.expected:
        window = record["window"]
        key = (record["topic"], record.get("key"), window["start"], window["end"])
        if record["value"] is None:
            del left[key]
        else:
            left[key] = [*key[1:], *_values(record)]
    return list(left.values())


KSQL = Suite("ksqlDB", answer=_answer)


def topic(
    flow: sw.Dataflow,
    case: Case,
    name: str,
    columns: Mapping[str, str],
    *,
    key: str = "int64",
    next_ms: float | None = None,
    **options: Any,
) -> sw.Stream:
    """Return the records of a topic: `key`, its columns, and `t` in ms, in the order they came.

    Args:
        flow: flow that gets the source.
        case: case that has the records.
        name: name of the topic.
        columns: {column: alias of an Arrow type}, as they stand in texts.
        key: alias of the key's type.
        next_ms: time of a further record, after which the input goes on; none if it ends.
        **options: further options of the source.
    """
    rows = []
    for record in case.input:
        if record["topic"] != name:
            continue
        value = record["value"]
        if isinstance(value, str):
            own: dict[str, Any] = dict(zip(columns, value.split(","), strict=False))
        else:
            own = {str(name).upper(): each for name, each in value.items()}
        values = [_typed(own.get(column), kind) for column, kind in columns.items()]
        rows.append([record.get("key"), *values, round(record["timestamp"] * 1000)])
    if next_ms is not None:
        rows.append([None, *(None for _ in columns), round(next_ms * 1000)])
    schema = {"key": key, **columns, "t": "int64"}
    goes_on = next_ms is not None
    return heard(flow, rows, schema, goes_on=goes_on, time_unit="us", **options).drop("heard")


def _typed(value: Any, kind: str) -> Any:
    """Return a value of a text as a whole number, where it is one."""
    return int(value) if kind == "int64" and value is not None else value


Made = Callable[[sw.Dataflow, Case], sw.Stream]


def flow_of(*names: str, way: Way = "straight", note: str = "") -> Callable[[Made], Made]:
    """Register a function of a flow as the translation of some cases."""

    def register(make: Made) -> Made:
        @KSQL.translation(*(f"ksql-{name}" for name in names), way=way, note=note)
        def run(case: Case) -> Rows:
            return results(lambda flow: make(flow, case))

        return make

    return register


# -- windows that leave once ------------------------------------------------------------

TWO_MS = sw.tumbling("2ms")


def closed(
    *names: str,
    window: Any = TWO_MS,
    grace_ms: int = 1,
    columns: Mapping[str, str] | None = None,
    where: sw.Expr | None = None,
    count: str | None = None,
) -> None:
    """Register counts of windows that leave once, while the input goes on.

    A window of theirs leaves when the newest row is `grace_ms` after its end; of ours when a row
    after its end has waited that long, so a further row comes a little later.
    """
    kinds = columns or {"COL1": "string"}

    def run(case: Case) -> Rows:
        newest = max(record["timestamp"] for record in case.input)

        def counts(flow: sw.Dataflow) -> sw.Stream:
            records = topic(
                flow, case, "input_topic", kinds, key="string", next_ms=newest + grace_ms + 0.5
            )
            is_theirs = ~sw.col("key").is_null() | (sw.col("t") > newest * 1000)
            rows = records.filter(is_theirs)
            if where is not None:
                rows = rows.filter(where | (sw.col("t") > newest * 1000))
            made = rows.aggregate(by="key", window=window, slack=f"{grace_ms}ms", n=sw.count(count))
            return made.select("key", {"start": START, "end": END}, "n").filter(SINCE_1970)

        return results(counts, stop_s=len(case.input) + 1)

    KSQL.translation(*(f"ksql-suppress-should_{name}" for name in names))(run)


closed(
    "emit_final_result_immediately_at_window_end_if_grace_is_specified_as_zero",
    "not_emit_final_result_before_window_end_if_grace_is_specified_as_zero",
    "not_emit_before_window_end_if_no_grace_period_given",
    "emit_at_window_end_if_no_grace_period_given",
    grace_ms=0,
)
closed(
    "include_out_of_order_events_before_window_end_plus_grace_period_passes",
    "drop_out_of_order_event_after_window_end_plus_grace_period_passes",
    "support_final_results_for_tumbling_windows",
    "suppress_multiple_keys",
    "drop_events_with_no_key",
)
closed("support_final_results_for_tumbling_windows_with_large_jump", grace_ms=2)
closed("support_final_results_for_hopping_windows", window=sw.sliding("5ms", "2ms"))
closed("handle_null_values", count="COL1")
closed(
    "suppress_after_a_filter_WHERE_clause",
    columns={"COL1": "int64"},
    where=sw.col("COL1") == 1,
)


@KSQL.translation("ksql-suppress-should_suppress_after_join")
def closed_after_join(case: Case) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        left, right = (topic(flow, case, side, {"B": "int64"}) for side in ("LEFT", "RIGHT"))
        pairs = left.join(right, on="key", within="1s")
        made = pairs.aggregate(by="key", window=TWO_MS, n=sw.count())
        made = made.select("key", {"start": START, "end": END}, "n")
        # Their input goes on: the last window is open.
        return made.filter(sw.col("end") <= max(record["timestamp"] for record in case.input))

    return results(counts)


# -- windows whose rows are those at the end of the input -------------------------------


def windowed(
    *names: str,
    window: Any,
    aggregate: Any,
    columns: Mapping[str, str],
    selected: Sequence[Any] = ("value",),
    name: str = "test_topic",
    key: str = "int64",
    by: str = "key",
    **options: Any,
) -> None:
    """Register an aggregate of windows, of which the last row of each counts."""

    def made(flow: sw.Dataflow, case: Case) -> sw.Stream:
        records = topic(flow, case, name, columns, key=key)
        rows = records.aggregate(by=by, window=window, value=aggregate, **options)
        revision = ["revision"] if options.get("late") == "correct" else []
        made = rows.select({"key": by, "start": START, "end": END}, *selected, *revision)
        return made.filter(SINCE_1970)

    def run(case: Case) -> Rows:
        rows = results(lambda flow: made(flow, case))
        rows.sort(key=lambda row: row.pop("revision", 0))
        last = {(row["key"], row["start"], row["end"]): row for row in rows}
        return last.values()

    KSQL.translation(*(f"ksql-{each}" for each in names))(run)


HALF_MINUTE, HOPS = sw.tumbling("30s"), sw.sliding("30s", "15s")
NUMBER = {"VALUE": "int64"}
NAMED = {"NAME": "string", "VALUE": "int64"}
MOST: dict[str, Any] = {"aggregate": sw.max("VALUE"), "columns": NUMBER}
for kind, window in (("tumbling", HALF_MINUTE), ("hopping", HOPS)):
    late = f"{kind}-windows-out_of_order_-_"
    windowed(f"{late}no_grace_period", window=window, **MOST)
    windowed(
        f"{late}no_grace_period_(again,_by_revisions)",
        window=window,
        slack="0s",
        late="correct",
        **MOST,
    )
    windowed(f"{late}explicit_grace_period", window=window, slack="1m", **MOST)
    windowed(
        f"{kind}-windows-non-KAFKA_key_format",
        window=window,
        aggregate=sw.count(),
        columns={"A": "float64"},
        by="A",
        name="INPUT",
    )
TENS = sw.sliding("30s", "10s")
LEAST: dict[str, Any] = {"aggregate": sw.min("VALUE"), "columns": NAMED}
windowed("tumbling-windows-min_tumbling", window=HALF_MINUTE, **LEAST)
windowed("hopping-windows-min_hopping", window=TENS, **LEAST)
COUNT: dict[str, Any] = {"aggregate": sw.count(), "columns": {"ID": "int64"}}
windowed("hopping-windows-count", window=sw.sliding("5s", "1s"), by="ID", **COUNT)
BOUNDS = ({"wstart": START, "wend": END}, "value")
windowed("window-bounds-table_tumbling", window=HALF_MINUTE, selected=BOUNDS, **COUNT)
windowed("window-bounds-table_hopping", window=sw.sliding("30s", "5s"), selected=BOUNDS, **COUNT)
windowed(
    "window-bounds-in_expressions",
    window=HALF_MINUTE,
    selected=({"half": START // 2, "part": END // sw.col("key")}, "value"),
    **COUNT,
)
windowed(
    "window-bounds-windowed_group_by_-_non-aggregate_window_bounds_in_SELECT",
    window=sw.tumbling("1s"),
    selected=("value", {"wend": END, "wstart": START}),
    **COUNT,
)
windowed(
    "window-bounds-windowed_group_by_-_window_bounds_used_in_expression_with_aggregate_in_SELECT",
    window=sw.tumbling("1s"),
    selected=({"product": sw.col("value") * END},),
    **COUNT,
)


# -- joins of streams -------------------------------------------------------------------

PERSON = {"NAME": "string", "VALUE": "int64"}
FACT = {"F1": "string", "F2": "int64"}


def joined(  # noqa: PLR0913 - each is a part of a join's text
    *names: str,
    within: Any,
    selected: Sequence[Any],
    topics: tuple[str, str] = ("left_topic", "right_topic"),
    left: Mapping[str, str] = PERSON,
    right: Mapping[str, str] = FACT,
    way: Way = "straight",
    note: str = "",
    source: Mapping[str, Any] | None = None,
    key: str = "int64",
    on: Any = "key",
    **options: Any,
) -> None:
    """Register a join of two topics; `selected` are the columns of its answer, by their names."""

    def made(flow: sw.Dataflow, case: Case) -> sw.Stream:
        sides = [
            topic(flow, case, name, columns, key=key, **(source or {}))
            for name, columns in zip(topics, (left, right), strict=True)
        ]
        keys = {} if isinstance(on, dict) else {"on": on}
        return sides[0].join(sides[1], within=within, **keys, **options).select(*selected)

    flow_of(*names, way=way, note=note)(made)


FOUR = ("key", "F1", "F2", "NAME", "VALUE")
joined("joins-stream_stream_inner_join", within="11s", selected=FOUR)
joined(
    "joins-stream_stream_inner_join_all_fields",
    within="11s",
    selected=("key", "NAME", "F1", {"T_ID": "key"}),
    left={"NAME": "string"},
    right={"F1": "string"},
)
joined("joins-stream_stream_inner_join_with_out_of_order_messages", within="10s", selected=FOUR)
joined(
    "joins-stream_stream_inner_join_with_out_of_order_and_custom_grace_period",
    within="1m",
    selected=("key", "L1", "L2"),
    left={"L1": "string"},
    right={"L2": "string"},
    source={"disorder": "2m"},
)
joined(
    "joins-with_where",
    within="1m",
    selected=("key", "IMPRESSION_ID", "URL"),
    topics=("impressions", "clicks"),
    left={"IMPRESSION_ID": "int64", "URL": "string"},
    right={"URL": "string"},
    where=sw.col("URL") == sw.col("URL_right"),
    key="string",
)


joined(
    "joins-stream_stream_inner_join_with_different_before_and_after_windows",
    within=("11s", "10s"),
    selected=FOUR,
)


@flow_of("joins-stream_stream_join_-_contains_arithmetic_binary_expression")
def next_id(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left, right = (topic(flow, case, f"{side}_topic", {"NAME": "string"}) for side in LEFT_RIGHT)
    right = right.with_columns(next=sw.col("key") + 1)
    pairs = left.join(right, left_on="key", right_on="next", within="30s")
    return pairs.select("key", "key_right")


LEFT_RIGHT = ("left", "right")


@flow_of("joins-on_DOUBLE_column_=_KAFKA")
def on_floats(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left = topic(flow, case, "left_topic", {"L0": "float64", "L1": "int64"}, key="string")
    right = topic(flow, case, "right_topic", {"R0": "float64", "R1": "int64"}, key="string")
    pairs = left.join(right, left_on="L0", right_on="R0", within="11s")
    return pairs.select("L0", "L1", "key", "R1")


def _windowed_records(flow: sw.Dataflow, case: Case, name: str) -> sw.Stream:
    """Return records of a topic, whose windows are columns."""
    rows = [
        [
            record["key"],
            record["value"]["V"],
            record["window"]["start"],
            record["window"]["end"],
            record["timestamp"],
        ]
        for record in case.input
        if record["topic"] == name
    ]
    columns = dict.fromkeys(("key", "V", "start", "end", "t"), "int64")
    return rows_of(flow, rows, columns, time_unit="ms")


@flow_of("joins-matching_session-windowed")
def sessions_joined(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left, right = (_windowed_records(flow, case, f"{side}_topic") for side in LEFT_RIGHT)
    pairs = left.join(right, on=["key", "start", "end"], within="1m")
    return pairs.select("key", "start", "end", "V", "V_right")


@flow_of("joins-matching_time-windowed_-_SR-enabled_key_format")
def windows_joined(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left, right = (_windowed_records(flow, case, f"{side}_topic") for side in LEFT_RIGHT)
    pairs = left.join(right, on=["key", "start"], within="1m")
    return pairs.select(
        *("key", "start", "end"),
        {
            "S1_ROWTIME": "t",
            "S1_V": "V",
            "S1_WINDOWEND": "end",
            "S1_WINDOWSTART": "start",
            "S2_ID": "key",
            "S2_ROWTIME": "t_right",
            "S2_V": "V_right",
            "S2_WINDOWEND": "end_right",
            "S2_WINDOWSTART": "start",
        },
    )


NAME_TS = {"NAME": "string", "TS": "int64"}
FACTS = {"F1": "string", "F2": "string"}
CHOSEN = ("key", "F1", "F2", "NAME", "TS")


@flow_of("join-with-custom-timestamp-stream_stream_inner_join_with_ts")
def join_with_time(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left, right = _timed(flow, case, "s1", NAME_TS, "TS"), topic(flow, case, "s2", FACTS)
    return left.join(right, on="key", within="11s").select(*CHOSEN)


@flow_of("join-with-custom-timestamp-stream_stream_inner_join_with_ts_extractor_both_sides")
def join_by_times(flow: sw.Dataflow, case: Case) -> sw.Stream:
    left = _timed(flow, case, "s1", NAME_TS, "TS")
    right = _timed(flow, case, "s2", {**FACTS, "RTS": "int64"}, "RTS")
    return left.join(right, on="key", within="11s").select(*CHOSEN)


def _timed(
    flow: sw.Dataflow, case: Case, name: str, columns: Mapping[str, str], at: str
) -> sw.Stream:
    """Return a topic's records by a column of theirs as event time, in ms."""
    rows = [
        [record["key"], *(record["value"][column] for column in columns)]
        for record in case.input
        if record["topic"] == name
    ]
    schema = {"key": "int64", **columns}
    return rows_of(flow, rows, schema, event_time=at, time_unit="ms")


@flow_of("multi-joins-stream-stream-stream_-_inner-inner_-_different_windows")
def three_streams(flow: sw.Dataflow, case: Case) -> sw.Stream:
    first, second, third = (
        topic(flow, case, name, {"V0": "int64"}) for name in ("left", "right", "right2")
    )
    pairs = first.join(second.rename({"V0": "V1", "t": "t1"}), on="key", within="5s")
    # The ten seconds are between the first and the third.
    is_near = (sw.col("t") - sw.col("t2")).cast("int64").between(-TEN_S_US, TEN_S_US)
    triples = pairs.join(
        third.rename({"V0": "V2", "t": "t2"}), on="key", within="15s", where=is_near
    )
    return triples.select("key", "V0", "V1", "V2")


TEN_S_US = 10_000_000


# -- sessions ---------------------------------------------------------------------------


def _sessions(
    rows: sw.Stream, gap: str, aggregate: Any, by: str = "key", **options: Any
) -> sw.Stream:
    """Return an aggregate of sessions, whose end is that of their last row, as theirs is."""
    made = rows.aggregate(
        by=by,
        window=sw.session(gap),
        start=sw.min("t"),
        end=sw.max("t"),
        value=aggregate,
        **options,
    )
    bounds = {name: sw.col(name) // 1000 for name in ("start", "end")}
    return made.select({"key": by, **bounds}, "value")


@flow_of("session-windows-out_of_order_-_no_grace_period")
def sessions(flow: sw.Dataflow, case: Case) -> sw.Stream:
    return _sessions(topic(flow, case, "test_topic", NUMBER), "30s", sw.max("VALUE"))


@flow_of("session-windows-out_of_order_-_explicit_grace_period")
def sessions_with_grace(flow: sw.Dataflow, case: Case) -> sw.Stream:
    records = topic(flow, case, "test_topic", NUMBER)
    return _sessions(records, "30s", sw.max("VALUE"), slack="1m")


@flow_of("window-bounds-table_session")
def session_bounds(flow: sw.Dataflow, case: Case) -> sw.Stream:
    made = _sessions(topic(flow, case, "test_topic", {"ID": "int64"}), "30s", sw.count())
    return made.select("key", "start", "end", {"wstart": "start", "wend": "end"}, "value")


@flow_of("latest-offset-udaf-merging_session_windows")
def last_of_session(flow: sw.Dataflow, case: Case) -> sw.Stream:
    return _sessions(topic(flow, case, "test_topic", {"F0": "int64"}), "1s", sw.last("F0"))


@flow_of("earliest-offset-udaf-merging_session_windows")
def first_of_session(flow: sw.Dataflow, case: Case) -> sw.Stream:
    return _sessions(topic(flow, case, "test_topic", {"F0": "int64"}), "1s", sw.first("F0"))


@flow_of(
    "session-windows-session_start_stream",
    way="detour",
    note="the beginnings of sessions, made of the sessions when these are over",
)
def session_starts(flow: sw.Dataflow, case: Case) -> sw.Stream:
    records = topic(flow, case, "data", {"USER_ID": "int64"})
    made = _sessions(records, "5s", sw.count(), by="USER_ID")
    starts = made.select("key", "start", end="start", value=sw.lit(1, "int64"))
    return made.merge(starts)


@KSQL.translation("ksql-suppress-should_support_final_results_for_session_windows")
def closed_sessions(case: Case) -> Rows:
    newest = max(record["timestamp"] for record in case.input)

    def made(flow: sw.Dataflow) -> sw.Stream:
        columns, after = {"COL1": "string"}, newest + 6.5
        # A row is late by more than gap and grace together.
        records = topic(
            flow, case, "input_topic", columns, key="string", next_ms=after, disorder="11ms"
        )
        return _sessions(records, "5ms", sw.count())

    return results(made, stop_s=len(case.input) + 1)


# -- lists of the greatest --------------------------------------------------------------

FLOATS = {"NAME": "string", "VALUE": "float64"}
for kind, window in (("tumbling", HALF_MINUTE), ("hopping", TENS)):
    windowed(
        f"{kind}-windows-topk_{kind}",
        window=window,
        aggregate=sw.top_k("VALUE", 2),
        columns=FLOATS,
    )
    windowed(
        f"{kind}-windows-topkdistinct_{kind}",
        window=window,
        aggregate=sw.top_k("VALUE", 2, distinct=True),
        columns=FLOATS,
    )

# -- rows without a partner -------------------------------------------------------------

joined("joins-stream_stream_left_join", within="11s", selected=FOUR, how="left")
joined("joins-stream_stream_right_join", within="11s", selected=FOUR, how="right")
L1, L2 = {"L1": "string"}, {"L2": "string"}
LATE: dict[str, Any] = {"disorder": "2m"}
"""To them a row is late by more than within and grace together."""
GRACE: dict[str, Any] = {"within": "1m", "left": L1, "right": L2, "source": LATE}
OF_GRACE = "with_out_of_order_and_custom_grace_period"
joined(f"joins-stream_stream_left_join_{OF_GRACE}", selected=("key", *L1, *L2), how="left", **GRACE)
joined(
    f"joins-stream_stream_right_join_{OF_GRACE}", selected=("key", *L1, *L2), how="right", **GRACE
)


def _outer(
    flow: sw.Dataflow,
    case: Case,
    kinds: Sequence[Mapping[str, str]],
    within: str,
    **source: Any,
) -> sw.Stream:
    """Return an outer join of two topics that keeps the key of each side."""
    left, right = (
        topic(flow, case, f"{side}_topic", columns, **source).with_columns(
            {f"{side}_id": sw.col("key")}
        )
        for side, columns in zip(LEFT_RIGHT, kinds, strict=True)
    )
    return left.join(right, on="key", within=within, how="outer")


@flow_of("joins-stream_stream_outer_join")
def outer_join(flow: sw.Dataflow, case: Case) -> sw.Stream:
    both = _outer(flow, case, (PERSON, FACT), "11s")
    return both.select("key", "F1", "F2", "right_id", "left_id", "NAME", "VALUE")


@flow_of(f"joins-stream_stream_full_outer_join_{OF_GRACE}")
def outer_join_with_grace(flow: sw.Dataflow, case: Case) -> sw.Stream:
    both = _outer(flow, case, (L1, L2), "1m", **LATE)
    return both.select("key", "L1", "L2", "right_id", "left_id")


# -- what is refused --------------------------------------------------------------------

CANNOT: dict[str, dict[str, Any]] = {
    "suppress-should_throw_on_non_windowed_tables": {
        "by": "key",
        "n": sw.count(),
        "close": sw.closing.event_driven(),  # final results, of windows that there are not
    },
    "suppress-should_throw_if_no_aggregation_is_present_for_group_by": {
        "by": "key",
        "window": TWO_MS,
    },
    "suppress-should_throw_if_no_group_by_for_aggregation": {"window": TWO_MS, "n": sw.count()},
}
ALLOWED = "allowed"


def _refusals(case: Case) -> Rows:
    """Return whether the flow of a case is allowed; theirs is refused, so there is no row."""
    flow = sw.Dataflow("case")
    rows = rows_of(flow, [["a", 0]], {"key": "string", "t": "int64"}, time_unit="ms")
    try:
        rows.aggregate(**CANNOT[case.name.removeprefix("ksql-")])
    except sw.SlackwaterError:
        return []
    return [[ALLOWED]]


KSQL.translation(*(f"ksql-{name}" for name in CANNOT))(_refusals)
KSQL.differs(
    "ksql-suppress-should_throw_if_no_group_by_for_aggregation",
    "an aggregate of all rows needs no key",
    extra=[ALLOWED],
)

# -- reasons ----------------------------------------------------------------------------

LOST = "they lose windows that a jump of their stream's time closes"
WAITS = "by a slack a window closes when a row after its end has left, so late rows count longer"
for name, extra in {
    "include_out_of_order_events_before_window_end_plus_grace_period_passes": ["k1 0 2 4"],
    "drop_out_of_order_event_after_window_end_plus_grace_period_passes": ["k1 0 2 4"],
    "support_final_results_for_tumbling_windows": ["k1 0 2 4"],
    "support_final_results_for_tumbling_windows_with_large_jump": [
        "k1 0 2 4",
        "k1 10 12 1",
        "k1 2 4 2",
    ],
    "support_final_results_for_hopping_windows": ["k1 2 7 3"],
    "drop_events_with_no_key": ["k1 0 2 1"],
    "handle_null_values": ["k1 0 2 1"],
    "suppress_after_a_filter_WHERE_clause": ["k1 0 2 1"],
}.items():
    KSQL.differs(f"ksql-suppress-should_{name}", LOST, extra=extra)
KSQL.differs(
    "ksql-suppress-should_suppress_multiple_keys",
    f"{LOST}; and {WAITS}",
    extra=["k1 0 2 2", "k2 0 2 2", "k2 2 4 1"],
)
for kind in ("tumbling", "hopping"):
    KSQL.differs(
        f"ksql-{kind}-windows-out_of_order_-_explicit_grace_period",
        WAITS,
        extra=["0 0 30000 6", "1 0 30000 100"],
        lacking=[0],
    )
KSQL.differs(
    "ksql-session-windows-out_of_order_-_explicit_grace_period",
    "rows are put in order first, so rows of one session are one; theirs had closed it by arrival",
    extra=["0 0 10010 6", "1 10009 10010 101"],
    lacking=[0, 2, 3],
)
KSQL.differs(
    "ksql-latest-offset-udaf-merging_session_windows",
    "the last is that by event time; theirs is that of the last arrival",
    extra=["0 0 1500 3"],
    lacking=[0],
)
PARTNER = "they also say that a row has no partner which gets one later"
for kind in ("left", "outer"):
    KSQL.differs(f"ksql-joins-stream_stream_{kind}_join", PARTNER, lacking=[0])
UNMATCHED = (
    "late rows of theirs leave without a partner, ours are counted as late; and at the end of the "
    "input no row waits for a partner any more"
)
KSQL.differs(
    f"ksql-joins-stream_stream_left_join_{OF_GRACE}",
    UNMATCHED,
    extra=["1 B NULL"],
    lacking=[1, 2],
)
KSQL.differs(
    f"ksql-joins-stream_stream_right_join_{OF_GRACE}",
    "a row that is older than within and grace is late here, and still joined there",
    lacking=[3],
)
KSQL.differs(
    f"ksql-joins-stream_stream_full_outer_join_{OF_GRACE}",
    UNMATCHED,
    extra=["1 NULL b 1 NULL"],
    lacking=[1, 3],
)

# -- a stream with a table --------------------------------------------------------------


def _with_table(flow: sw.Dataflow, case: Case, how: Any) -> sw.Stream:
    stream, table = topic(flow, case, "test_topic", PERSON), topic(flow, case, "test_table", FACT)
    return stream.asof(table, on="key", how=how).select(*FOUR)


@flow_of("joins-stream_table_left_join")
def table_left_join(flow: sw.Dataflow, case: Case) -> sw.Stream:
    return _with_table(flow, case, "left")


@flow_of("joins-stream_table_inner_join")
def table_join(flow: sw.Dataflow, case: Case) -> sw.Stream:
    return _with_table(flow, case, "inner")


@flow_of("join-with-custom-timestamp-stream_table_join_with_ts_extractor_both_sides")
def table_join_by_times(flow: sw.Dataflow, case: Case) -> sw.Stream:
    stream = _timed(flow, case, "s1", NAME_TS, "TS")
    table = _timed(flow, case, "t1", {**FACTS, "RTS": "int64"}, "RTS")
    return stream.asof(table, on="key", how="inner").select(*CHOSEN)


KSQL.differs(
    "ksql-join-with-custom-timestamp-stream_table_join_with_ts_extractor_both_sides",
    "the table is as of the event time; theirs is as it was when the row arrived",
    lacking=[0, 1, 2],
)
