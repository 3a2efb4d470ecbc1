"""Early results equal literal ones: by event time or count, whatever the cut of rows into reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.model import END_NS
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import EARLY, ROWS, VALUES
from tests.operators.literal import Segment, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated

WINDOWS = [Window(10, 10), Window(12, 5), Window(7, 7, 3)]
Made = list[tuple[str, ...]]  # time, key, start, rows, revision


class Literal:
    """Windows a row at a time, which leave early by time or by rows."""

    def __init__(self, window: Window, *, every_ns: int = 0, rows: int = 0) -> None:
        self.window, self.every_ns, self.rows = window, every_ns, rows
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
            for key in self.counts[number]:
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
            for key in self.counts[number]:
                if (number, key) in self.changed and self.window.end_ns(number) > self.due:
                    self.leave(self.due - 1, number, key)
        self.changed.clear()
        self.due = None

    def leave(self, time: int, number: int, key: Any, *, is_last: bool = False) -> None:
        start = int(self.window.start_ns(number))
        revision = self.revisions[number, key]
        self.revisions[number, key] += 1
        row = (time, key, start, self.counts[number][key], revision)
        self.made.append(((time, is_last), row))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(
    segments=streams([VALUES], late=False),
    every=st.integers(1, 25),
    rows=st.none() | st.integers(1, 4),
    cut=chance,
)
def test_windows_leave_each_so_long_or_with_each_so_many_rows(
    window: Window, segments: list[Segment], every: int, rows: int | None, cut: Random
) -> None:
    if rows and window.is_tumbling:
        step, literal = replace(EARLY, early_rows=rows), Literal(window, rows=rows)
    else:
        step, literal = replace(EARLY, early_ns=every), Literal(window, every_ns=every)
    leaves = run(make_operator(replace(step, window=window)), reads_of(segments, [ROWS], cut))
    assert [(leaf[0], leaf[2], leaf[3], *leaf[6:]) for leaf in leaves] == literal.run(segments)


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


def test_no_step_with_state_follows_early_results() -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    early = rows.aggregate(window=sw.tumbling("1m"), n=sw.count(), early="10s", name="early")
    with pytest.raises(FlowError, match="'early'"):
        early.aggregate(window=sw.tumbling("1h"), n=sw.count())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"early": 0}, "at least 1"),
        ({"early": True}, "not a length of time"),
        ({"early": "0s"}, "more than zero"),
        ({"early": 5, "window": sw.sliding("10s", "2s")}, "counts rows of windows side by side"),
        ({"early": "5s", "late": "correct"}, "late= is for results that leave once"),
        ({"early": "5s", "empty": "1h"}, "empty= is for results that leave once"),
        ({"early": "5s", "time": "start"}, "time= is for results that leave once"),
        ({"early": "5s", "window": sw.session("1s")}, "windows that all keys share"),
    ],
    ids=str,
)
def test_early_is_refused_with_a_way_out(options: dict[str, Any], says: str) -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(SettingError, match=says):
        rows.aggregate(**{"window": sw.tumbling("1m"), "n": sw.count(), **options})
