"""Joins with `how=` equal a literal one, a row at a time, whatever the cut and the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, READY_ONLY, START_NS, Batch, batch_of
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.join import index as join_index
from slackwater.runtime.operators.join import machine as join
from slackwater.runtime.operators.join.how import How
from slackwater.runtime.operators.join.machine import JoinMachine
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.operators.join.unmatched import InOrder
from tests.operators.literal import Row, Segment, any_row, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.told import gate_read

LEFT = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.int64()})
RIGHT = pa.schema({"area": pa.int64(), "line": pa.string(), "flow": pa.float64()})
PAIRS = pa.schema(
    {"area": pa.int64(), "line": pa.string(), "delay": pa.int64(), "flow": pa.float64()}
)
BY_AREA = JoinStep(
    name="jams",
    inputs=("buses", "loops"),
    schema=PAIRS,
    left_on=("area",),
    right_on=("area",),
    within_ns=5,
    where=None,
    right_names={"flow": "flow"},
    release=READY_ONLY,
)
SCHEMAS = [LEFT, RIGHT]
SIDE = any_row([1, 2, 70], ["20", "26", None], range(10))
PORTS = [SIDE, [(*row[:2], float(row[2])) for row in SIDE]]
HOWS: tuple[How, ...] = ("left", "right", "outer", "semi", "anti", "inner")


def step_of(how: How, **changes: Any) -> JoinStep:
    schema = LEFT if how in ("semi", "anti") else PAIRS
    return replace(BY_AREA, **{"how": how, "schema": schema, **changes})


def by_line(how: How, **changes: Any) -> JoinStep:
    """The join whose key may be null."""
    return step_of(how, left_on=("area", "line"), right_on=("area", "line"), **changes)


@dataclass
class Held:
    row: Row
    values: dict[str, Any]
    is_matched: bool = False


@dataclass
class LiteralOuter:
    """A `JoinStep` with any `how`, a row at a time."""

    step: JoinStep
    held: list[list[Held]] = field(default_factory=lambda: [[], []])
    waiting: list[tuple[int, int, tuple[Any, ...]]] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)
    gone: int = START_NS
    horizon: int = START_NS
    late_dropped: int = 0
    missed: int = 0

    def run(self, segments: Sequence[Segment]) -> list[Any]:
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row)
            passed = segment.frontier if self.step.keep == "promise" else segment.watermark
            self._advance(passed - self.step.within_ns, passed - self.step.delay_ns)
        self._advance(END_NS, END_NS)
        return self.leaves

    def _take(self, row: Row) -> None:
        alone = row.port in self.step.alone
        values = dict(zip(SCHEMAS[row.port].names, row.values, strict=True))
        if row.time < max(self.horizon, self.gone if alone else START_NS):
            self.late_dropped += 1
            return
        own = Held(row, values)
        key = [values[name] for name in (self.step.left_on, self.step.right_on)[row.port]]
        if None in key:
            if alone:
                self.waiting.append((row.time, 1, self._alone(own)))
            return
        before, after = self.step.between_ns or (self.step.within_ns,) * 2
        oldest_partner = row.time - (after if row.port else before)
        self.missed += 1 - row.port in self.step.alone and oldest_partner < self.gone
        for other in self.held[1 - row.port]:
            self._meet(own, other)
        self.held[row.port].append(own)

    def _meet(self, own: Held, other: Held) -> None:
        """Pair two rows if they are a pair, and none of them has left alone."""
        step = self.step
        left, right = (own, other) if own.row.port == 0 else (other, own)
        before, after = step.between_ns or (step.within_ns, step.within_ns)
        if not -before <= right.row.time - left.row.time <= after:
            return
        keys = zip(step.left_on, step.right_on, strict=True)
        if any(left.values[one] != right.values[two] for one, two in keys):
            return
        pair = {**right.values, **left.values}
        if step.where is not None and not pair["delay"] * pair["flow"] > 12:
            return
        sides = {0: left, 1: right}
        if any(sides[side].row.time < self.gone for side in step.alone):
            return
        had_partner, left.is_matched, right.is_matched = left.is_matched, True, True
        times = max(left.row.time, right.row.time), max(left.row.stimulus, right.row.stimulus)
        found = (*times, *(pair[name] for name in step.schema.names))
        if step.how in ("inner", "semi"):
            if step.how == "inner" or not had_partner:
                self._leave(found)
        elif step.how != "anti":
            self.waiting.append((times[0], 0, found))

    def _alone(self, own: Held) -> tuple[Any, ...]:
        keys = dict(zip(self.step.left_on, self.step.right_on, strict=True))
        values: Mapping[str, Any] = own.values
        if own.row.port == 1:
            values = {name: own.values[keys[name]] for name in keys}
            values = {**values, "flow": own.values["flow"]}
        columns = (values.get(name) for name in self.step.schema.names)
        return (own.row.time, own.row.stimulus, *columns)

    def _advance(self, horizon: int, gone: int) -> None:
        self.gone = max(self.gone, gone)
        for side in self.step.alone:
            self.waiting += [
                (own.row.time, 2 + side, self._alone(own))
                for own in self.held[side]
                if not own.is_matched
            ]
        leave = sorted((one for one in self.waiting if one[0] < self.gone), key=lambda one: one[:2])
        for _, _, row in leave:
            self._leave(row)
        # Rows that may still find a partner are looked at again.
        self.waiting = [one for one in self.waiting if one[0] >= self.gone and one[1] < 2]
        self.horizon = max(self.horizon, horizon)
        for side in (0, 1):
            least = self.horizon
            self.held[side] = [own for own in self.held[side] if own.row.time >= least]
            if side in self.step.alone:
                for own in self.held[side]:
                    own.is_matched |= own.row.time < self.gone  # it has left

    def _leave(self, row: tuple[Any, ...]) -> None:
        self.leaves.append(tuple(map(repr, row)))


def check(step: JoinStep, segments: list[Segment], cut: Random) -> None:
    literal = LiteralOuter(step)
    expected = literal.run(segments)
    machine = JoinMachine(step, most_kept_rows=10**6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "_FEW_ROWS", cut.choice([0, 2, 8]))
        patch.setattr(join_index, "_ENTRY_BITS", cut.choice([10, 58]))
        found = run(machine, reads_of(segments, SCHEMAS, cut))
    assert found == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.counts().get("missed_unmatched", 0) == (literal.missed if step.alone else 0)
    assert machine.rows_held == 0


WITHINS = st.sampled_from([None, (5, 0), (0, 5), (2, 5)])
KEEPS = st.sampled_from(["promise", "slack"])


@pytest.mark.parametrize("how", HOWS)
@given(streams(PORTS), chance, WITHINS, KEEPS)
def test_join_equals_a_literal_one_however_the_rows_are_cut(
    how: How, segments: list[Segment], cut: Random, between: Any, keep: Any
) -> None:
    check(step_of(how, between_ns=between, keep=keep), segments, cut)


@pytest.mark.parametrize("how", HOWS)
@given(streams(PORTS), chance, WITHINS, KEEPS)
def test_join_by_keys_with_nulls_and_a_predicate_equals_a_literal_one(
    how: How, segments: list[Segment], cut: Random, between: Any, keep: Any
) -> None:
    where = (col("delay") * col("flow") > 12).bound(PAIRS)
    check(by_line(how, between_ns=between, keep=keep, where=where), segments, cut)


def read(
    left: Batch | None = None, right: Batch | None = None, *, promise: int, **more: Any
) -> Any:
    watermark = more.get("watermark", promise)
    return gate_read([left, right], more.get("late", (None, None)), watermark, 0, promise)


def buses(times: list[int], areas: Sequence[int | None] = ()) -> Batch:
    columns = {"area": areas or [1] * len(times), "line": ["20"] * len(times)}
    return batch_of(times, {**columns, "delay": np.arange(len(times))})


def loops(times: list[int], areas: Sequence[int | None] = ()) -> Batch:
    columns = {"area": areas or [1] * len(times), "flow": np.arange(len(times)) * 1.0}
    return batch_of(times, columns)


def machine(how: How, **changes: Any) -> JoinMachine:
    return JoinMachine(step_of(how, **changes), most_kept_rows=10**6)


def times_of(batch: Batch | None) -> list[int]:
    return [] if batch is None else batch.event_time_ns.tolist()


def test_rows_leave_by_event_time_once_the_promise_is_past_their_reach() -> None:
    joined = machine("left")
    first = joined.work(read(buses([1, 4], [1, 2]), loops([3], [1]), promise=5), 0)
    assert (first.rows, first.promise_ns) == (None, 0)
    second = joined.work(read(promise=9), 0)
    assert (times_of(second.rows), second.promise_ns) == ([3], 4)  # 1 has a partner, 4 may have
    third = joined.work(read(right=loops([9], [2]), promise=10), 0)
    assert times_of(third.rows) == []
    assert times_of(joined.work(read(promise=END_NS), 0).rows) == [9]  # the pair of 4 and 9


def test_a_left_join_of_older_rows_waits_for_none() -> None:
    joined = machine("left", between_ns=(5, 0))
    result = joined.work(read(buses([1, 4]), loops([3, 8]), promise=9), 0)
    assert times_of(result.rows) == [1, 4]
    assert result.promise_ns == 9
    assert result.rows is not None
    flows = result.rows.columns["flow"]
    assert flows.tolist() == [None, 0.0]


def test_an_unmatched_row_has_the_stimulus_of_the_promise_that_lets_it_leave() -> None:
    joined = machine("anti")
    joined.work(read(buses([1]), promise=1), 0)
    result = joined.work(gate_read([None, None], [None, None], 20, 17, 20), 0)
    assert result.rows is not None
    assert result.rows.stimulus_time_ns.tolist() == [17]


def test_a_late_row_whose_partner_has_left_alone_is_counted_and_makes_no_pair() -> None:
    joined = machine("left", keep="slack", keeps_late=True)
    left = joined.work(read(buses([1, 8]), promise=0, watermark=8), 0)
    assert times_of(left.rows) == [1]
    late = joined.work(read(late=(None, loops([4])), promise=0, watermark=8), 0)
    assert late.rows is None
    assert joined.counts()["missed_unmatched"] == 1
    assert [row.batch.event_time_ns.tolist() for row in late.late] == [[4]]
    assert joined.late_dropped == 0  # it is held, and finds the row of 8
    assert times_of(joined.work(read(promise=END_NS), 0).rows) == [8]


def test_a_row_that_would_have_left_alone_is_late_and_leaves_nothing() -> None:
    joined = machine("left", keep="slack")
    joined.work(read(buses([9]), promise=0, watermark=9), 0)
    late = joined.work(read(late=(buses([3]), None), promise=0, watermark=9), 0)
    assert (late.rows, late.late_dropped) == (None, 1)


def test_rows_beyond_the_limit_leave_alone_and_are_counted() -> None:
    joined = JoinMachine(step_of("left"), most_kept_rows=64)
    times = list(range(200))
    result = joined.work(read(buses(times), promise=0, watermark=199), 0)
    gone = times_of(result.rows)
    assert gone == times[: len(gone)]
    assert joined.dropped_early == len(gone) > 100
    assert joined.rows_held == 200 - len(gone)


@pytest.mark.parametrize("how", ["left", "outer", "anti", "semi"])
def test_a_join_of_some_keys_goes_on_with_those_alone(how: How) -> None:
    areas = [1, 2, None, 3, 2, 1]
    whole, part = machine(how), machine(how)
    for joined in (whole, part):
        joined.work(read(buses([1, 2, 2, 3, 4, 5], areas), loops([3, 4], [1, 3]), promise=5), 0)
    codes = part._keys.codes([np.array([2, 3])], 2)
    keep_keys(part, np.unique(codes))
    rows = [one.work(read(promise=END_NS), 0).rows for one in (whole, part)]
    kept = [row for row in leaves_of([rows[0]]) if row[2] in ("2", "3")]
    assert leaves_of([rows[1]]) == kept
    assert kept or how == "semi"


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5)), st.integers(0, 10))
def test_rows_in_order_leave_by_time_and_then_as_they_came(
    parts: list[list[int]], until: int
) -> None:
    waiting, came = InOrder(), 0
    rows: list[tuple[int, int]] = []
    for times in parts:
        places = np.arange(came, came + len(times))
        came += len(times)
        rows += zip(times, places.tolist(), strict=True)
        waiting.add(batch_of(times, {"place": places}).with_(codes=places))
    gone = [
        pair
        for batch in waiting.until(until)
        for pair in zip(batch.event_time_ns.tolist(), batch.columns["place"].tolist(), strict=True)
    ]
    expected = sorted((time, place) for time, place in rows if time < until)
    assert sorted(gone, key=lambda pair: pair[0]) == expected
    assert len(waiting) == came - len(gone)


def test_matches_of_a_snapshot_are_those_of_its_moment() -> None:
    joined, again = machine("anti"), machine("anti")
    joined.work(read(buses([1]), promise=1), 0)
    state = save(joined)
    joined.work(read(right=loops([2]), promise=2), 0)
    restore(again, from_plain(to_plain(state)))
    assert times_of(joined.work(read(promise=END_NS), 0).rows) == []
    assert times_of(again.work(read(promise=END_NS), 0).rows) == [1]
