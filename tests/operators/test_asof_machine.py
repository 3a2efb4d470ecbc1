"""As-of joins equal a literal one, whatever the cut, and hold no more rows than they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import END_NS, READY_ONLY, START_NS, Batch, batch_of
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.operators.join.asof import AsofStep, Direction
from slackwater.runtime.operators.join.asof_machine import AsofMachine
from tests.operators.literal import Row, Segment, any_row, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.told import gate_read

LEFT = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.int64()})
RIGHT = pa.schema({"area": pa.int64(), "line": pa.string(), "flow": pa.float64()})
STEP = AsofStep(
    name="prices",
    inputs=("trades", "quotes"),
    schema=pa.schema(
        {
            "area": pa.int64(),
            "line": pa.string(),
            "delay": pa.int64(),
            "line_right": pa.string(),
            "flow": pa.float64(),
        }
    ),
    left_on=("area",),
    right_on=("area",),
    tolerance_ns=None,
    direction="backward",
    how="left",
    strict=False,
    right_names={"line": "line_right", "flow": "flow"},
    release=READY_ONLY,
)
BY_LINE = replace(
    STEP,
    schema=pa.schema([one for one in STEP.schema if one.name != "line_right"]),
    left_on=("area", "line"),
    right_on=("area", "line"),
    right_names={"flow": "flow"},
)
SCHEMAS = [LEFT, RIGHT]
SIDE = any_row([1, 2, 70], ["20", "26", None], range(10))
PORTS = [SIDE, [(*row[:2], float(row[2])) for row in SIDE]]


@dataclass
class LiteralAsof:
    """An `AsofStep`, a row at a time; it forgets no right row."""

    step: AsofStep
    left: list[Row] = field(default_factory=list)
    right: list[Row] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)
    gone: int = START_NS
    late_dropped: int = 0

    def run(self, segments: Sequence[Segment]) -> list[Any]:
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row)
            passed = segment.frontier if self.step.keep == "promise" else segment.watermark
            self._leave(passed - self.step.delay_ns)
        self._leave(END_NS)
        return self.leaves

    def _take(self, row: Row) -> None:
        step = self.step
        oldest = self.gone
        if row.port == 1 and step.direction != "forward":
            oldest = START_NS
            if step.tolerance_ns is not None and self.gone > START_NS:
                oldest = self.gone - step.tolerance_ns
        if row.time < oldest:
            self.late_dropped += 1
        elif row.port == 0:
            self.left.append(row)
        else:
            self.right.append(row)

    def _leave(self, gone: int) -> None:
        if gone <= self.gone:
            return
        self.gone = gone
        leave = sorted((row for row in self.left if row.time < gone), key=lambda row: row.time)
        self.left = [row for row in self.left if row.time >= gone]
        for row in leave:
            self._answer(row, self._nearest(row))

    def _nearest(self, row: Row) -> Row | None:
        step, key = self.step, self._key(row)
        near = [
            (other.time - row.time, place, other)
            for place, other in enumerate(self.right)
            if None not in key and self._key(other) == key
            if step.tolerance_ns is None or abs(other.time - row.time) <= step.tolerance_ns
            if not step.strict or other.time != row.time
        ]
        before = max((one for one in near if one[0] <= 0), key=lambda one: one[:2], default=None)
        after = min((one for one in near if one[0] >= 0), key=lambda one: one[:2], default=None)
        if step.direction == "nearest" and before and after:
            return before[2] if -before[0] <= after[0] else after[2]
        if step.direction == "nearest":
            before = before or after
        found = after if step.direction == "forward" else before
        return found[2] if found else None

    def _key(self, row: Row) -> list[Any]:
        values = dict(zip(SCHEMAS[row.port].names, row.values, strict=True))
        return [values[name] for name in (self.step.left_on, self.step.right_on)[row.port]]

    def _answer(self, row: Row, other: Row | None) -> None:
        if other is None and self.step.how == "inner":
            return
        values = dict(zip(LEFT.names, row.values, strict=True))
        if other is not None:
            came = dict(zip(RIGHT.names, other.values, strict=True))
            values |= {leaves: came[name] for name, leaves in self.step.right_names.items()}
        stimulus = max(row.stimulus, other.stimulus if other else 0)
        columns = (values.get(name) for name in self.step.schema.names)
        self.leaves.append(tuple(map(repr, (row.time, stimulus, *columns))))


def check(step: AsofStep, segments: list[Segment], cut: Random) -> None:
    literal = LiteralAsof(step)
    expected = literal.run(segments)
    machine = AsofMachine(step, most_kept_rows=10**6)
    assert run(machine, reads_of(segments, SCHEMAS, cut)) == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.rows_held == 0


KEEPS = st.sampled_from(["promise", "slack"])
HOWS = st.sampled_from(["left", "inner"])
WAYS: list[tuple[Direction, int | None]] = [
    ("backward", None),
    ("backward", 4),
    ("backward", 0),
    ("forward", 4),
    ("forward", 0),
    ("nearest", 4),
]


@pytest.mark.parametrize(("direction", "tolerance_ns"), WAYS)
@given(streams(PORTS), chance, KEEPS, HOWS, st.booleans())
def test_asof_equals_a_literal_one_however_the_rows_are_cut(
    direction: Direction,
    tolerance_ns: int | None,
    segments: list[Segment],
    cut: Random,
    keep: Any,
    how: Any,
    strict: bool,
) -> None:
    given = {"direction": direction, "tolerance_ns": tolerance_ns}
    step = cut.choice([STEP, BY_LINE])
    check(replace(step, keep=keep, how=how, strict=strict, **given), segments, cut)


def machine(**changes: Any) -> AsofMachine:
    return AsofMachine(replace(STEP, **changes), most_kept_rows=10**6)


def trades(times: Sequence[int], areas: Sequence[int] = ()) -> Batch:
    areas = areas or [1] * len(times)
    columns = {"area": areas, "line": ["20"] * len(times), "delay": np.arange(len(times))}
    return batch_of(times, columns)


def quotes(times: Sequence[int], areas: Sequence[int] = ()) -> Batch:
    areas = areas or [1] * len(times)
    columns = {"area": areas, "line": ["7"] * len(times), "flow": np.array(times) / 10}
    return batch_of(times, columns)


def flows(rows: Batch | None) -> list[Any]:
    return [] if rows is None else rows.columns["flow"].tolist()


def work(joined: AsofMachine, left: Any = None, right: Any = None, *, promise: int) -> Any:
    return joined.work(gate_read([left, right], [None, None], promise, 0, promise), 0)


def test_the_newest_row_at_or_before_counts_its_own_time_included() -> None:
    joined = machine()
    first = work(joined, trades([3, 5]), quotes([1, 5]), promise=5)
    assert (flows(first.rows), first.promise_ns) == ([0.1], 5)
    assert flows(work(joined, promise=6).rows) == [0.5]
    strict = machine(strict=True)
    assert flows(work(strict, trades([3, 5]), quotes([1, 5]), promise=6).rows) == [0.1, 0.1]


def test_of_rows_of_one_key_and_time_the_last_counts_and_the_first_of_those_after() -> None:
    right = quotes([2, 2])
    right.columns["flow"][:] = [7, 8]
    assert flows(work(machine(), trades([2]), right, promise=9).rows) == [8]
    after = machine(direction="forward", tolerance_ns=3)
    assert flows(work(after, trades([1]), right, promise=9).rows) == [7]


def test_of_two_rows_equally_near_the_one_before_counts() -> None:
    joined = machine(direction="nearest", tolerance_ns=5)
    result = work(joined, trades([4, 5]), quotes([2, 6]), promise=20)
    assert flows(result.rows) == [0.2, 0.6]


def test_a_row_waits_for_rows_after_it_as_long_as_the_tolerance() -> None:
    joined = machine(direction="forward", tolerance_ns=5)
    first = work(joined, trades([1]), promise=6)
    assert (first.rows, first.promise_ns) == (None, 1)
    assert flows(work(joined, None, quotes([6]), promise=7).rows) == [0.6]


@pytest.mark.parametrize("tolerance_ns", [None, 100])
def test_of_each_key_only_the_newest_row_stays(tolerance_ns: int | None) -> None:
    joined = machine(tolerance_ns=tolerance_ns)
    most = 0
    for start in range(0, 50_000, 500):
        times = list(range(start, start + 500))
        areas = [time // 50 if tolerance_ns else time % 7 for time in times]
        work(joined, None, quotes(times, areas), promise=start + 500)
        most = max(most, joined.rows_held)
        assert len(joined._right._rows) <= 2_600
    assert most <= (7 if tolerance_ns is None else 1_100)
    assert flows(work(joined, trades([50_000], [6]), promise=END_NS).rows) == [
        4999.3 if tolerance_ns is None else None
    ]


def test_rows_beyond_the_limit_leave_by_the_watermark_and_are_counted() -> None:
    joined = AsofMachine(STEP, most_kept_rows=8)
    result = joined.work(gate_read([trades(range(20)), quotes([5])], [None, None], 15, 0, 2), 0)
    assert flows(result.rows) == [None] * 5 + [0.5] * 10
    assert joined.counts() == {"dropped_early": 13}
    assert result.promise_ns == 2
    assert joined.rows_held == 5 + 1


def test_an_asof_join_of_some_keys_goes_on_with_those_alone() -> None:
    joined = machine(direction="nearest", tolerance_ns=50)
    work(joined, trades([1, 3, 8], [1, 2, 3]), quotes([1, 4, 6, 7], [1, 2, 3, 2]), promise=9)
    codes = joined._keys.codes([np.array([2, 3])], 2)
    keep_keys(joined, np.unique(codes))
    result = work(joined, promise=END_NS)
    assert leaves_of([result.rows]) == [
        ("3", "0", "2", "'20'", "1", "'7'", "0.4"),
        ("8", "0", "3", "'20'", "2", "'7'", "0.6"),
    ]
