"""An aggregate that allows for clocks: three literal ones, of rows moved either way, in one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, READY_ONLY, batch_of
from slackwater.runtime.operators.aggregate.schema import with_three
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import (
    LiteralAggregate,
    Row,
    Segment,
    any_row,
    reads_of,
    run,
    streams,
)
from tests.operators.test_late_windows import reads, rows_of
from tests.support.chance import chance
from tests.support.told import gate_read

ROWS = pa.schema({"line": pa.string(), "delay": pa.float64(), "n": pa.int64(), "off": pa.int64()})
VALUES = any_row(["20", None], [0.1, 0.3, -7.7, 1e16], [-9, 2, 2**60], [0, 1, 2, 3, 90])
TIMES = pa.timestamp("ns")
AGGREGATES = {
    "rows": Aggregate("count"),
    "total": Aggregate("sum", "delay"),
    "mean": Aggregate("mean", "delay"),
    "least": Aggregate("min", "n"),
    "most": Aggregate("max", "delay"),
    "median": Aggregate("quantile", "delay", 0.5),
}
PLAIN = AggregateStep(
    name="minutes",
    inputs=("buses",),
    schema=pa.schema(
        {
            "line": pa.string(),
            "window_start": TIMES,
            "window_end": TIMES,
            **{
                name: pa.int64() if name in ("rows", "least") else pa.float64()
                for name in AGGREGATES
            },
        }
    ),
    keys=("line",),
    window=Window(10, 10),
    aggregates=AGGREGATES,
    release=READY_ONLY,
)
WINDOWS = pytest.mark.parametrize("window", [Window(10, 10), Window(10, 4)], ids=str)
DRIFTS = pytest.mark.parametrize("drift", [Drift(2), Drift(5), Drift(3, "off")], ids=str)


def with_drift(step: AggregateStep, drift: Drift) -> AggregateStep:
    schema = with_three(step.schema, step.aggregates, drift, step=step.name)
    return replace(step, schema=schema, drift=drift)


def moved(segments: list[Segment], drift: Drift, turn: int) -> list[Segment]:
    def row_of(row: Row) -> Row:
        bound = drift.most_ns if drift.column is None else min(row.values[-1], drift.most_ns)
        return replace(row, time=row.time + turn * bound)

    return [
        Segment(
            [*map(row_of, one.late)],
            [*map(row_of, one.rows)],
            one.watermark - drift.most_ns,
            one.frontier - drift.most_ns,
        )
        for one in segments
    ]


def three_literal_ones(
    step: AggregateStep, segments: list[Segment], drift: Drift
) -> tuple[dict[tuple[str, ...], list[Any]], int]:
    """Return {(end, key): [of low, middle and high: its aggregates, or None]}; rows dropped."""
    found: dict[tuple[str, ...], list[Any]] = {}
    dropped = []
    for place, turn in enumerate((1, 0, -1)):
        literal = LiteralAggregate(step, ROWS)
        for _, _, key, _, end, *values in literal.run(moved(segments, drift, turn)):
            found.setdefault((end, key), [None] * 3)[place] = [float(one) for one in values]
        dropped.append(literal.late_dropped)
    return found, min(dropped)


def number(text: str) -> float | None:
    return None if text == "None" else float(text)


@WINDOWS
@DRIFTS
@given(segments=streams([VALUES]), cut=chance)
def test_it_equals_three_aggregates_over_times_that_were_moved_by_each_rows_bound(
    window: Window, drift: Drift, segments: list[Segment], cut: Random
) -> None:
    plain = replace(PLAIN, window=window)
    expected, dropped = three_literal_ones(plain, segments, drift)
    step = with_drift(plain, drift)
    machine = make_operator(step)
    leaves = run(machine, reads_of(segments, [ROWS], cut))
    assert machine.late_dropped == dropped
    assert machine.rows_held == 0
    ends = []
    for event_time, _, *columns in leaves:
        row = dict(zip(step.schema.names, columns, strict=True))
        three = expected.pop((row["window_end"], row["line"]))
        ends.append(int(row["window_end"]))
        assert int(event_time) == ends[-1] - 1 + drift.most_ns
        for place, (name, aggregate) in enumerate(AGGREGATES.items()):
            bare = 0.0 if aggregate.kind == "count" else None
            values = [bare if one is None else one[place] for one in three]
            assert number(row[name]) == values[1]
            there = [one for one in values if one is not None]
            assert float(row[f"{name}_low"]) == min(there)
            assert float(row[f"{name}_high"]) == max(there)
            mean = float(row[f"{name}_mean"])
            assert mean == pytest.approx(sum(there) / len(there))
            assert min(there) <= mean <= max(there)
    assert not expected, "each window of which one of the three had rows leaves"
    assert ends == sorted(ends)


@WINDOWS
@given(segments=streams([VALUES]), cut=chance)
def test_without_any_bound_the_three_are_what_the_plain_aggregate_gives(
    window: Window, segments: list[Segment], cut: Random
) -> None:
    plain = replace(PLAIN, window=window)
    step = with_drift(plain, Drift(0))
    expected = run(make_operator(plain), reads_of(segments, [ROWS]))
    names = ["line", "window_start", "window_end", *AGGREGATES]
    got = []
    for event_time, stimulus, *columns in run(make_operator(step), reads_of(segments, [ROWS], cut)):
        row = dict(zip(step.schema.names, columns, strict=True))
        for name in AGGREGATES:
            assert float(row[name]) == float(row[f"{name}_mean"])
            assert float(row[f"{name}_low"]) == float(row[f"{name}_high"]) == float(row[name])
        got.append((event_time, stimulus, *(row[name] for name in names)))
    assert got == expected


@WINDOWS
@given(random=st.randoms(use_true_random=False), slack_ns=st.sampled_from([-1, 0, 3, None]))
def test_a_late_row_corrects_each_of_the_three_and_the_last_revision_counts_every_row(
    window: Window, random: Random, slack_ns: int | None
) -> None:
    sent, read = reads(random, slack_ns=slack_ns)
    counts = replace(
        PLAIN,
        keys=(),
        window=window,
        schema=pa.schema({"window_start": TIMES, "window_end": TIMES, "rows": pa.int64()}),
        aggregates={"rows": Aggregate("count")},
        late="correct",
    )
    step = with_drift(counts, Drift(2))
    step = replace(step, schema=step.schema.append(pa.field("revision", pa.int64())))
    last: dict[int, tuple[int, ...]] = {}
    revisions: dict[int, list[int]] = {}
    machine = make_operator(step)
    promise_ns = -(2**63)
    for released in read:
        batch, following_ns, *_ = machine.work(released, now_ns=0)
        if batch is not None:
            assert batch.event_time_ns.min() >= promise_ns, "it breaks its promise"
            names = ("window_end", "rows_low", "rows", "rows_high", "revision")
            for end, *counted, revision in zip(
                *(batch.columns[one].tolist() for one in names), strict=True
            ):
                last[end] = tuple(counted)
                revisions.setdefault(end, []).append(revision)
        promise_ns = following_ns
    expected: dict[int, list[int]] = {}
    for place, turn in enumerate((2, 0, -2)):
        for t in sent:
            first = (t + turn - window.size_ns) // window.slide_ns + 1
            for k in range(first, (t + turn) // window.slide_ns + 1):
                end = k * window.slide_ns + window.size_ns
                expected.setdefault(end, [0, 0, 0])[place] += 1
    assert {end: (min(three), three[1], max(three)) for end, three in expected.items()} == last
    assert all(found == list(range(len(found))) for found in revisions.values())
    assert machine.rows_held == machine.late_dropped == 0


@WINDOWS
@given(random=st.randoms(use_true_random=False), slack_ns=st.sampled_from([-1, 0, 3]))
def test_rows_that_missed_one_of_the_three_are_told_and_dropped_are_those_that_missed_all(
    window: Window, random: Random, slack_ns: int
) -> None:
    _, read = reads(random, slack_ns=slack_ns)
    step = replace(
        with_drift(
            replace(
                PLAIN,
                keys=("line",),
                window=window,
                schema=pa.schema(
                    {
                        "line": pa.int64(),
                        "window_start": TIMES,
                        "window_end": TIMES,
                        "rows": pa.int64(),
                    }
                ),
                aggregates={"rows": Aggregate("count")},
            ),
            Drift(2),
        ),
        keeps_late=True,
    )
    machine, told = make_operator(step), []
    for released in read:
        told += machine.work(released, now_ns=0).late
    assert sum(int(one.is_dropped.sum()) for one in told) == machine.late_dropped
    assert all((one.late_by_ns > 0).all() for one in told)
    assert all(
        not one.is_dropped.all() or one.late_by_ns.min() > 4 for one in told if len(one.batch)
    )


def counted(step: AggregateStep, times: list[int]) -> list[tuple[Any, ...]]:
    """Return (window_end, n, n_mean, n_low, n_high) of each row that leaves."""
    machine = make_operator(step)
    batch = machine.work(gate_read([rows_of(times)], [None], END_NS, 0, END_NS), now_ns=0).rows
    assert batch is not None
    names = ("window_end", "n", "n_mean", "n_low", "n_high")
    return [*zip(*(batch.columns[one].tolist() for one in names), strict=True)]


COUNTS = with_drift(
    replace(
        PLAIN,
        keys=(),
        window=Window(100, 100),
        schema=pa.schema({"window_start": TIMES, "window_end": TIMES, "n": pa.int64()}),
        aggregates={"n": Aggregate("count")},
    ),
    Drift(10),
)


def test_the_five_kinds_of_events_of_a_window_are_in_the_windows_of_figure_3_4() -> None:
    """[thesis] §3.2.3.1: of the window from 100 to 200, with T_a/2 of 10; one event of each kind.

    Before it (95: the low one only), at its begin (105: low and middle), in it (150: all three),
    at its end (195: middle and high), behind it (205: the high one only).
    """
    found = {end: rest for end, *rest in counted(COUNTS, [95, 105, 150, 195, 205])}
    assert found[200] == [3, 3.0, 3, 3]
    alone = {t: {end: rest for end, *rest in counted(COUNTS, [t])} for t in (95, 105, 150, 195)}
    assert alone[95] == {100: [1, 2 / 3, 0, 1], 200: [0, 1 / 3, 0, 1]}
    assert alone[105] == {100: [0, 1 / 3, 0, 1], 200: [1, 2 / 3, 0, 1]}
    assert alone[150] == {200: [1, 1.0, 1, 1]}
    assert alone[195] == {200: [1, 2 / 3, 0, 1], 300: [0, 1 / 3, 0, 1]}


def test_results_leave_when_the_last_of_the_three_windows_closes() -> None:
    machine = make_operator(COUNTS)
    first = machine.work(gate_read([rows_of([50])], [None], 109, 0, 109), now_ns=0)
    assert (first.rows, first.promise_ns) == (None, 109)
    batch, promise_ns, *_ = machine.work(gate_read([None], [None], 110, 0, 110), now_ns=0)
    assert batch is not None
    assert batch.event_time_ns.tolist() == [109]
    assert promise_ns == 209


def test_a_bound_of_an_events_own_that_is_more_than_the_most_counts_as_the_most() -> None:
    machine: Any = make_operator(replace(COUNTS, drift=Drift(10, "off")))
    batch = batch_of([50, 95, 97], {"off": [3, 4, 500]})
    left = machine.work(gate_read([batch], [None], END_NS, 0, END_NS), now_ns=0).rows
    assert left is not None
    assert left.columns["n_low"].tolist() == [2, 0]
    assert machine.bounds_cut == 1


def test_a_bound_less_than_zero_is_an_error_that_names_the_row() -> None:
    machine = make_operator(replace(COUNTS, drift=Drift(10, "off")))
    batch = batch_of([50, 95], {"off": [3, -4]})
    with pytest.raises(OperatorError, match=r"drift='off'.*zero or more(.|\n)*-4"):
        machine.work(gate_read([batch], [None], END_NS, 0, END_NS), now_ns=0)


@pytest.mark.parametrize("kind", [np.int16, np.int64, np.uint64])
def test_bounds_of_another_unit_are_cut_before_they_could_overflow(kind: Any) -> None:
    drift = Drift(2_500_000, "off", 1_000_000)
    most = np.iinfo(kind).max
    bounds, cut = drift.bounds_ns(
        batch_of([1, 2, 3, 4], {"off": np.array([0, 2, 3, most], kind)}), step="x"
    )
    assert bounds.tolist() == [0, 2_000_000, 2_500_000, 2_500_000]
    assert cut == 2
    nanoseconds, _ = Drift(2_500_000, "off").bounds_ns(
        batch_of([1], {"off": np.array([7], kind)}), step="x"
    )
    assert nanoseconds.tolist() == [7]
