"""Sessions equal literal ones, however rows are cut and in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import ColumnError, OperatorError, SettingError, TypeMismatch
from slackwater.runtime.model import END_NS, LATEST_NS, READY_ONLY, START_NS, Batch, batch_of
from slackwater.runtime.operators.aggregate import interval_machine
from slackwater.runtime.operators.aggregate.interval_words import (
    Everything,
    OpenedBy,
    Rows,
    Session,
)
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import Leaves, Row, Segment, any_row, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated
from tests.support.rows import bound
from tests.support.told import gate_read

ROWS = pa.schema({"area": pa.int64(), "line": pa.string(), "n": pa.int64()})
VALUES = any_row([1, 2, -70], ["20", None], range(-9, 10))
TIMES = pa.timestamp("ns")
STEP = IntervalStep(
    name="visits",
    inputs=("buses",),
    schema=pa.schema(
        {
            "area": pa.int64(),
            "line": pa.string(),
            "window_start": TIMES,
            "window_end": TIMES,
            "rows": pa.int64(),
            "total": pa.int64(),
            "least": pa.int64(),
            "median": pa.float64(),
        }
    ),
    keys=("area", "line"),
    window=Session(5),
    aggregates={
        "rows": Aggregate("count"),
        "total": Aggregate("sum", "n"),
        "least": Aggregate("min", "n"),
        "median": Aggregate("quantile", "n", 0.5),
    },
    release=READY_ONLY,
)
COUNT = replace(
    STEP,
    keys=("area",),
    schema=pa.schema(
        {"area": pa.int64(), "window_start": TIMES, "window_end": TIMES, "rows": pa.int64()}
    ),
    aggregates={"rows": Aggregate("count")},
)
OWN_GAPS = Session(None, bound(abs(sw.col("n")) + 1, pa.int64()))
WINDOWS = [Session(1), Session(5), Session(30), OWN_GAPS, Everything()]


@dataclass
class Visit:
    key: tuple[Any, ...]
    number: int
    rows: list[Row]
    until: int = 0

    @property
    def first(self) -> int:
        return min(row.time for row in self.rows)


class LiteralSessions:
    """Sessions of rows of an `IntervalStep`, a row at a time."""

    def __init__(self, step: IntervalStep) -> None:
        self.is_all = isinstance(step.window, Everything)
        self.gap = step.window.reach_ns
        self.open: list[Visit] = []
        self.late_dropped = self.number = 0
        self.leaves: Leaves = []

    def run(self, segments: Sequence[Segment]) -> Leaves:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row, watermark)
            watermark = segment.watermark
            self._close(watermark)
        self._close(END_NS)
        return self.leaves

    def _take(self, row: Row, watermark: int) -> None:
        key = row.values[:2]
        own = 0 if self.is_all else abs(row.values[2]) + 1 if self.gap is None else self.gap
        until = row.time + own
        near = [
            visit
            for visit in self.open
            if visit.key == key
            and (self.is_all or (visit.first <= until and row.time <= visit.until))
        ]
        if not near and not self.is_all and until < watermark:
            self.late_dropped += 1
            return
        self.number += 1
        number = min([visit.number for visit in near], default=self.number)
        rows = [each for visit in near for each in visit.rows]
        self.open = [visit for visit in self.open if visit not in near]
        until = max(until, *(visit.until for visit in near)) if near else until
        self.open.append(Visit(key, number, [*rows, row], until))

    def _close(self, watermark: int) -> None:
        over = [
            visit
            for visit in self.open
            if watermark == END_NS or (not self.is_all and visit.until < watermark)
        ]
        self.open = [visit for visit in self.open if visit not in over]
        for visit in sorted(over, key=lambda visit: (self._until(visit), visit.number)):
            values = [row.values[2] for row in visit.rows]
            made = (len(values), sum(values), min(values), float(np.median(values)))
            stimulus = max(row.stimulus for row in visit.rows)
            leaves = (self._until(visit), stimulus, *visit.key, visit.first, visit.until, *made)
            self.leaves.append(tuple(map(repr, leaves)))

    def _until(self, visit: Visit) -> int:
        return LATEST_NS if self.is_all else visit.until


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_intervals_equal_literal_ones_however_the_rows_are_cut(
    window: Any, segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, window=window)
    literal = LiteralSessions(step)
    expected = literal.run(segments)
    machine = make_operator(step)
    assert run(machine, reads_of(segments, [ROWS], cut)) == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.rows_held == 0


class LiteralRows:
    """Windows of so many rows of a key, a row at a time."""

    def __init__(self, step: IntervalStep) -> None:
        assert isinstance(step.window, Rows)
        self.size, self.every = step.window.size, step.window.every
        self.rows: dict[tuple[Any, ...], list[tuple[int, Row]]] = {}
        self.count = 0
        self.leaves: Leaves = []

    def run(self, segments: Sequence[Segment]) -> Leaves:
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row)
        rest = []
        for rows in self.rows.values():
            first = max(0, (len(rows) - self.size) // self.every + 1)
            rest += [rows[k * self.every :] for k in range(first, len(rows))]
        for rows in sorted([each for each in rest if each], key=lambda rows: rows[0][0]):
            self._leave([row for _, row in rows], LATEST_NS)
        return self.leaves

    def _take(self, row: Row) -> None:
        rows = self.rows.setdefault(row.values[:2], [])
        self.count += 1
        rows.append((self.count, row))
        if len(rows) >= self.size and (len(rows) - self.size) % self.every == 0:
            whole = [each for _, each in rows[-self.size :]]
            self._leave(whole, max(each.time for each in whole))

    def _leave(self, rows: list[Row], time: int) -> None:
        values = [row.values[2] for row in rows]
        made = (len(values), sum(values), min(values), float(np.median(values)))
        stimulus = max(row.stimulus for row in rows)
        times = [row.time for row in rows]
        leaves = (time, stimulus, *rows[0].values[:2], min(times), max(times), *made)
        self.leaves.append(tuple(map(repr, leaves)))


@pytest.mark.parametrize("window", [Rows(1, 1), Rows(3, 3), Rows(4, 2), Rows(5, 3), Rows(3, 1)])
@given(segments=streams([VALUES]), cut=chance)
def test_windows_of_rows_equal_literal_ones_however_the_rows_are_cut(
    window: Rows, segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, window=window)
    machine = make_operator(step)
    leaves = run(machine, reads_of(segments, [ROWS], cut))
    assert leaves == LiteralRows(step).run(segments)
    assert machine.rows_held == machine.late_dropped == 0


class LiteralOpenings:
    """Windows that rows above a number open, a row at a time."""

    def __init__(self, step: IntervalStep, *, above: int) -> None:
        assert isinstance(step.window, OpenedBy)
        self.length, self.above = step.window.length_ns, above
        self.open: list[Visit] = []
        self.late_dropped = self.number = 0
        self.leaves: Leaves = []

    def run(self, segments: Sequence[Segment]) -> Leaves:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row, is_late=row.time < watermark)
            watermark = segment.watermark
            self._close(watermark)
        self._close(END_NS)
        return self.leaves

    def _take(self, row: Row, *, is_late: bool) -> None:
        self.number += 1
        around = [
            visit
            for visit in self.open
            if visit.key == row.values[:2] and 0 <= row.time - visit.rows[0].time < self.length
        ]
        for visit in around:
            visit.rows.append(row)
        if row.values[2] > self.above and not is_late:
            self.open.append(Visit(row.values[:2], self.number, [row]))
        elif is_late and not around:
            self.late_dropped += 1

    def _close(self, watermark: int) -> None:
        over = [visit for visit in self.open if visit.rows[0].time + self.length <= watermark]
        self.open = [visit for visit in self.open if visit not in over]
        for visit in sorted(over, key=lambda visit: (visit.rows[0].time, visit.number)):
            values = [row.values[2] for row in visit.rows]
            start, end = visit.rows[0].time, visit.rows[0].time + self.length
            made = (len(values), sum(values), min(values), float(np.median(values)))
            stimulus = max(row.stimulus for row in visit.rows)
            self.leaves.append(tuple(map(repr, (end - 1, stimulus, *visit.key, start, end, *made))))


@pytest.mark.parametrize("length", [1, 6, 30])
@pytest.mark.parametrize("above", [-20, 0, 7])
@given(segments=streams([VALUES]), cut=chance)
def test_windows_that_rows_open_equal_literal_ones(
    length: int, above: int, segments: list[Segment], cut: Random
) -> None:
    where = bound(sw.col("n") > above, pa.int64())
    step = replace(STEP, window=OpenedBy(where, length))
    literal = LiteralOpenings(step, above=above)
    expected = literal.run(segments)
    machine = make_operator(step)
    assert run(machine, reads_of(segments, [ROWS], cut)) == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.rows_held == 0


def rows_at(times: Sequence[int], areas: Sequence[int] | None = None) -> Batch:
    return batch_of(list(times), {"area": np.array(areas or [1] * len(times))})


def visits(batch: Batch | None) -> list[tuple[int, ...]]:
    """Return (area, start, end, rows) of what left."""
    if batch is None:
        return []
    names = ("area", "window_start", "window_end", "rows")
    return list(zip(*(batch.columns[name].tolist() for name in names), strict=True))


@given(
    rows=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), min_size=1, max_size=30),
    gap=st.none() | st.integers(1, 12),
    order=chance,
)
def test_the_order_of_arrival_within_the_slack_does_not_show(
    rows: list[tuple[int, int]], gap: int | None, order: Random
) -> None:
    expected: list[list[int]] = []  # first, until, rows
    for time, own in sorted(rows):
        if not expected or time > expected[-1][1]:
            expected.append([time, 0, 0])
        expected[-1][1:] = max(expected[-1][1], time + (gap or own)), expected[-1][2] + 1
    order.shuffle(rows)
    window = Session(gap) if gap else Session(None, bound(sw.col("gap"), pa.int64()))
    machine = make_operator(replace(COUNT, window=window))
    for time, own in rows:
        late = batch_of([time], {"area": np.array([1]), "gap": np.array([own])})
        assert machine.work(gate_read([None], [late], START_NS, 0, START_NS), 0)[0] is None
    left = machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0).rows
    assert sorted(visits(left)) == [(1, *each) for each in expected]


def read(batch: Batch | None, watermark: int, late: Batch | None = None) -> Any:
    return gate_read([batch], [late], watermark, 0, watermark)


def test_a_session_leaves_once_no_row_within_its_gap_can_come() -> None:
    machine = make_operator(COUNT)
    assert visits(machine.work(read(rows_at([1, 6, 6, 20]), 11), 0).rows) == []
    assert visits(machine.work(read(None, 12), 0).rows) == [(1, 1, 11, 3)]
    assert machine.rows_held == 1
    assert visits(machine.work(read(None, END_NS), 0).rows) == [(1, 20, 25, 1)]


def test_a_late_row_makes_one_session_of_two() -> None:
    machine = make_operator(COUNT)
    machine.work(read(rows_at([1, 10]), 4), 0)
    machine.work(read(None, 4, rows_at([5])), 0)
    assert visits(machine.work(read(None, END_NS), 0).rows) == [(1, 1, 15, 3)]


def test_a_row_is_late_where_its_own_session_would_have_closed() -> None:
    machine = make_operator(replace(COUNT, keeps_late=True))
    machine.work(read(rows_at([30]), 30), 0)
    result = machine.work(read(None, 30, rows_at([20, 24, 25])), 0)
    assert result.late_dropped == 2
    assert [
        (late.batch.event_time_ns.tolist(), late.late_by_ns.tolist()) for late in result.late
    ] == [([20, 24], [5, 1])]
    assert visits(machine.work(read(None, END_NS), 0).rows) == [(1, 25, 35, 2)]


def test_everything_leaves_at_the_end_whatever_the_watermark_was() -> None:
    machine = make_operator(replace(COUNT, window=Everything()))
    year_ns = 365 * 86_400 * 10**9
    assert machine.work(read(rows_at([-year_ns, 0, 0], [1, 1, 2]), 0), 0).rows is None
    assert machine.work(read(rows_at([200 * year_ns // 3]), 200 * year_ns // 3), 0).rows is None
    left = machine.work(read(None, END_NS), 0).rows
    assert visits(left) == [(1, -year_ns, 200 * year_ns // 3, 3), (2, 0, 0, 1)]
    assert left is not None
    assert left.event_time_ns.tolist() == [LATEST_NS] * 2


@given(segments=streams([VALUES]), cut=chance)
def test_intervals_that_leave_together_are_worked_off_in_blocks(
    segments: list[Segment], cut: Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_machine, "_ENTRIES_AT_ONCE", 3)
        leaves = run(make_operator(STEP), reads_of(segments, [ROWS], cut))
    assert leaves == LiteralSessions(STEP).run(segments)


def test_keys_that_left_are_forgotten() -> None:
    machine: Any = make_operator(COUNT)
    for number in range(300):
        areas = list(range(20 * number, 20 * number + 20))
        machine.work(read(rows_at([10 * number] * 20, areas), 10 * number), 0)
    assert len(machine._keys) < 3_000
    assert machine.rows_held == 20


def test_a_sum_that_does_not_fit_names_step_session_and_key() -> None:
    schema = COUNT.schema.remove(3).append(pa.field("x", pa.int64()))
    step = replace(COUNT, schema=schema, aggregates={"x": Aggregate("sum", "n")})
    batch = batch_of([1, 2], {"area": [7, 7], "n": [2**62, 2**62]})
    with pytest.raises(
        OperatorError, match=r"'visits'(.|\n)*does not fit(.|\n)*of key {'area': 7}"
    ):
        make_operator(step).work(read(batch, END_NS), 0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"close": sw.closing.ignore()}, "close=.*omit close=, or write tumbling"),
        ({"drift": "5ms"}, "drift='5ms' is for windows that all keys share"),
        ({"late": "correct"}, "late='correct' is for windows that all keys share"),
        ({"combine": "anywhere"}, "combine='anywhere' is for"),
    ],
)
def test_options_of_numbered_windows_are_refused(options: Any, says: str) -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(SettingError, match=f"step 'visits': {says}"):
        rows.aggregate(by="k", window=sw.session("5s"), n=sw.count(), name="visits", **options)
    opened = sw.opened_by(sw.col("k") > 1, "5s")
    with pytest.raises(SettingError, match=r"and window=opened_by\(…\) follows"):
        rows.aggregate(by="k", window=opened, n=sw.count(), **options)


@pytest.mark.parametrize(
    ("size", "every", "says"),
    [
        (0, None, "both must be at least 1"),
        (3, 0, "both must be at least 1"),
        (3, 4, "rows between the windows would be lost"),
        (5_000, 1, "puts each row in 5,000 windows"),
        (10**30, None, "for all rows of a key write everything"),
    ],
)
def test_numbers_of_rows_have_a_range(size: int, every: int | None, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        sw.rows(size, every=every)


def test_what_opens_a_window_is_true_or_false_and_has_a_length() -> None:
    with pytest.raises(SettingError, match="opened_by length"):
        sw.opened_by(sw.col("k") > 1, "0s")
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(TypeMismatch, match=r"step 'visits': opened_by .* must be true or false"):
        rows.aggregate(window=sw.opened_by(sw.col("k") + 1, "5s"), n=sw.count(), name="visits")
    with pytest.raises(ColumnError, match="speed"):
        rows.aggregate(window=sw.opened_by(sw.col("speed") > 1, "5s"), n=sw.count())


@pytest.mark.parametrize("gap", [0, -1, None, 2**62])
def test_a_gap_that_is_no_length_of_time_ends_the_job_with_its_row(gap: int | None) -> None:
    table = pa.table({"t": [1, 2], "k": [7, 8], "gap": pa.array([5, gap], pa.int64())})
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table(table), event_time="t")
    rows.aggregate(by="k", window=sw.session(sw.col("gap")), n=sw.count(), name="visits").sink(
        "out", sw.collect_sink()
    )
    with pytest.raises(
        sw.SlackwaterError, match=r"step 'visits': the gap of session (.|\n)*'k': 8"
    ):
        simulated(flow)


def test_a_gap_by_row_is_a_duration_or_whole_nanoseconds() -> None:
    table = pa.table({"t": [1], "k": [1.0], "gap": pa.array([5], pa.duration("s"))})
    rows = sw.Dataflow("f").source("rows", sw.table(table), event_time="t")
    made = rows.aggregate(window=sw.session(sw.col("gap")), n=sw.count())
    assert 'until no row has come for col("gap")' in made.flow.explain()
    with pytest.raises(TypeMismatch, match="must be a duration, or whole nanoseconds"):
        rows.aggregate(window=sw.session(sw.col("k")), n=sw.count())
    with pytest.raises(ColumnError, match="gpa"):
        rows.aggregate(window=sw.session(sw.col("gpa")), n=sw.count())


def test_a_gap_is_more_than_zero_and_a_window_is_a_window() -> None:
    with pytest.raises(SettingError, match="session gap"):
        sw.session("0s")
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(TypeMismatch, match=r"rows\(100\), opened_by\(.*\) or everything\(\)"):
        rows.aggregate(window="5s", n=sw.count())  # type: ignore[arg-type]
