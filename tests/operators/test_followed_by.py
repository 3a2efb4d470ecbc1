"""`followed_by`: as literal as can be; and whatever clocks were off by, no match is lost."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, READY_ONLY, batch_of
from slackwater.runtime.model.row_marks import UNCERTAIN
from slackwater.runtime.operators.followed_by.step import FollowedByStep
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import Row, Segment, any_row, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.rows import bound as bound_to
from tests.support.told import gate_read

ROWS = pa.schema({"line": pa.string(), "what": pa.int64(), "n": pa.int64(), "off": pa.int64()})
VALUES = any_row(["20", "26", None], [0, 1, 1, 2, 3], [0], [0, 0, 1, 2, 90])
STEP = FollowedByStep(
    name="jumps",
    inputs=("rows",),
    schema=pa.schema(
        {
            "line": pa.string(),
            "first_n": pa.int64(),
            "then_n": pa.int64(),
            "certain": pa.bool_(),
        }
    ),
    keys=("line",),
    first=bound_to((col("what") == 1) | (col("what") == 3), pa.int64()),
    then=bound_to(col("what") >= 2, pa.int64()),
    within_ns=9,
    release=READY_ONLY,
    drift=Drift(2),
)
PLAIN = replace(STEP, drift=None, schema=STEP.schema.remove(3))
DRIFTS = pytest.mark.parametrize("drift", [Drift(0), Drift(2), Drift(4), Drift(2, "off")], ids=str)


class Match(NamedTuple):
    first: int
    then: int
    certain: bool


def numbered(segments: list[Segment]) -> list[Row]:
    """Return the rows in order, each with its number in a column."""
    rows = [row for one in segments for row in one.rows]
    return [replace(row, values=(*row.values[:2], n, row.values[3])) for n, row in enumerate(rows)]


def stream_of(rows: list[Row]) -> list[Segment]:
    return [Segment([], rows, rows[-1].time if rows else 0, 0)]


def bound(drift: Drift, row: Row) -> int:
    return drift.most_ns if drift.column is None else min(row.values[3], drift.most_ns)


def is_surely_before(drift: Drift, one: Row, other: Row) -> bool:
    off = bound(drift, one) + bound(drift, other)
    if off == 0:
        return one.values[2] < other.values[2]  # in the order of the stream
    return one.time + off < other.time


def literal(drift: Drift, rows: list[Row]) -> list[Match]:
    """Return all matches that there may be, in the order in which they leave."""
    found = []
    for first in (row for row in rows if row.values[1] in (1, 3) and row.values[0]):
        thens = [row for row in rows if row.values[1] >= 2 and row.values[0] == first.values[0]]
        behind = [row for row in thens if is_surely_before(drift, first, row)]
        for then in thens:
            off, apart = bound(drift, first) + bound(drift, then), then.time - first.time
            if then is first or is_surely_before(drift, then, first):
                continue
            if any(is_surely_before(drift, one, then) for one in behind):
                continue
            if apart - off <= STEP.within_ns:
                is_sure = then in behind and apart + off <= STEP.within_ns
                found.append(Match(first.values[2], then.values[2], is_sure))
    return sorted(found, key=lambda one: (max(one[:2]), one.then, one.first))


def matches(step: FollowedByStep, rows: list[Row], cut: Random | None = None) -> list[Match]:
    """Return what leaves; checks what all that leaves has in common."""
    by_number = {row.values[2]: row for row in rows}
    found = []
    machine = make_operator(step)
    for time, stimulus, line, first, then, *certain in run(
        machine, reads_of(stream_of(rows), [ROWS], cut)
    ):
        pair = by_number[int(first)], by_number[int(then)]
        assert {repr(row.values[0]) for row in pair} == {line}
        assert int(time) == max(row.time for row in pair)
        assert int(stimulus) == max(row.stimulus for row in pair)
        found.append(Match(int(first), int(then), certain in ([], ["True"])))
    assert machine.rows_held == 0
    return found


@DRIFTS
@given(segments=streams([VALUES], late=False), cut=chance)
def test_it_finds_what_a_literal_one_does_however_the_rows_are_cut(
    drift: Drift, segments: list[Segment], cut: Random
) -> None:
    rows = numbered(segments)
    assert matches(replace(STEP, drift=drift), rows, cut) == literal(drift, rows)


@given(segments=streams([VALUES], late=False), cut=chance)
def test_without_drift_every_first_event_has_the_first_one_behind_it(
    segments: list[Segment], cut: Random
) -> None:
    rows = numbered(segments)
    expected = []
    for first in rows:
        behind = [
            row
            for row in rows[first.values[2] + 1 :]
            if row.values[1] >= 2 and row.values[0] == first.values[0]
        ]
        if first.values[1] in (1, 3) and first.values[0] and behind:
            (then, *_) = behind
            if then.time - first.time <= STEP.within_ns:
                expected.append(Match(first.values[2], then.values[2], certain=True))
    assert sorted(matches(PLAIN, rows, cut)) == sorted(expected)
    assert sorted(matches(replace(STEP, drift=Drift(0)), rows, cut)) == sorted(expected)


@given(segments=streams([VALUES], late=False), cut=chance)
def test_without_drift_it_is_a_pattern_that_skips_no_follower(
    segments: list[Segment], cut: Random
) -> None:
    rows = numbered(segments)
    flow = sw.Dataflow("same")
    table = pa.table([pa.array([], field.type) for field in ROWS], schema=ROWS)
    stream = flow.source(
        "rows",
        sw.table(table.append_column("ts", pa.array([], pa.int64()))),
        event_time="ts",
        time_unit="ns",
    )
    first, then = (
        sw.patterns.event(name, where=predicate)
        for name, predicate in (("first", PLAIN.first), ("then", PLAIN.then))
    )
    built = stream.key_by("line").pattern(
        sw.patterns.seq(first, then),
        within="9ns",
        selection="each",
        consumption="zero",
        skip="next",
    )
    names = ["first_n", "then_n"]
    step = flow.steps[built.name].pruned(frozenset(names), keeps_late=False)
    machine = make_operator(replace(step, release=READY_ONLY))
    at = [2 + step.schema.names.index(name) for name in names]
    found = [
        Match(*(int(row[place]) for place in at), certain=True)
        for row in run(machine, reads_of(stream_of(rows), [ROWS], cut))
    ]
    assert sorted(found) == sorted(matches(PLAIN, rows, cut))


@DRIFTS
@given(segments=streams([VALUES], late=False), clocks=chance)
def test_whatever_clocks_were_off_by_no_match_is_lost_and_what_is_certain_is_so(
    drift: Drift, segments: list[Segment], clocks: Random
) -> None:
    rows = numbered(segments)
    true = [(row.time + clocks.uniform(-1, 1) * bound(drift, row), row.values[2]) for row in rows]
    told = {one[:2]: one.certain for one in matches(replace(STEP, drift=drift), rows)}
    for first in rows:
        behind = sorted(
            (true[row.values[2]], row.values[2])
            for row in rows
            if row.values[1] >= 2
            and row.values[0] == first.values[0]
            and true[row.values[2]] > true[first.values[2]]
        )
        if first.values[1] not in (1, 3) or not first.values[0] or not behind:
            continue
        (at, _), then = behind[0]
        if at - true[first.values[2]][0] <= STEP.within_ns:
            assert (first.values[2], then) in told, "a match is lost"
    for (one, other), certain in told.items():
        if certain:
            assert true[one] < true[other], "a certain match is the other way round"
            assert true[other][0] - true[one][0] <= STEP.within_ns + 1e-9


def found_at(times: list[int], what: list[int], drift: Drift | None) -> list[tuple[Any, ...]]:
    """Return (time of the first, time of the other, certain) of each match."""
    step = PLAIN if drift is None else replace(STEP, drift=drift)
    batch = batch_of(
        times, {"line": ["a"] * len(times), "what": what, "n": times, "off": [0] * len(times)}
    )
    made = make_operator(step).work(gate_read([batch], [None], END_NS, 0, END_NS), now_ns=0).rows
    if made is None:
        return []
    columns = [made.columns[name].tolist() for name in step.schema.names if name != "line"]
    return [*zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("apart", "most", "certain"),
    [(5, 2, True), (4, 2, False), (0, 2, False), (-4, 2, False), (-5, 2, None), (-1, 0, None)],
)
def test_pseudocode_3_1(apart: int, most: int, certain: bool | None) -> None:
    """[thesis] §3.2.3.2: e1 → e2 confirmed if further apart than T_a, else uncertain; e2 → e1 too.

    T_a is twice the bound. With none at all there is no doubt about the order.
    """
    times, what = ([0, apart], [1, 2]) if apart >= 0 else ([apart, 0], [2, 1])
    expected = [] if certain is None else [(0, apart, certain)]
    assert found_at(times, what, Drift(most)) == expected


def test_the_matches_that_the_machine_draws() -> None:
    times, what = [1, 4, 5, 8], [1, 2, 1, 2]
    assert found_at(times, what, None) == [(1, 4), (5, 8)]
    assert found_at(times, what, Drift(1)) == [(1, 4, True), (5, 4, False), (5, 8, True)]


def test_a_match_that_is_not_certain_carries_the_mark() -> None:
    batch = batch_of(
        [0, 1, 20, 29], {"line": ["a"] * 4, "what": [1, 2, 1, 2], "n": [0] * 4, "off": [0] * 4}
    )
    made = make_operator(STEP).work(gate_read([batch], [None], END_NS, 0, END_NS), now_ns=0).rows
    assert made is not None
    assert made.marks is not None
    assert made.marks.tolist() == [UNCERTAIN.bit] * 2  # 9 apart: within 9, but for the clocks


@pytest.mark.parametrize("wanted", [["then_n"], ["certain"], ["line", "first_n"]])
def test_columns_that_nobody_needs_are_not_made(wanted: list[str]) -> None:
    step = STEP.pruned(frozenset(wanted), keeps_late=False)
    batch = batch_of([0, 5], {"line": ["a"] * 2, "what": [1, 2], "n": [7, 8]})
    made = make_operator(step).work(gate_read([batch], [None], END_NS, 0, END_NS), now_ns=0).rows
    assert made is not None
    assert [*made.columns] == [name for name in STEP.schema.names if name in wanted]


def test_late_rows_are_counted_and_told_and_in_no_match() -> None:
    machine = make_operator(replace(STEP, keeps_late=True))
    columns = {"line": ["a"], "n": [0], "off": [0]}
    first = batch_of([10], {**columns, "what": [1]})
    machine.work(gate_read([first], [None], 12, 0, 0), now_ns=0)
    late = batch_of([11], {**columns, "what": [2]})
    result = machine.work(gate_read([None], [late], 12, 0, 0), now_ns=0)
    assert leaves_of([result.rows]) == []
    assert machine.late_dropped == result.late_dropped == 1
    (told,) = result.late
    assert told.late_by_ns.tolist() == [1]
    assert told.is_dropped.all()


def test_events_are_held_for_no_longer_than_they_may_be_in_a_match() -> None:
    machine = make_operator(STEP)
    columns = {"line": ["a"] * 3, "what": [1, 2, 1], "n": [0] * 3, "off": [0] * 3}
    batch = batch_of([0, 10, 12], columns)
    held = []
    for watermark in (12, 14, 15, 25, 26):
        machine.work(gate_read([batch], [None], watermark, 0, watermark), now_ns=0)
        held.append(machine.rows_held)
        batch = None
    # 0 until 9 + 2 + 2 behind it, 10 as long as a later one may be before it, 12 as 0.
    assert held == [3, 2, 1, 1, 0]
    many = batch_of(
        np.arange(100, 300),
        {"line": ["a"] * 200, "what": [1, 2] * 100, "n": [0] * 200, "off": [0] * 200},
    )
    machine.work(gate_read([many], [None], 300, 0, 300), now_ns=0)
    assert machine.rows_held <= 6


def test_more_events_that_wait_than_may_be_held_end_the_job() -> None:
    one = make_operator(PLAIN, most_kept_rows=3)
    columns: dict[str, Any] = {"line": ["20"] * 4, "what": [1] * 4, "n": [0] * 4, "off": [0] * 4}
    some = {
        name: np.array(values, dtype=object if name == "line" else None)
        for name, values in columns.items()
    }
    with pytest.raises(OperatorError, match=r"'jumps': 4 events wait .* most_kept_rows=3"):
        one.work(gate_read([batch_of([0, 1, 2, 3], some)], [None], 3, 0, 3), 0)
