"""Rows that count in an interval, and came too late for another, are late rows, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.model import START_NS, GateRead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.interval_words import OpenedBy, Session
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import Row, Segment, reads_of, streams
from tests.operators.test_intervals import COUNT, OWN_GAPS, ROWS, STEP, VALUES, rows_at
from tests.support.chance import chance
from tests.support.rows import bound
from tests.support.told import gate_read

Late = tuple[Any, ...]
"""Time and columns of a row, and whether it counts nowhere."""
Interval = tuple[Any, int, int]
"""Key, and first and last time of a row that would belong to it."""
LATE = replace(STEP, keeps_late=True)


def late_rows(step: IntervalStep, reads: Iterator[GateRead], *, cut: Random) -> list[Late]:
    """Return late rows in the order in which they came; the machine is restored now and then."""
    machine, rows = make_operator(step), list[Late]()
    for read in reads:
        for late in machine.work(read, now_ns=0).late:
            columns = (late.batch.columns[name] for name in ROWS.names)
            values = [own if isinstance(own, list) else own.tolist() for own in columns]
            times, dropped = late.batch.event_time_ns.tolist(), late.is_dropped.tolist()
            assert (late.late_by_ns > 0).all()
            rows += zip(times, *values, dropped, strict=True)
        if cut.random() < 0.3:
            again = make_operator(step)
            restore(again, save(machine))
            machine = again
    return rows


def known_keys(machine: Operator) -> int:
    return len(save(machine)["keys"]["part"]["numbers"]["values"])


class LiteralSessions:
    """Sessions as intervals, a row at a time: which rows are late, and which may be.

    Attributes:
        late: late rows, which reach an interval that has left, or count nowhere.
        perhaps: rows that reach an open interval, a row of which is late.
    """

    def __init__(self, gap: int | None) -> None:
        self.gap = gap
        self.left: list[Interval] = []
        self.open: list[tuple[Any, int, int, bool]] = []
        self.late: list[Late] = []
        self.perhaps: list[Late] = []

    def run(self, segments: Sequence[Segment]) -> None:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row, watermark)
            watermark = segment.watermark
            self.left += [own[:3] for own in self.open if own[2] < watermark]
            self.open = [own for own in self.open if own[2] >= watermark]

    def _take(self, row: Row, watermark: int) -> None:
        key, time = row.values[:2], row.time
        until = time + (abs(row.values[2]) + 1 if self.gap is None else self.gap)
        near = [own for own in self.open if own[0] == key and own[1] <= until and time <= own[2]]
        if not near and until < watermark:
            self.late.append((time, *row.values, True))
            return
        has_missed = any(k == key and a <= until and time <= b for k, a, b in self.left)
        reaches_late = any(own[3] for own in near)
        if has_missed:
            self.late.append((time, *row.values, False))
        elif reaches_late:
            self.perhaps.append((time, *row.values, False))
        first = min([time, *(own[1] for own in near)])
        last = max([until, *(own[2] for own in near)])
        self.open = [own for own in self.open if own not in near]
        self.open.append((key, first, last, has_missed or reaches_late))


@pytest.mark.parametrize("gap", [1, 5, 30, None])
@given(segments=streams([VALUES]), cut=chance)
def test_rows_that_missed_a_session_are_late_though_they_count(
    gap: int | None, segments: list[Segment], cut: Random
) -> None:
    literal = LiteralSessions(gap)
    literal.run(segments)
    step = replace(LATE, window=OWN_GAPS if gap is None else Session(gap))
    late = late_rows(step, reads_of(segments, [ROWS], cut), cut=cut)
    more = list(late)
    for row in literal.late:
        more.remove(row)
    for row in more:
        literal.perhaps.remove(row)


@pytest.mark.parametrize("length", [1, 6, 30])
@given(segments=streams([VALUES]), cut=chance)
def test_rows_that_missed_a_window_that_a_row_opens_are_late(
    length: int, segments: list[Segment], cut: Random
) -> None:
    opened, left, watermark = list[tuple[Any, int]](), list[tuple[Any, int]](), START_NS
    expected = list[Late]()
    for segment in segments:
        for row in (*segment.late, *segment.rows):
            key, fits, is_late = row.values[:2], row.values[2] > 0, row.time < watermark
            counts = [k == key and 0 <= row.time - start < length for k, start in opened]
            misses = [k == key and 0 <= row.time - start < length for k, start in left]
            if is_late and not any(counts):
                expected.append((row.time, *row.values, True))
            elif any(misses) or (is_late and fits):
                expected.append((row.time, *row.values, False))
            if fits and not is_late:
                opened.append((key, row.time))
        watermark = segment.watermark
        left += [own for own in opened if own[1] + length <= watermark]
        opened = [own for own in opened if own[1] + length > watermark]
    step = replace(LATE, window=OpenedBy(bound(sw.col("n") > 0, pa.int64()), length))
    assert sorted(late_rows(step, reads_of(segments, [ROWS], cut), cut=cut), key=repr) == sorted(
        expected, key=repr
    )


def test_ends_of_keys_are_known_until_no_row_can_come() -> None:
    machine = make_operator(replace(COUNT, window=Session(5), keeps_late=True))
    keys = list(range(5_000))
    machine.work(gate_read([rows_at([0] * len(keys), keys)], [None], 10, 0, 0), 0)
    machine.work(gate_read([rows_at([11], [7])], [None], 11, 0, 0), 0)
    (late,) = machine.work(gate_read([None], [rows_at([4, 6], [8, 7])], 11, 0, 0), 0).late
    assert late.batch.columns["area"].tolist() == [8]  # nothing has left up to 6
    (late,) = machine.work(gate_read([None], [rows_at([5], [7])], 11, 0, 0), 0).late
    assert (late.late_by_ns.tolist(), late.is_dropped.tolist()) == ([1], [False])
    assert known_keys(machine) == len(keys)
    machine.work(gate_read([None], [None], 30, 0, 30), 0)
    assert known_keys(machine) == 0
