"""What every operator promises, whatever it does (`runtime/operators/ground/contract.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, ON_ARRIVAL, READY_ONLY, START_NS, Batch, GateRead
from slackwater.runtime.model.later import Later
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.close import CloseInTime
from slackwater.runtime.operators.aggregate.cumulative_windows import CumulativeWindow
from slackwater.runtime.operators.aggregate.custom_aggregate import (
    CustomAggregate,
    CustomFunctions,
)
from slackwater.runtime.operators.aggregate.interval_words import (
    Everything,
    OpenedBy,
    Rows,
    Session,
)
from slackwater.runtime.operators.aggregate.over_step import OverStep, Reach
from slackwater.runtime.operators.aggregate.schema import with_three
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.totals_step import TotalsStep
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.operators.dedupe.step import DedupeStep
from slackwater.runtime.operators.followed_by.step import FollowedByStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.operators.join.asof import AsofStep
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.operators.join.table_join import TableJoinStep
from slackwater.runtime.operators.process.step import ProcessStep
from slackwater.runtime.operators.silence.step import SilenceStep
from slackwater.runtime.operators.to_table.step import ToTableStep
from slackwater.runtime.operators.top_k.step import SortColumn, TopKStep
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.traits import Replica
from slackwater.runtime.registry.operators import make_operator
from tests.contract.patterns import PATTERNS
from tests.operators.literal import (
    Leaves,
    Row,
    Segment,
    any_row,
    by_arrival,
    leaves_of,
    reads_of,
    run,
    streams,
)
from tests.support.chance import chance
from tests.support.closings import EndAndAWhile
from tests.support.examples import a_third
from tests.support.rows import bound
from tests.support.states import differences
from tests.support.told import gate_read

ROWS = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.float64()})
VALUES = any_row([1, 2, 2**40], ["20", "26", None], [0.1, 0.2, 0.3, -7.7, 1e16])
TIMES = pa.timestamp("ns")


@dataclass(frozen=True)
class Case:
    name: str
    step: Step
    ports: int

    def __str__(self) -> str:
        return self.name

    def make(self) -> Operator:
        return make_operator(self.step)

    def reads(self, segments: Sequence[Segment], cut: Random | None = None) -> Iterator[GateRead]:
        reads = reads_of(segments, self.schemas, cut)
        return by_arrival(reads) if self.closes_in_time else reads

    @property
    def closes_in_time(self) -> bool:
        return getattr(self.step, "close", None) is not None

    @property
    def schemas(self) -> Sequence[pa.Schema]:
        return [ROWS] * self.ports


AGGREGATE = AggregateStep(
    name="minutes",
    inputs=("rows",),
    schema=pa.schema(
        {
            "line": pa.string(),
            "window_start": TIMES,
            "window_end": TIMES,
            "mean": pa.float64(),
            "n": pa.int64(),
        }
    ),
    keys=("line",),
    window=Window(10, 10),
    aggregates={"mean": Aggregate("mean", "delay"), "n": Aggregate("count")},
    release=READY_ONLY,
)
THREE = replace(
    AGGREGATE,
    schema=with_three(AGGREGATE.schema, AGGREGATE.aggregates, Drift(4), step="minutes"),
    drift=Drift(4),
)
QUANTILES = replace(
    AGGREGATE,
    schema=pa.schema(
        {
            "area": pa.int64(),
            "line": pa.string(),
            "window_start": TIMES,
            "window_end": TIMES,
            "most": pa.float64(),
            "median": pa.float64(),
        }
    ),
    keys=("area", "line"),
    aggregates={"most": Aggregate("max", "delay"), "median": Aggregate("quantile", "delay", 0.5)},
)
CHOSEN = replace(
    AGGREGATE,
    schema=pa.schema(
        [
            *list(AGGREGATE.schema)[:3],
            ("first", pa.float64()),
            ("last", pa.string()),
            ("greatest", pa.string()),
            ("top", pa.list_(pa.string())),
            ("distinct", pa.int64()),
            ("list", pa.list_(pa.float64())),
            ("some", pa.list_(pa.int64())),
        ]
    ),
    aggregates={
        "first": Aggregate("first", "delay"),
        "last": Aggregate("last", "line"),
        "greatest": Aggregate("arg_max", "line", by="delay"),
        "top": Aggregate("top_k", "line", size=2, distinct=True),
        "distinct": Aggregate("count_distinct", "delay"),
        "list": Aggregate("collect", "delay"),
        "some": Aggregate(
            "top_k", "area", size=3, condition=bound(col("delay") < 0.2, pa.float64())
        ),
    },
)
SPREAD = replace(
    AGGREGATE,
    schema=pa.schema(
        [
            *list(AGGREGATE.schema)[:3],
            *((name, pa.float64()) for name in ("std", "var", "some", "covar", "slope")),
            ("bits", pa.int64()),
        ]
    ),
    aggregates={
        "std": Aggregate("std", "delay", ddof=1),
        "var": Aggregate("var", "area", ddof=0),
        "some": Aggregate("mean", "delay", condition=bound(col("delay") < 0.2, pa.float64())),
        "covar": Aggregate("covar", "delay", by="area", ddof=1),
        "slope": Aggregate("slope", "delay", by="area"),
        "bits": Aggregate("bit_and", "area"),
    },
)
CUSTOM = replace(
    AGGREGATE,
    schema=pa.schema([*list(AGGREGATE.schema)[:3], ("all", pa.string())]),
    aggregates={
        "all": CustomAggregate(
            "custom", returns=pa.string(), row_columns=("area", "delay"), leaves_as="all"
        )
    },
    custom={
        "all": CustomFunctions(
            list,
            lambda state, row: [*state, row["area"], row["delay"]],
            lambda state, other: state + other,
            repr,
        )
    },
)
EARLY = replace(AGGREGATE, schema=AGGREGATE.schema.append(pa.field("revision", pa.int64())))
SESSIONS = IntervalStep(
    name="sessions",
    inputs=AGGREGATE.inputs,
    schema=AGGREGATE.schema,
    keys=AGGREGATE.keys,
    window=Session(4),
    aggregates=AGGREGATE.aggregates,
    release=READY_ONLY,
)
JOIN = JoinStep(
    name="jams",
    inputs=("buses", "loops"),
    schema=pa.schema(
        {"area": pa.int64(), "line": pa.string(), "delay": pa.float64(), "other": pa.string()}
    ),
    left_on=("area",),
    right_on=("area",),
    within_ns=6,
    where=None,
    right_names={"line": "other", "delay": "other_delay"},
    release=READY_ONLY,
)
LINES: dict[str, Any] = {"left_on": ("line",), "right_on": ("line",)}
ASOF = AsofStep(
    name="prices",
    inputs=("buses", "loops"),
    schema=JOIN.schema,
    left_on=("area",),
    right_on=("area",),
    tolerance_ns=None,
    direction="backward",
    how="left",
    strict=False,
    right_names=JOIN.right_names,
    release=READY_ONLY,
)
TABLE_JOIN = TableJoinStep(
    name="tables",
    inputs=("buses", "loops"),
    schema=JOIN.schema,
    left_on=("area",),
    right_on=("area",),
    where=None,
    right_names=JOIN.right_names,
    retracts=(True, True),
    on_missing="count",
    release=READY_ONLY,
)
TO_TABLE = ToTableStep(
    name="newest",
    inputs=("rows",),
    schema=ROWS,
    keys=("line",),
    on_missing="count",
    release=READY_ONLY,
)
IN_TIME = replace(
    AGGREGATE,
    schema=AGGREGATE.schema.append(pa.field("chance_missing", pa.float64())),
    window=Window(12, 5),
    release=ON_ARRIVAL,
    close=CloseInTime(EndAndAWhile(-20), None, None, every_ns=1),
)
UNCERTAIN = replace(
    JOIN, schema=JOIN.schema.append(pa.field("certain", pa.bool_())), drift=Drift(2)
)
DEDUPE = DedupeStep(
    name="first", inputs=("rows",), schema=ROWS, on=("line",), within_ns=6, release=READY_ONLY
)


FOLLOWED_BY = FollowedByStep(
    name="jumps",
    inputs=("rows",),
    schema=pa.schema(
        {"line": pa.string(), "first_delay": pa.float64(), "then_delay": pa.float64()}
    ),
    keys=("line",),
    first=bound(col("delay") < 0.2, pa.float64()),
    then=bound(col("delay") > 0.1, pa.float64()),
    within_ns=8,
    release=READY_ONLY,
)


def with_certain(step: FollowedByStep, drift: Drift) -> FollowedByStep:
    return replace(step, schema=step.schema.append(pa.field("certain", pa.bool_())), drift=drift)


class Sums:
    """What comes in at one time, added up; and all of it, 4 behind the last row."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.due_ns: int | None = None

    def on_rows(self, key: Any, rows: Any) -> list[dict[str, Any]]:
        self.seen.append(sum(row["delay"] for row in rows))
        self.due_ns = rows.event_time_ns + 4
        return [{"line": key, "n": len(rows), "delay": self.seen[-1]}]

    def on_time(self, key: Any, t: int) -> list[dict[str, Any]]:
        made = [{"line": key, "n": t, "delay": sum(self.seen)}]
        self.seen.clear()
        return made


PROCESS = ProcessStep(
    name="sums",
    inputs=("rows",),
    schema=pa.schema({"line": pa.string(), "n": pa.int64(), "delay": pa.float64()}),
    keys=("line",),
    operator=Sums(),
    within_ns=9,
    release=READY_ONLY,
)
BOUNDS = {"window_start": TIMES, "window_end": TIMES}
TOP_K = TopKStep(
    name="best",
    inputs=("rows",),
    schema=pa.schema([*ROWS, *BOUNDS.items(), ("place", pa.int64())]),
    keys=("line",),
    window=Window(10, 10),
    most=2,
    columns=(SortColumn("delay"), SortColumn("area", ascending=True)),
    rank="place",
    release=READY_ONLY,
)
NEWEST = replace(TOP_K, schema=ROWS, window=None, most=1, columns=(), newest_first=True, rank=None)
SILENCE = SilenceStep(
    name="silent",
    inputs=("rows",),
    schema=pa.schema({"line": pa.string(), "silent_since": TIMES}),
    keys=("line",),
    after_ns=3,
    release=READY_ONLY,
)
OVER = OverStep(
    name="over",
    inputs=("rows",),
    schema=pa.schema(
        [
            *ROWS,
            ("n", pa.int64()),
            ("sum", pa.float64()),
            ("mean", pa.float64()),
            ("area_sum", pa.int64()),
            ("least", pa.float64()),
            ("first", pa.string()),
            ("last", pa.float64()),
            ("lines", pa.int64()),
        ]
    ),
    keys=("area",),
    reach=Reach(),
    aggregates={
        "n": Aggregate("count", condition=bound(col("delay") > 0, pa.float64())),
        "sum": Aggregate("sum", "delay"),
        "mean": Aggregate("mean", "delay"),
        "area_sum": Aggregate("sum", "area"),
        "least": Aggregate("min", "delay"),
        "first": Aggregate("first", "line"),
        "last": Aggregate("last", "delay"),
        "lines": Aggregate("count_distinct", "line", by="line"),
    },
    release=READY_ONLY,
)
TOTALS = TotalsStep(
    name="totals",
    inputs=("rows",),
    schema=pa.schema([("area", pa.int64()), *list(OVER.schema)[3:]]),
    keys=("area",),
    aggregates=OVER.aggregates,
    release=READY_ONLY,
)
RETRACTED = replace(
    TOTALS,
    schema=pa.schema([field for field in TOTALS.schema if field.name not in ("first", "last")]),
    aggregates={
        name: each for name, each in TOTALS.aggregates.items() if name not in ("first", "last")
    },
    retracts=True,
)
KEPT = replace(
    RETRACTED,
    keep_ns=12,
    of_input=pa.schema([field for field in ROWS if field.name in ("line", "delay", "area")]),
    retracts=False,
)
CASES = [
    Case("dedupe", DEDUPE, 1),
    Case("top_k", TOP_K, 1),
    Case(
        "top_k in sliding windows, of text",
        replace(TOP_K, window=Window(12, 5), keys=("area",), columns=(SortColumn("line"),)),
        1,
    ),
    Case("the newest of all", NEWEST, 1),
    Case(
        "the oldest in windows",
        replace(
            NEWEST,
            schema=pa.schema([*ROWS, *BOUNDS.items()]),
            window=Window(10, 10),
            keys=("line", "area"),
            newest_first=False,
        ),
        1,
    ),
    Case("totals", TOTALS, 1),
    Case("totals of parts of time, with counted values", replace(RETRACTED, every_ns=7), 1),
    Case("totals of keys that go", replace(KEPT, retracts=True), 1),
    Case("totals of parts of time of keys that go", replace(KEPT, every_ns=3), 1),
    Case("rows over all before", OVER, 1),
    Case("rows over all before without themselves", replace(OVER, reach=Reach(closed="start")), 1),
    Case("rows over three rows", replace(OVER, keys=("line",), reach=Reach(rows=3)), 1),
    Case("rows over a time", replace(OVER, reach=Reach(last_ns=6, closed="both")), 1),
    Case(
        "rows over a time around them",
        replace(OVER, keys=("line",), reach=Reach(last_ns=3, ahead_ns=4)),
        1,
    ),
    Case("silence", SILENCE, 1),
    Case(
        "silence of two keys",
        replace(
            SILENCE,
            keys=("line", "area"),
            after_ns=9,
            schema=pa.schema({"line": pa.string(), "area": pa.int64(), "silent_since": TIMES}),
        ),
        1,
    ),
    Case("dedupe by two keys, for long", replace(DEDUPE, on=("line", "area"), within_ns=30), 1),
    Case("followed_by", FOLLOWED_BY, 1),
    *(Case(name, step, 1) for name, step in PATTERNS.items()),
    Case("followed_by that allows for clocks", with_certain(FOLLOWED_BY, Drift(2)), 1),
    Case(
        "followed_by of two keys, each row with a bound of its own",
        replace(with_certain(FOLLOWED_BY, Drift(4, "area")), keys=("line", "area"), within_ns=20),
        1,
    ),
    Case("an operator of one's own", PROCESS, 1),
    Case("tumbling", AGGREGATE, 1),
    Case("sliding", replace(AGGREGATE, window=Window(12, 5)), 1),
    Case("cumulative", replace(AGGREGATE, window=CumulativeWindow(12, 4)), 1),
    Case(
        "cumulative windows of chosen rows, with an offset",
        replace(CHOSEN, window=CumulativeWindow(15, 3, 7)),
        1,
    ),
    Case("windows without rows", replace(AGGREGATE, empty_ns=25), 1),
    Case("windows that leave early, by time", replace(EARLY, early_ns=4), 1),
    Case(
        "sliding windows that leave early, by time",
        replace(EARLY, window=Window(12, 5), early_ns=3),
        1,
    ),
    Case("windows that leave early, by rows", replace(EARLY, early_rows=2), 1),
    Case("windows of new rows, by time", replace(AGGREGATE, early_ns=4, discards=True), 1),
    Case("windows of new rows, by rows", replace(AGGREGATE, early_rows=2, discards=True), 1),
    Case("windows with the times of their starts", replace(AGGREGATE, result_time="start"), 1),
    Case(
        "sliding windows with the times of their last rows",
        replace(CHOSEN, window=Window(12, 5), result_time="last"),
        1,
    ),
    Case(
        "sliding windows without rows",
        replace(CHOSEN, keys=("line",), window=Window(12, 5), empty_ns=17),
        1,
    ),
    Case("tumbling quantiles", QUANTILES, 1),
    Case("sliding quantiles", replace(QUANTILES, window=Window(20, 4)), 1),
    Case("chosen rows", CHOSEN, 1),
    Case("sliding chosen rows", replace(CHOSEN, window=Window(12, 5)), 1),
    Case("custom aggregates", CUSTOM, 1),
    Case("sliding custom aggregates", replace(CUSTOM, window=Window(12, 5)), 1),
    Case("spreads", replace(SPREAD, window=Window(20, 4)), 1),
    Case(
        "three windows of spreads",
        replace(
            SPREAD,
            schema=with_three(SPREAD.schema, SPREAD.aggregates, Drift(4), step="minutes"),
            drift=Drift(4),
        ),
        1,
    ),
    Case(
        "chosen rows of windows that close in time",
        replace(
            IN_TIME,
            schema=CHOSEN.schema.append(pa.field("chance_missing", pa.float64())),
            aggregates=CHOSEN.aggregates,
        ),
        1,
    ),
    Case("sessions", SESSIONS, 1),
    Case(
        "sessions of two keys, with quantiles",
        replace(
            SESSIONS,
            keys=QUANTILES.keys,
            schema=QUANTILES.schema,
            aggregates=QUANTILES.aggregates,
            window=Session(9),
        ),
        1,
    ),
    Case(
        "chosen rows of sessions",
        replace(SESSIONS, schema=CHOSEN.schema, aggregates=CHOSEN.aggregates, window=Session(9)),
        1,
    ),
    Case(
        "custom aggregates of sessions",
        replace(
            SESSIONS,
            schema=CUSTOM.schema,
            aggregates=CUSTOM.aggregates,
            custom=CUSTOM.custom,
            window=Session(9),
        ),
        1,
    ),
    Case(
        "sessions with a gap by row",
        replace(SESSIONS, window=Session(None, bound(col("area") % 11 + 1, pa.int64()))),
        1,
    ),
    Case("sessions with the times of their first rows", replace(SESSIONS, result_time="first"), 1),
    Case(
        "all rows of a key with the time of the last",
        replace(SESSIONS, window=Everything(), result_time="last"),
        1,
    ),
    Case("all rows of a key", replace(SESSIONS, window=Everything()), 1),
    Case(
        "windows that rows open",
        replace(SESSIONS, window=OpenedBy(bound(col("delay") < 0.2, pa.float64()), 7)),
        1,
    ),
    Case("windows of three rows", replace(SESSIONS, window=Rows(3, 3)), 1),
    Case("sessions that leave early, by time", replace(SESSIONS, early_ns=3), 1),
    Case("sessions that leave early, by rows", replace(SESSIONS, early_rows=2), 1),
    Case("sessions of new rows, by time", replace(SESSIONS, early_ns=3, discards=True), 1),
    Case("sessions of new rows, by rows", replace(SESSIONS, early_rows=2, discards=True), 1),
    Case("five rows that leave early", replace(SESSIONS, window=Rows(5, 5), early_rows=2), 1),
    Case("all rows of a key, early", replace(SESSIONS, window=Everything(), early_ns=5), 1),
    Case(
        "windows that rows open, early",
        replace(SESSIONS, window=OpenedBy(bound(col("delay") < 0.2, pa.float64()), 7), early_ns=3),
        1,
    ),
    Case("windows of rows that overlap", replace(SESSIONS, window=Rows(5, 2)), 1),
    Case("windows that close in time", IN_TIME, 1),
    Case(
        "windows that close in time, by a column's types",
        replace(IN_TIME, close=CloseInTime(EndAndAWhile(-20), "area", None, every_ns=1)),
        1,
    ),
    Case("three windows", THREE, 1),
    Case(
        "three sliding windows, each row with a bound of its own",
        replace(THREE, window=Window(12, 5), drift=Drift(3, "area")),
        1,
    ),
    Case("join", JOIN, 2),
    Case(
        "join on text, with a predicate",
        replace(
            JOIN,
            left_on=("line", "area"),
            right_on=("line", "area"),
            where=bound(col("delay") > 0, pa.float64()),
        ),
        2,
    ),
    Case("join that keeps rows by slack", replace(JOIN, keep="slack"), 2),
    Case("left join", replace(JOIN, how="left"), 2),
    Case(
        "left join of rows before, by slack",
        replace(JOIN, how="left", between_ns=(6, 0), keep="slack"),
        2,
    ),
    Case(
        "right join on text, with null keys",
        replace(JOIN, how="right", left_on=("line", "area"), right_on=("line", "area")),
        2,
    ),
    Case("outer join", replace(JOIN, how="outer", between_ns=(2, 6)), 2),
    Case("as-of join", ASOF, 2),
    Case("as-of join within a tolerance, by slack", replace(ASOF, tolerance_ns=5, keep="slack"), 2),
    Case(
        "as-of join with later rows, by text",
        replace(ASOF, direction="forward", tolerance_ns=4, how="inner", **LINES),
        2,
    ),
    Case("nearest rows", replace(ASOF, direction="nearest", tolerance_ns=6, strict=True), 2),
    Case("a table of the newest rows", TO_TABLE, 1),
    Case("a table by two keys", replace(TO_TABLE, keys=("line", "area")), 1),
    Case("a table of keys that go", replace(TO_TABLE, keep_ns=7), 1),
    Case("join of tables", TABLE_JOIN, 2),
    Case("outer join of tables by text", replace(TABLE_JOIN, how="outer", **LINES), 2),
    Case("left join of tables whose keys go", replace(TABLE_JOIN, how="left", keep_ns=7), 2),
    Case(
        "semi join of tables that grow",
        replace(TABLE_JOIN, how="semi", schema=ROWS, retracts=(False, False)),
        2,
    ),
    Case("anti join of tables", replace(TABLE_JOIN, how="anti", schema=ROWS), 2),
    Case("join with the time of left rows", replace(JOIN, result_time="left"), 2),
    Case(
        "outer join with the time of right rows",
        replace(JOIN, how="outer", between_ns=(2, 6), result_time="right"),
        2,
    ),
    Case("semi join", replace(JOIN, how="semi", schema=ROWS), 2),
    Case("anti join on text", replace(JOIN, how="anti", schema=ROWS, **LINES), 2),
    Case("join that allows for clocks", UNCERTAIN, 2),
    Case(
        "a share of a join, each row with a bound of its own",
        replace(UNCERTAIN, drift=Drift(3, "area"), replica=Replica(1, 3, "all")),
        2,
    ),
    Case("a share of a join", replace(JOIN, replica=Replica(1, 3, "all")), 2),
]
every_operator = pytest.mark.parametrize("case", CASES, ids=str)


def any_stream(test: Callable[..., None]) -> Callable[..., None]:
    """Try a test on streams and cuts; the cases together have two hundred of them."""
    return a_third(given(data=st.data(), cut=chance)(test))


def draw_stream(case: Case, data: st.DataObject, *, late: bool = True) -> list[Segment]:
    return data.draw(streams([VALUES] * case.ports, late=late))


def deep_copy(state: Any) -> Any:
    """Return a copy of plain values and arrays; anything else does not belong in a snapshot."""
    match state:
        case dict():
            assert all(isinstance(key, str) for key in state)
            return {key: deep_copy(value) for key, value in state.items()}
        case list() | tuple():
            return type(state)(deep_copy(value) for value in state)
        case np.ndarray():
            assert state.dtype != object
            return state.copy()
        case pa.Array():
            return pa.array(state.to_pylist(), state.type)
        case None | bool() | int() | float() | str():
            return state
    raise AssertionError(f"{type(state)} in a snapshot")


def overwrite(batch: Batch | None) -> None:
    if batch is not None:
        batch.event_time_ns[:] = -1
        for column in batch.columns.values():
            if isinstance(column, np.ndarray):
                column[:] = -1


@every_operator
@any_stream
def test_snapshot_and_restore_change_nothing(case: Case, data: st.DataObject, cut: Random) -> None:
    segments = draw_stream(case, data)
    expected = run(case.make(), case.reads(segments))
    operator = case.make()
    leaves: Leaves = []
    for released in case.reads(segments, cut):
        state = deep_copy(to_plain(save(operator)))
        before = operator.rows_held, operator.late_dropped
        operator = case.make()
        restore(operator, from_plain(state))
        assert (operator.rows_held, operator.late_dropped) == before
        leaves += leaves_of([operator.work(released, now_ns=0).rows])
    assert leaves == expected


@every_operator
@any_stream
def test_snapshot_does_not_change_when_the_operator_goes_on(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    reads = list(case.reads(draw_stream(case, data), cut))
    operator, half = case.make(), len(reads) // 2
    run(operator, iter(reads[:half]))
    state = save(operator)  # and no copy of it, as in the test before this one
    first = run(operator, iter(reads[half:]))
    again = case.make()
    restore(again, state)
    assert run(again, iter(reads[half:])) == first


@every_operator
@any_stream
def test_state_saved_in_steps_is_that_of_its_cut(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    reads = list(case.reads(draw_stream(case, data), cut))
    operator, half = case.make(), cut.randint(0, len(reads))
    run(operator, iter(reads[:half]))
    whole, later = deep_copy(to_plain(save(operator))), list[Later]()
    state = to_plain(save(operator, later))
    leaves: Leaves = []
    for released in reads[half:]:  # keys are changed, begun and forgotten between the steps
        while cut.random() < 0.5 and (open_parts := [part for part in later if not part.is_done]):
            cut.choice(open_parts).step(cut.randint(1, 3))
        leaves += leaves_of([operator.work(released, now_ns=0).rows])
    for part in later:
        part.finish()
    again, expected = case.make(), case.make()
    restore(again, from_plain(deep_copy(state)))
    restore(expected, from_plain(whole))
    assert not differences(again, expected)
    assert run(again, iter(reads[half:])) == leaves


@every_operator
@any_stream
def test_no_cut_and_no_later_use_of_rows_shows_and_nothing_stays(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    segments = draw_stream(case, data)
    expected = run(case.make(), case.reads(segments))
    operator = case.make()
    leaves: Leaves = []
    for released in case.reads(segments, cut):
        leaves += leaves_of([operator.work(released, now_ns=0).rows])
        for batch in (*released.ports, *released.late):
            overwrite(batch)
    assert leaves == expected
    check_nothing_stays(case, operator, draw_stream(case, data)[0].rows)


def check_nothing_stays(case: Case, operator: Operator, late: Sequence[Row]) -> None:
    """Check that an operator holds nothing at its end, and only counts rows that come then."""
    assert operator.rows_held == 0
    nothing: list[Batch | None] = [None] * case.ports
    assert operator.work(gate_read(nothing, nothing, END_NS, 0, END_NS), 0).promise_ns == END_NS
    before = operator.late_dropped
    reads = list(case.reads([Segment([], late, END_NS, END_NS)]))
    assert run(operator, iter(reads)) == []
    assert operator.late_dropped == before + len(late)


@every_operator
@any_stream
def test_promise_is_kept_and_grows_with_the_watermark(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    operator = case.make()
    promise_ns = START_NS
    for released in case.reads(draw_stream(case, data, late=False), cut):
        batch, following, *_ = operator.work(released, now_ns=0)
        if batch is not None:
            times = batch.event_time_ns.tolist()
            assert times == sorted(times)
            assert times[0] >= promise_ns
            assert len(times) == len(batch.stimulus_time_ns)
            assert list(batch.columns) == case.step.schema.names
        # Where windows close in time, they may be open behind the watermark, or closed ahead.
        assert following >= promise_ns
        least_ns = case.step.traits.summaries[0].promise_ns(released.watermark_ns)
        assert case.closes_in_time or following >= least_ns
        promise_ns = following


@every_operator
def test_read_without_rows_gives_nothing(case: Case) -> None:
    operator = case.make()
    nothing: list[Batch | None] = [None] * case.ports
    for watermark_ns in (START_NS, -5, 0, 10**18, END_NS):
        read = gate_read(nothing, nothing, watermark_ns, 0, watermark_ns)
        assert operator.work(read, now_ns=0).rows is None
    assert operator.rows_held == operator.late_dropped == 0
