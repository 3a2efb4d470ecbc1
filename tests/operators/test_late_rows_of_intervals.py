"""Late rows of sessions and opened windows: those that missed an interval are all in `late`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, batch_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.interval_words import (
    Everything,
    Intervals,
    OpenedBy,
    Rows,
    Session,
)
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import Row, Segment, any_row, reads_of, streams
from tests.operators.test_intervals import COUNT
from tests.support.chance import chance
from tests.support.flows import simulated
from tests.support.rows import bound
from tests.support.told import gate_read

ROWS = pa.schema({"area": pa.int64(), "n": pa.int64()})
VALUES = any_row([1, 2], range(-3, 9))
FITS = bound(sw.col("n") > 3, pa.int64())
OWN_GAPS = Session(None, bound(abs(sw.col("n")) + 1, pa.int64()))
STEP = replace(COUNT, keeps_late=True)
WINDOWS = [Session(1), Session(5), OWN_GAPS, OpenedBy(FITS, 1), OpenedBy(FITS, 9)]
EARLY = {
    "at the end": STEP,
    "early by time": replace(STEP, early_ns=4),
    "early by rows": replace(STEP, early_rows=2),
    "early, each of new rows": replace(STEP, early_ns=4, discards=True),
}

Late = tuple[int, int, int, int, bool]  # time, area, n, late by, counts nowhere


class Interval:
    """An interval of the oracle: its key, its first moment, its last moment."""

    def __init__(self, area: int, first: int, last: int) -> None:
        self.area, self.first, self.last = area, first, last


class Oracle:
    """Late rows, found one row at a time by a look at all intervals that have left."""

    def __init__(self, window: Intervals) -> None:
        self.window = window
        self.open: list[Interval] = []
        self.left: list[Interval] = []
        self.late: list[Late] = []

    def run(self, segments: Sequence[Segment]) -> list[Late]:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                done, is_dropped = self._done(row, watermark)
                if is_dropped or done > START_NS:
                    late_by = max(done - row.time, 1)
                    self.late.append((row.time, *row.values, late_by, is_dropped))
            watermark = segment.watermark
            over = [each for each in self.open if each.last < watermark]
            self.open = [each for each in self.open if each not in over]
            self.left += over
        return self.late

    def _done(self, row: Row, watermark: int) -> tuple[int, bool]:
        """Return until when the row's intervals are done, and whether it counts nowhere."""
        own = [each for each in self.left if each.area == row.values[0]]
        if isinstance(self.window, OpenedBy):
            return self._done_of_openings(row, watermark, own)
        gap = self.window.reach_ns or abs(row.values[1]) + 1
        until = row.time + gap
        near = [
            each
            for each in self.open
            if each.area == row.values[0] and each.first <= until and row.time <= each.last
        ]
        if not near and until < watermark:
            return watermark - gap, True
        self.open = [each for each in self.open if each not in near]
        first = min([row.time, *(each.first for each in near)])
        last = max([until, *(each.last for each in near)])
        self.open.append(Interval(row.values[0], first, last))
        return max([each.last for each in own if each.last >= row.time], default=START_NS), False

    def _done_of_openings(self, row: Row, watermark: int, own: list[Interval]) -> tuple[int, bool]:
        assert isinstance(self.window, OpenedBy)
        is_late = row.time < watermark
        around = [
            each
            for each in self.open
            if each.area == row.values[0] and each.first <= row.time <= each.last
        ]
        opens = row.values[1] > 3
        if opens and not is_late:
            last = row.time + self.window.length_ns - 1
            self.open.append(Interval(row.values[0], row.time, last))
        if not is_late:
            return START_NS, False
        if not around or opens:  # where it opens none, its own window misses it
            return watermark, not around
        missed = [each.last + 1 for each in own if each.first <= row.time <= each.last]
        return max(missed, default=START_NS), False


def late_of(operator: Operator, reads: Iterator[GateRead]) -> list[Late]:
    late: list[Late] = []
    for released in reads:
        for part in operator.work(released, now_ns=0).late:
            rows = part.batch
            columns = [rows.columns[name].tolist() for name in ("area", "n")]
            own = rows.event_time_ns.tolist(), *columns, part.late_by_ns.tolist()
            late += zip(*own, part.is_dropped.tolist(), strict=True)
    return late


def steps() -> Iterator[Any]:
    for window in WINDOWS:
        for name, step in EARLY.items():
            if isinstance(window, OpenedBy) and step.discards:
                continue
            yield pytest.param(replace(step, window=window), id=f"{window}, {name}")


@pytest.mark.parametrize("step", [*steps()])
@given(segments=streams([VALUES]), cut=chance)
def test_late_holds_each_row_that_missed_an_interval_and_no_other(
    step: IntervalStep, segments: list[Segment], cut: Random
) -> None:
    machine = make_operator(step)
    late = late_of(machine, reads_of(segments, [ROWS], cut))
    assert late == Oracle(step.window).run(segments)
    assert machine.late_dropped == sum(is_dropped for *_, is_dropped in late)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_a_restored_machine_knows_which_intervals_have_left(
    window: Intervals, segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, window=window)
    machine, late = make_operator(step), list[Late]()
    for released in reads_of(segments, [ROWS], cut):
        state = to_plain(save(machine))
        machine = make_operator(step)
        restore(machine, from_plain(state))
        late += late_of(machine, iter([released]))
    assert late == Oracle(window).run(segments)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_shares_by_key_find_together_what_one_machine_finds(
    window: Intervals, segments: list[Segment], cut: Random
) -> None:
    late = []
    for area in (1, 2):
        shares = [
            replace(
                segment,
                late=[row for row in segment.late if row.values[0] == area],
                rows=[row for row in segment.rows if row.values[0] == area],
            )
            for segment in segments
        ]
        late += late_of(make_operator(replace(STEP, window=window)), reads_of(shares, [ROWS], cut))
    assert sorted(late) == sorted(Oracle(window).run(segments))


@pytest.mark.parametrize("window", [Everything(), Rows(2, 2), Rows(3, 1)], ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_no_row_misses_a_window_of_rows_or_of_everything(
    window: Intervals, segments: list[Segment], cut: Random
) -> None:
    assert (
        late_of(make_operator(replace(STEP, window=window)), reads_of(segments, [ROWS], cut)) == []
    )


def read(
    watermark: int, times: Sequence[int] = (), areas: Sequence[int] = (), n: int = 0
) -> GateRead:
    late = batch_of([*times], {"area": [*areas], "n": [n] * len(times)}) if times else None
    return gate_read([None], [late], watermark, 0, watermark)


def test_a_row_near_a_session_that_left_opens_another_and_is_late() -> None:
    machine = make_operator(STEP)
    machine.work(read(12, [1, 6], [1, 1]), 0)  # [1, 11] leaves
    # 6 and a gap is 11, and the watermark is at 12: 7 holds a session open that 6 does not.
    assert late_of(machine, iter([read(12, [7, 7], [1, 2])])) == [(7, 1, 0, 4, False)]
    assert late_of(machine, iter([read(12, [12], [1])])) == []


def known_keys(machine: Operator) -> int:
    return len(save(machine)["keys"]["part"]["numbers"]["values"])


def rows_at(times: Sequence[int], areas: Sequence[int]) -> Batch:
    return batch_of([*times], {"area": [*areas], "n": [0] * len(times)})


def test_ends_of_keys_are_known_until_no_row_can_come() -> None:
    machine = make_operator(replace(STEP, window=Session(5)))
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


def test_windows_that_rows_open_forget_keys_whose_windows_have_left() -> None:
    machine: Any = make_operator(replace(STEP, window=OpenedBy(FITS, 5)))
    for number in range(300):
        areas = [*range(20 * number, 20 * number + 20)]
        machine.work(read(10 * number, [10 * number] * 20, areas, n=9), 0)
    assert len(machine._keys) < 3_000
    machine.work(read(END_NS), 0)


# At 12 the session [1, 11] of a has left. 5 and 8 would have been in it, and count in another; 3
# begins the first one of c; that of d would have ended at 11. Each replica gets a row of 12.
OTHERS = [f"b{number}" for number in range(20)]
CLICKS = {"t": [1, *[12] * 20, 5, 8, 3, 1], "user": ["a", *OTHERS, "a", "a", "c", "d"]}
ON_TIME = {"heard": [1, *[12] * 20, 13, 14, 15, 16]}


def check_late(rows: Any, *, replicas: int | None = None, **options: Any) -> None:
    """Check the results and the late rows of sessions of CLICKS, read by an input."""
    flow = sw.Dataflow("late sessions", slack="0s")
    clicks = flow.source(
        "clicks",
        rows,
        event_time="t",
        time_unit="s",
        out_of_order="late",
        disorder="60s",
        **options,
    )
    visits = clicks.aggregate(by="user", window=sw.session("10s"), n=sw.count(), replicas=replicas)
    visits.sink("visits", sw.collect_sink())
    visits.late().sink("late", sw.collect_sink())
    job, report = simulated(flow)
    assert report.ledger.is_balanced
    late_rows = job.result("late").select(["t", "user", "late_by_ns", "late_dropped"])
    assert sorted(tuple(row.values()) for row in late_rows.to_pylist()) == [
        (1, "d", 10**9, True),
        (5, "a", 6 * 10**9, False),
        (8, "a", 3 * 10**9, False),
    ]
    left = sorted((row["user"], row["n"]) for row in job.result("visits").to_pylist())
    assert left == [("a", 1), ("a", 2), *[(user, 1) for user in sorted(OTHERS)], ("c", 1)]


@pytest.mark.parametrize("replicas", [None, 1, 3])
def test_a_flow_has_them_in_late_whatever_its_replicas(replicas: int | None) -> None:
    check_late(sw.table(CLICKS | ON_TIME), replicas=replicas, arrival="heard", speed=1.0)


@pytest.mark.parametrize("partitions", [None, "files"])
def test_a_flow_of_files_has_them_in_late_with_partitions_too(
    partitions: Any, tmp_path: Path
) -> None:
    pq.write_table(pa.table(CLICKS), tmp_path / "rows.parquet")
    check_late(sw.parquet(tmp_path, partitions=partitions, batch_rows=1))
