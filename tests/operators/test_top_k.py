"""Best rows of keys and windows: beside a ranking of one row at a time, and as users write them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    OperatorError,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.model import END_NS, READY_ONLY, START_NS, batch_of
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.operators.top_k.machine import TopKMachine
from slackwater.runtime.operators.top_k.step import SortColumn, TopKStep
from slackwater.runtime.plan.promises import IdleTime, OutputTraits, after_gate
from tests.operators.literal import Leaves, Segment, any_row, reads_of, run, streams
from tests.support.chance import chance
from tests.support.told import gate_read

ROWS = pa.schema({"k": pa.int64(), "text": pa.string(), "x": pa.float64()})
VALUES = any_row([1, 2, 2**40], ["b", "a", None], [0.5, -1.0, float("nan"), 0.0, 7.25])
TIMES = pa.timestamp("ns")
STEP = TopKStep(
    name="best",
    inputs=("rows",),
    schema=pa.schema([*ROWS, ("window_start", TIMES), ("window_end", TIMES), ("n", pa.int64())]),
    keys=("k",),
    window=Window(10, 10),
    most=2,
    columns=(SortColumn("text", ascending=True), SortColumn("x")),
    rank="n",
    release=READY_ONLY,
)
WHOLE = replace(STEP, window=None, schema=pa.schema([*ROWS, ("n", pa.int64())]))


class LiteralTopK:
    """A `TopKStep`, a row at a time: all rows of each window and key are kept, then sorted."""

    def __init__(self, step: TopKStep) -> None:
        self.step = step
        self.rows: dict[int, list[tuple[int, Any]]] = {}  # {window: (place in the stream, row)}
        self.late_dropped = 0
        self.leaves: Leaves = []

    def run(self, segments: list[Segment]) -> Leaves:
        watermark, place = START_NS, 0
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                place += 1
                windows = [w for w in self._windows_of(row.time) if self._end(w) > watermark]
                self.late_dropped += not windows
                for window in windows:
                    self.rows.setdefault(window, []).append((place, row))
            watermark = segment.watermark
            self._close(watermark)
        self._close(END_NS)
        return self.leaves

    def _windows_of(self, time: int) -> range:
        if (window := self.step.window) is None:
            return range(1)
        return range(window.first_after(time), window.last_begun(time) + 1)

    def _end(self, number: int) -> int:
        window = self.step.window
        return END_NS if window is None else window.end_ns(number)

    def _order(self, entry: tuple[int, Any]) -> Any:
        place, row = entry
        values = dict(zip(ROWS.names, row.values, strict=True))
        order: list[Any] = []
        for name, ascending in self.step.columns:
            value = values[name]
            is_nan = isinstance(value, float) and math.isnan(value)
            order.append((value is None, is_nan))
            if value is None or is_nan:
                order.append(0)
            elif isinstance(value, str):
                number = [ord(letter) for letter in value]
                order.append(number if ascending else [-each for each in number])
            else:
                order.append(value if ascending else -value)
        sign = -1 if self.step.newest_first else 1
        return (*order, sign * row.time, sign * place)

    def _close(self, watermark: int) -> None:
        for number in sorted(w for w in self.rows if self._end(w) <= watermark):
            best: list[tuple[int, int, int, Any]] = []  # (first of the key, rank, place, row)
            by_key: dict[Any, list[tuple[int, Any]]] = {}
            for entry in self.rows.pop(number):
                key = tuple(entry[1].values[ROWS.names.index(name)] for name in self.step.keys)
                by_key.setdefault(key, []).append(entry)
            for entries in by_key.values():
                chosen = sorted(entries, key=self._order)[: self.step.most]
                first = min(place for place, _ in chosen)
                best += [(first, n, place, row) for n, (place, row) in enumerate(chosen, 1)]
            if self.step.window is None:
                best.sort(key=lambda each: (each[3].time, each[2]))
            else:
                best.sort(key=lambda each: each[:2])
            for _, rank, _, row in best:
                end = self._end(number)
                time, bounds = row.time, tuple[int, ...]()
                if self.step.window is not None:
                    shift = self.step.window.shift_ns
                    time = end - 1
                    bounds = (end - self.step.window.size_ns - shift, end - shift)
                added = () if self.step.rank is None else (rank,)
                values = (time, row.stimulus, *row.values, *bounds, *added)
                self.leaves.append(tuple(map(repr, values)))


STEPS = {
    "tumbling": STEP,
    "sliding": replace(STEP, window=Window(12, 5)),
    "offset, closed at the end": replace(STEP, window=Window(12, 5, 4, "end")),
    "one of all": replace(STEP, most=1, keys=()),
    "by other columns": replace(STEP, columns=(SortColumn("x", ascending=True), SortColumn("k"))),
    "by floats down, then text down": replace(STEP, columns=(SortColumn("x"), SortColumn("text"))),
    "all of the input": WHOLE,
    "newest": replace(WHOLE, most=1, columns=(), newest_first=True),
    "newest in windows": replace(STEP, most=1, columns=(), newest_first=True),
    "oldest, by text": replace(STEP, most=1, columns=(), keys=("text",)),
}


@pytest.mark.parametrize("name", STEPS)
@given(segments=streams([VALUES]), cut=chance)
def test_rows_are_those_of_a_ranking_one_at_a_time(
    name: str, segments: list[Segment], cut: Random
) -> None:
    step = STEPS[name]
    literal, machine = LiteralTopK(step), TopKMachine(step, most_kept_rows=10**6)
    assert run(machine, reads_of(segments, [ROWS], cut)) == literal.run(segments)
    assert machine.late_dropped == literal.late_dropped


@pytest.mark.parametrize("name", STEPS)
@given(data=st.data())
def test_rows_that_are_forgotten_between_would_not_have_left(
    name: str, data: st.DataObject
) -> None:
    class Tidying(TopKMachine):
        def _take(self, batch: Any) -> None:
            super()._take(batch)
            if self._rows:
                self._tidy()

    step, segments = STEPS[name], data.draw(streams([VALUES]))
    machine = Tidying(step, most_kept_rows=10**6)
    assert run(machine, reads_of(segments, [ROWS])) == LiteralTopK(step).run(segments)


def test_only_the_best_rows_of_each_key_and_pane_are_held() -> None:
    machine = TopKMachine(replace(STEP, columns=(SortColumn("x"),)), most_kept_rows=10**6)
    rng = np.random.default_rng(1)
    for _ in range(20):
        text = pa.array(["a"] * 1_000)
        rows = batch_of([5] * 1_000, {"k": rng.integers(0, 3, 1_000), "text": text})
        rows.columns["x"] = rng.random(1_000)
        machine.work(gate_read([rows], [None], 5, 0, 5), 0)
        assert machine.rows_held <= 3 * 2 * 400
    assert machine.work(gate_read([None], [None], 10, 0, 10), 0).rows is not None
    assert machine.rows_held == 0


def test_more_keys_than_may_be_kept_are_an_error_without_windows() -> None:
    machine = TopKMachine(replace(WHOLE, columns=(SortColumn("x"),)), most_kept_rows=2_000)
    keys = np.arange(5_000)
    rows = batch_of([5] * 5_000, {"k": keys, "text": pa.array(["a"] * 5_000), "x": keys / 2})
    with pytest.raises(OperatorError, match="5,000 rows are kept, more than most_kept_rows=2,000"):
        machine.work(gate_read([rows], [None], 5, 0, 5), 0)


def test_without_windows_nothing_is_promised_before_the_end() -> None:
    machine, (summary,) = TopKMachine(WHOLE, most_kept_rows=10), WHOLE.traits.summaries
    rows = batch_of([5], {"k": [1], "text": pa.array(["a"]), "x": [0.5]})
    assert machine.work(gate_read([rows], [None], 9, 0, 9), 0).promise_ns == START_NS
    result = machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0)
    assert result.rows is not None
    assert result.promise_ns == END_NS
    came = OutputTraits(IdleTime(10, 10, 1.0), may_be_late=False, is_disordered=False)
    assert after_gate([came], [summary], has_slack=False).idle_ns is None


BIDS = {
    "t": [1, 2, 3, 4, 11, 12, 13],
    "item": ["a", "a", "b", "a", "a", "b", "b"],
    "price": [5, 9, 7, 9, 2, 3, 8],
}


def stream(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("bids", sw.table(BIDS), event_time="t", time_unit="s")


def results(made: Any) -> list[dict[str, Any]]:
    flow = sw.Dataflow("bids")
    made(stream(flow)).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        rows: list[dict[str, Any]] = job.result("out").to_pylist()
        return rows


def test_rows_of_a_window_have_all_columns_its_bounds_and_their_rank() -> None:
    made = results(
        lambda s: s.top_k("price", 2, by="item", window=sw.tumbling("10s"), rank="place")
    )
    assert [(row["t"], row["item"], row["place"]) for row in made] == [
        (2, "a", 1),
        (4, "a", 2),
        (3, "b", 1),
        (11, "a", 1),
        (13, "b", 1),
        (12, "b", 2),
    ]
    assert list(made[0]) == ["t", "item", "price", "window_start", "window_end", "place"]


def test_local_days_are_windows_too() -> None:
    day = sw.calendar("day", zone="Europe/Warsaw")
    made = results(
        lambda s: s.with_columns(hour=sw.col("t")).newest((), window=day).select("t", "window_end")
    )
    assert [(row["t"], row["window_end"].hour) for row in made] == [(13, 23)]


def test_ranked_aggregates_have_the_bounds_of_their_windows() -> None:
    window = sw.tumbling("10s")
    made = results(
        lambda s: s.aggregate(by="item", window=window, n=sw.count()).top_k("n", 1, window=window)
    )
    assert [(row["item"], row["n"], row["window_start"].second) for row in made] == [
        ("a", 3, 0),
        ("b", 2, 10),
    ]


def test_the_newest_of_each_key_leave_at_the_end_by_event_time() -> None:
    assert [row["t"] for row in results(lambda s: s.newest("item"))] == [11, 13]
    assert [row["t"] for row in results(lambda s: s.key_by("item").oldest())] == [1, 3]


def test_the_newest_and_oldest_row_of_all_need_no_key() -> None:
    assert [row["t"] for row in results(lambda s: s.newest())] == [13]
    assert [row["t"] for row in results(lambda s: s.oldest())] == [1]


def test_rows_without_windows_keep_their_times_so_that_windows_may_follow() -> None:
    made = results(
        lambda s: s.newest(["item", "price"]).aggregate(window=sw.tumbling("10s"), n=sw.count())
    )
    assert Counter(row["window_start"].second for row in made) == {0: 1, 10: 1}
    assert [row["n"] for row in made] == [3, 3]


@pytest.mark.parametrize(
    ("made", "kind", "says"),
    [
        (lambda s: s.top_k("price", 0), SettingError, "k=0 rows of each key; write 1 or more"),
        (lambda s: s.top_k([], 2), FlowError, "top_k compares no column; name one"),
        (lambda s: s.top_k("prize", 2), SlackwaterError, "the nearest is 'price'"),
        (
            lambda s: s.top_k("price", 2, ascending=[True, False]),
            SettingError,
            "has 2 values for 1 columns; give one for all, or one for each",
        ),
        (lambda s: s.top_k("price", 2, rank="t"), DuplicateName, "rank='t' is a column already"),
        (
            lambda s: s.newest("item", window="10s"),
            TypeMismatch,
            "is not a window of rows to compare; write tumbling",
        ),
        (
            lambda s: s.with_columns(window_end=1).newest("item", window=sw.tumbling("1s")),
            DuplicateName,
            "'window_end' is int64, and results have the bounds",
        ),
        (
            lambda s: s.aggregate(
                window=sw.tumbling("1s"), by="item", late="correct", n=sw.count()
            ).newest("item"),
            FlowError,
            "would count each revision",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused(made: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as problem:
        made(stream(sw.Dataflow("bids")))
    assert says in str(problem.value)


def test_late_rows_that_missed_their_window_are_counted_and_may_be_taken() -> None:
    flow = sw.Dataflow("late", slack="0s")
    rows = flow.source(
        "rows",
        sw.table({"t": [1, 12, 3, 13, 25], "x": [1, 2, 3, 4, 5]}, batch_rows=1),
        event_time="t",
        time_unit="s",
        out_of_order="late",
        disorder="1m",
    )
    best = rows.top_k("x", 1, window=sw.tumbling("10s"))
    best.sink("out", sw.collect_sink())
    best.late().sink("late", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().ledger.late == 1
        assert job.result("out")["x"].to_pylist() == [1, 4, 5]
        assert job.result("late")["x"].to_pylist() == [3]
