"""Early results equal literal ones: by event time or count, whatever the cut of rows into reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.model import END_NS, START_NS, GateRead
from slackwater.runtime.model.row_marks import RETRACTED, REVISED
from slackwater.runtime.operators.aggregate.interval_words import (
    Everything,
    OpenedBy,
    Rows,
    Session,
)
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import AGGREGATE, EARLY, ROWS, SESSIONS, VALUES
from tests.operators.literal import Segment, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated
from tests.support.rows import bound

WINDOWS = [Window(10, 10), Window(12, 5), Window(7, 7, 3)]
Made = list[tuple[str, ...]]  # time, key, start, rows, revision


class Literal:
    """Windows a row at a time, which leave early by time or by rows."""

    def __init__(
        self, window: Window, *, every_ns: int = 0, rows: int = 0, is_new: bool = False
    ) -> None:
        self.window, self.every_ns, self.rows, self.is_new = window, every_ns, rows, is_new
        self.counts: dict[int, Counter[Any]] = {}  # {window: {key: rows}}, as they appear
        self.changed: set[tuple[int, Any]] = set()
        self.due: int | None = None
        self.revisions = Counter[tuple[int, Any]]()
        self.made: list[tuple[tuple[int, bool], tuple[Any, ...]]] = []

    def run(self, segments: list[Segment]) -> Made:
        for segment in segments:
            for row in segment.rows:
                self.pass_to(row.time)
                self.take(row.time, row.values[1])
            self.pass_to(segment.watermark)
        self.pass_to(END_NS)
        for number in sorted(self.counts):
            for key in [*self.counts[number]]:
                self.leave(int(self.window.end_ns(number)) - 1, number, key, is_last=True)
        made = sorted(self.made, key=lambda made: made[0])
        return [tuple(map(repr, row)) for _, row in made]

    def take(self, time: int, key: Any) -> None:
        last = int(self.window.last_begun(time))
        for number in range(int(self.window.first_after(time)), last + 1):
            count = self.counts.setdefault(number, Counter())
            count[key] += 1
            self.changed.add((number, key))
            if self.rows and count[key] % self.rows == 0:
                self.leave(time, number, key)
        if self.every_ns:
            self.due = (time // self.every_ns + 1) * self.every_ns

    def pass_to(self, time: int) -> None:
        if self.due is None or time < self.due:
            return
        for number in sorted(self.counts):
            for key in [*self.counts[number]]:
                if (number, key) in self.changed and self.window.end_ns(number) > self.due:
                    self.leave(self.due - 1, number, key)
        self.changed.clear()
        self.due = None

    def leave(self, time: int, number: int, key: Any, *, is_last: bool = False) -> None:
        start = int(self.window.start_ns(number))
        revision = self.revisions[number, key]
        self.revisions[number, key] += 1
        row: tuple[Any, ...] = (time, key, start, self.counts[number][key], revision)
        if self.is_new:
            row = row[:-1]
            del self.counts[number][key]
        self.made.append(((time, is_last), row))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(
    segments=streams([VALUES], late=False),
    every=st.integers(1, 25),
    rows=st.none() | st.integers(1, 4),
    is_new=st.booleans(),
    cut=chance,
)
def test_windows_leave_each_so_long_or_with_each_so_many_rows(
    window: Window,
    segments: list[Segment],
    every: int,
    rows: int | None,
    is_new: bool,
    cut: Random,
) -> None:
    is_new &= window.is_tumbling
    kind = replace(AGGREGATE, discards=True) if is_new else EARLY
    if rows and window.is_tumbling:
        step, literal = replace(kind, early_rows=rows), Literal(window, rows=rows, is_new=is_new)
    else:
        step, literal = (
            replace(kind, early_ns=every),
            Literal(window, every_ns=every, is_new=is_new),
        )
    leaves = run(make_operator(replace(step, window=window)), reads_of(segments, [ROWS], cut))
    made, expected = (
        [(leaf[0], leaf[2], leaf[3], *leaf[6:]) for leaf in leaves],
        literal.run(segments),
    )
    if is_new:  # those that are over together leave by the hash of the key
        made, expected = sorted(made), sorted(expected)
    assert made == expected


class Change(NamedTuple):
    time: int
    kind: str
    key: Any
    start: int
    end: int
    rows: int


KINDS = {
    0: "insert",
    RETRACTED.bit: "delete",
    REVISED.bit: "new",
    REVISED.bit | RETRACTED.bit: "old",
}


def changes(step: IntervalStep, reads: Iterator[GateRead]) -> list[Change]:
    machine, made = make_operator(step), list[Change]()
    for read in reads:
        batch = machine.work(read, now_ns=0).rows
        if batch is None:
            continue
        marks = [0] * len(batch) if batch.marks is None else batch.marks.tolist()
        made += [
            Change(int(time), KINDS[mark], key, int(start), int(end), int(rows))
            for mark, (time, _, key, start, end, _, rows) in zip(
                marks, leaves_of([batch]), strict=True
            )
        ]
    assert machine.rows_held == 0
    return made


@dataclass
class Visit:
    key: Any
    first: int
    until: int
    rows: int = 0
    new: int = 0
    shown: list[Change] = field(default_factory=list)


class LiteralSessions:
    """Sessions a row at a time, which leave early by time or by rows."""

    def __init__(self, gap: int, *, every: int = 0, rows: int = 0, is_new: bool) -> None:
        self.gap, self.every, self.rows, self.is_new = gap, every, rows, is_new
        self.open: list[Visit] = []
        self.due: int | None = None
        self.made: list[Change] = []

    def run(self, segments: list[Segment]) -> list[Change]:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self.pass_to(max(row.time, watermark))
                self.take(row.time, repr(row.values[1]), watermark)
            watermark = segment.watermark
            self.pass_to(watermark)
            self.close(watermark)
        self.pass_to(END_NS)
        self.close(END_NS)
        return self.made

    def take(self, time: int, key: Any, watermark: int) -> None:
        near = [
            visit
            for visit in self.open
            if visit.key == key and visit.first <= time + self.gap and time <= visit.until
        ]
        if not near and time + self.gap < watermark:
            return
        self.open = [visit for visit in self.open if visit not in near]
        both = Visit(key, time, time + self.gap, 1, 1)
        for visit in near:
            both.first, both.until = min(both.first, visit.first), max(both.until, visit.until)
            both.rows, both.new = both.rows + visit.rows, both.new + visit.new
            both.shown += visit.shown
        self.open.append(both)
        if self.rows and (both.new if self.is_new else both.rows) % self.rows == 0:
            self.leave(both, max(time, watermark))
        if self.every:
            self.due = (max(time, watermark) // self.every + 1) * self.every

    def pass_to(self, time: int) -> None:
        if self.due is None or time < self.due:
            return
        for visit in self.open:
            if visit.new and visit.until >= self.due:
                self.leave(visit, self.due - 1)
        for visit in self.open:  # of those that are over, only the end is to come
            visit.new = visit.new if self.is_new else 0
        self.due = None

    def close(self, watermark: int) -> None:
        for visit in [visit for visit in self.open if visit.until < watermark]:
            self.open.remove(visit)
            if visit.new or not self.is_new:
                self.leave(visit, visit.until)

    def leave(self, visit: Visit, time: int) -> None:
        kind, count = "insert", visit.new if self.is_new else visit.rows
        for shown in [] if self.is_new else visit.shown:
            is_same = shown.start == visit.first
            kind = "new" if is_same else kind
            self.made.append(shown._replace(time=time, kind="old" if is_same else "delete"))
        left = Change(time, kind, visit.key, visit.first, visit.until, count)
        self.made.append(left)
        visit.shown, visit.new = [left], 0


@given(
    segments=streams([VALUES]),
    gap=st.integers(1, 12),
    every=st.integers(1, 25),
    rows=st.none() | st.integers(1, 4),
    is_new=st.booleans(),
    cut=chance,
)
def test_sessions_leave_each_so_long_or_with_each_so_many_rows(
    segments: list[Segment], gap: int, every: int, rows: int | None, is_new: bool, cut: Random
) -> None:
    step = replace(SESSIONS, window=Session(gap), discards=is_new)
    if rows:  # late rows make a session of several parts, which count apart
        segments = [replace(segment, late=[]) for segment in segments]
        step, literal = (
            replace(step, early_rows=rows),
            LiteralSessions(gap, rows=rows, is_new=is_new),
        )
    else:
        step, literal = (
            replace(step, early_ns=every),
            LiteralSessions(gap, every=every, is_new=is_new),
        )
    made = changes(step, reads_of(segments, [ROWS], cut))
    assert Counter(made) == Counter(literal.run(segments))
    for change, after in pairwise([*made, *made[-1:]]):
        assert change.kind != "old" or change._replace(kind="new")[:4] == after[:4]


OPENED = OpenedBy(bound(sw.col("delay") < 0.2, pa.float64()), 7)
KEYED = [Session(4), Session(None, bound(sw.col("area") % 11 + 1, pa.int64())), Everything()]


@pytest.mark.parametrize("window", [*KEYED, OPENED, Rows(5, 5)], ids=str)
@given(
    segments=streams([VALUES]),
    early=st.sampled_from([{"early_ns": 3}, {"early_rows": 1}, {"early_rows": 2}]),
    cut=chance,
)
def test_what_stays_of_early_results_is_what_leaves_without_them(
    window: Any, segments: list[Segment], early: dict[str, Any], cut: Random
) -> None:
    step = replace(SESSIONS, window=window)
    plain = [change[2:] for change in changes(step, reads_of(segments, [ROWS]))]
    stay = Counter[tuple[Any, ...]]()
    for change in changes(replace(step, **early), reads_of(segments, [ROWS], cut)):
        stay[change[2:]] += 1 if change.kind in ("insert", "new") else -1
        assert stay[change[2:]] >= 0, "no row is taken back that is not there"
    assert +stay == Counter(plain)
    if isinstance(window, Rows | OpenedBy):
        return
    rows = Counter[Any]()
    for change in changes(replace(step, **early, discards=True), reads_of(segments, [ROWS], cut)):
        assert change.kind == "insert"
        rows[change.key] += change.rows
    for key, *_, count in plain:
        rows[key] -= count
    assert not any(rows.values()), "each row is in one result"


@pytest.mark.parametrize("replicas", [None, 1, 2])
def test_a_flow_has_revisions_by_time_and_by_rows(replicas: int | None) -> None:
    expected: dict[Any, list[tuple[int, ...]]] = {
        "10s": [(1, 2, 0), (1, 3, 1), (1, 3, 2), (1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 1, 1)],
        2: [(1, 2, 0), (1, 3, 1), (1, 1, 0), (2, 1, 0)],
    }
    table = pa.table({"t": [1, 2, 5, 31, 70], "k": [1, 1, 2, 1, 1], "x": [4.5, 5, 6, 7, 8]})
    for early, answer in expected.items():
        flow = sw.Dataflow("f")
        rows = flow.source("rows", sw.table(table), event_time="t", time_unit="s")
        rows.aggregate(
            by="k",
            window=sw.tumbling("1m"),
            n=sw.count(),
            last=sw.last("x"),
            early=early,
            replicas=replicas,
        ).sink("out", sw.collect_sink())
        job, report = simulated(flow)
        assert report.ledger.is_balanced
        made = [(row["k"], row["n"], row["revision"]) for row in job.result("out").to_pylist()]
        assert sorted(made) == sorted(answer)


@pytest.mark.parametrize("replicas", [None, 2])
def test_totals_of_early_sessions_are_those_of_whole_ones(replicas: int | None) -> None:
    table = pa.table({"t": [1, 8, 9, 27, 31, 90], "k": [1, 1, 2, 1, 1, 1]})
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table(table), event_time="t", time_unit="s")
    visits = rows.aggregate(
        by="k", window=sw.session("15s"), early="5s", n=sw.count(), replicas=replicas
    )
    visits.sink("visits", sw.collect_sink())
    visits.aggregate(by="k", visits=sw.count(), clicks=sw.sum("n")).sink("out", sw.collect_sink())
    job, report = simulated(flow)
    assert report.ledger.is_balanced
    kinds = Counter((row["k"], row["change"]) for row in job.result("visits").to_pylist())
    assert kinds == {(1, "insert"): 3, (1, "update"): 5, (2, "insert"): 1, (2, "update"): 1}
    totals = {row["k"]: (row["visits"], row["clicks"]) for row in job.result("out").to_pylist()}
    assert totals == {1: (3, 5), 2: (1, 1)}


def test_no_step_with_state_follows_early_results() -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    early = rows.aggregate(window=sw.tumbling("1m"), n=sw.count(), early="10s", name="early")
    with pytest.raises(FlowError, match="'early'"):
        early.aggregate(window=sw.tumbling("1h"), n=sw.count())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"early": 0}, "at least 1"),
        ({"early": 2**63}, "must be 1,000,000,000,000 at most"),
        ({"early": True}, "not a length of time"),
        ({"early": "0s"}, "more than zero"),
        ({"early": 5, "window": sw.sliding("10s", "2s")}, "counts rows of windows side by side"),
        ({"early": "5s", "late": "correct"}, "late= is for results that leave once"),
        ({"early": "5s", "empty": "1h"}, "empty= is for results that leave once"),
        ({"early": "5s", "time": "start"}, "time= is for results that leave once"),
        ({"early": "5s", "window": sw.session("1s"), "time": "last"}, "time= is for results"),
        ({"early": 2, "window": sw.rows(6, every=2)}, "windows side by side"),
        ({"early": 2, "window": sw.rows(6), "early_counts": "new"}, "a smaller number of rows"),
        ({"early_counts": "new"}, "write early='10s'"),
        (
            {"early": 2, "window": sw.opened_by(sw.col("k") > 0, "5s"), "early_counts": "new"},
            "several windows",
        ),
        ({"early": 2, "early_counts": "none"}, "'all' or 'new'"),
        ({"early": "2s", "early_counts": "new", "window": sw.sliding("9s", "3s")}, "side by side"),
        ({"window": None, "time": "first"}, "the event time of the row that makes it"),
        ({"window": None, "early_counts": "new"}, "is for windows, and without window= there is"),
    ],
    ids=str,
)
def test_early_is_refused_with_a_way_out(options: dict[str, Any], says: str) -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(SettingError, match=says):
        rows.aggregate(**{"window": sw.tumbling("1m"), "n": sw.count(), **options})
