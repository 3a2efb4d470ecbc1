"""The aggregate equals a literal one, a row at a time; and closes what is complete, no more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, READY_ONLY, START_NS, Batch, GateRead, batch_of
from slackwater.runtime.operators.aggregate import machine as aggregate
from slackwater.runtime.operators.aggregate.accumulators import SortedValues, quantile
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import (
    LiteralAggregate,
    Segment,
    any_row,
    leaves_of,
    reads_of,
    run,
    streams,
)
from tests.support.chance import chance
from tests.support.told import gate_read

ROWS = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.float64(), "n": pa.int64()})
TIMES = pa.timestamp("ns")
NAN = float("nan")
INF = float("inf")
STEP = AggregateStep(
    name="minutes",
    inputs=("buses",),
    schema=pa.schema(
        {
            "area": pa.int64(),
            "line": pa.string(),
            "window_start": TIMES,
            "window_end": TIMES,
            "rows": pa.int64(),
            "total": pa.float64(),
            "mean": pa.float64(),
            "of_whole": pa.float64(),
            "whole": pa.int64(),
            "least": pa.int64(),
            "most": pa.float64(),
            "median": pa.float64(),
            "p90": pa.float64(),
        }
    ),
    keys=("area", "line"),
    window=Window(10, 10),
    aggregates={
        "rows": Aggregate("count"),
        "total": Aggregate("sum", "delay"),
        "mean": Aggregate("mean", "delay"),
        "of_whole": Aggregate("mean", "n"),
        "whole": Aggregate("sum", "n"),
        "least": Aggregate("min", "n"),
        "most": Aggregate("max", "delay"),
        "median": Aggregate("quantile", "delay", 0.5),
        "p90": Aggregate("quantile", "n", 0.9),
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
VALUES = any_row([1, 2, -70], ["20", None], [0.1, 0.2, 0.3, -7.7, 1e16], range(-9, 10))
WINDOWS = [
    Window(10, 10),
    Window(10, 5),
    Window(7, 3),
    Window(40, 2),
    Window(1, 1),
    Window(10, 10, 3),
    Window(12, 5, 4),
    Window(10, 10, 1, "end"),
    Window(12, 4, 3, "end"),
]


def rows_at(times: list[int], areas: list[int] | None = None) -> Batch:
    return batch_of(times, {"area": np.array(areas or [1] * len(times))})


def read(
    batch: Batch | None, watermark: int, *, late: Batch | None = None, stimulus: int = 0
) -> GateRead:
    return gate_read([batch], [late], watermark, stimulus, watermark)


def counts(batch: Batch | None) -> list[tuple[int, ...]]:
    """Return (area, window's end, rows) of what left."""
    if batch is None:
        return []
    columns = (batch.columns[name].tolist() for name in ("area", "window_end", "rows"))
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_aggregate_equals_a_literal_one_however_the_rows_are_cut(
    window: Window, segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, window=window)
    literal = LiteralAggregate(step, ROWS)
    expected = literal.run(segments)
    machine = make_operator(step)
    assert run(machine, reads_of(segments, [ROWS], cut)) == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.rows_held == 0


@given(segments=streams([VALUES]), cut=chance)
def test_windows_that_close_together_are_worked_off_in_blocks(
    segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, window=Window(12, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "_PAIRS_AT_ONCE", 3)
        leaves = run(make_operator(step), reads_of(segments, [ROWS], cut))
    assert leaves == LiteralAggregate(step, ROWS).run(segments)


def test_window_closes_when_the_watermark_reaches_its_end() -> None:
    machine = make_operator(COUNT)
    assert machine.work(read(rows_at([3, 9, 10]), 9), now_ns=0).rows is None
    assert machine.rows_held == 3
    assert counts(machine.work(read(None, 10), now_ns=0).rows) == [(1, 10, 2)]
    assert machine.rows_held == 1
    assert counts(machine.work(read(None, END_NS), now_ns=0).rows) == [(1, 20, 1)]


def test_keys_leave_in_order_of_first_appearance_in_their_window() -> None:
    machine = make_operator(COUNT)
    batch = rows_at([1, 2, 11, 12, 13], [7, 3, 3, 7, 7])
    assert counts(machine.work(read(batch, END_NS), now_ns=0).rows) == [
        (7, 10, 1),
        (3, 10, 1),
        (3, 20, 1),
        (7, 20, 2),
    ]


def test_late_row_counts_in_the_windows_that_are_still_open() -> None:
    machine = make_operator(replace(COUNT, window=Window(10, 5)))
    assert counts(machine.work(read(rows_at([8]), 10), now_ns=0).rows) == [(1, 10, 1)]
    late = rows_at([4, 7])
    assert machine.work(read(None, 10, late=late), now_ns=0).rows is None
    assert machine.late_dropped == 1, "4 was in [-5, 5) and [0, 10) only"
    assert counts(machine.work(read(None, END_NS), now_ns=0).rows) == [(1, 15, 2)]


def test_row_in_order_behind_closed_windows_is_counted_as_dropped() -> None:
    machine = make_operator(COUNT)
    machine.work(read(None, 30), now_ns=0)
    assert machine.work(read(rows_at([12, 31]), 31), now_ns=0).rows is None
    assert machine.late_dropped == 1
    assert machine.rows_held == 1


def test_stimulus_time_is_the_latest_of_the_rows_and_of_what_closed_the_window() -> None:
    batch = rows_at([1, 2, 11])
    batch.stimulus_time_ns[:] = [500, 300, 900]
    machine = make_operator(COUNT)
    machine.work(read(batch, 5, stimulus=1_000), now_ns=0)
    first = machine.work(read(None, 10, stimulus=400), now_ns=0).rows
    second = machine.work(read(None, 20, stimulus=950), now_ns=0).rows
    assert first is not None
    assert second is not None
    assert first.stimulus_time_ns.tolist() == [500]
    assert second.stimulus_time_ns.tolist() == [950]


def test_event_time_of_a_result_is_the_last_moment_in_its_window() -> None:
    result = make_operator(COUNT).work(read(rows_at([-1]), END_NS), now_ns=0).rows
    assert result is not None
    assert result.event_time_ns.tolist() == [-1]
    assert result.columns["window_start"].tolist() == [-10]
    assert result.columns["window_end"].tolist() == [0]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_promise_is_the_last_moment_in_the_earliest_open_window(window: Window) -> None:
    machine = make_operator(replace(COUNT, window=window))
    for watermark in range(-25, 25):
        promise = machine.work(read(None, watermark), 0).promise_ns
        assert watermark <= promise < watermark + window.slide_ns
        assert (promise + 1 - window.size_ns - window.offset_ns) % window.slide_ns == 0
    assert machine.work(read(None, END_NS), 0).promise_ns == END_NS
    fresh = make_operator(COUNT)
    assert fresh.work(read(None, START_NS), 0).promise_ns == START_NS


def test_leap_of_years_does_not_visit_the_empty_windows() -> None:
    machine = make_operator(replace(COUNT, window=Window(3, 1)))
    far = 60 * 365 * 86_400 * 10**9
    found = counts(machine.work(read(rows_at([-far, 0, far]), END_NS), now_ns=0).rows)
    assert found == [(1, at + end, 1) for at in (-far, 0, far) for end in (1, 2, 3)]


def test_aggregate_without_keys_is_over_all_rows() -> None:
    step = replace(COUNT, keys=(), schema=COUNT.schema.remove(0))
    result = make_operator(step).work(read(rows_at([1, 2, 3], [5, 6, 7]), END_NS), now_ns=0).rows
    assert result is not None
    assert result.columns["rows"].tolist() == [3]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("sum", 6.0), ("mean", 3.0), ("min", 2.0), ("max", 4.0), ("quantile", 3.0), ("count", 2)],
)
def test_nulls_among_the_values_are_skipped_and_all_null_is_null(kind: Any, expected: Any) -> None:
    level = 0.5 if kind == "quantile" else None
    step = replace(
        COUNT,
        schema=COUNT.schema.remove(3).append(pa.field("x", pa.float64())),
        aggregates={"x": Aggregate(kind, "delay", level)},
        window=Window(10, 5),  # a window of two panes
    )
    delays = [None, 2.0, 4.0, None, None]
    batch = batch_of([1, 2, 6, 7, 1], {"area": [1, 1, 1, 1, 2], "delay": delays})
    result = make_operator(step).work(read(batch, END_NS), now_ns=0).rows
    assert result is not None
    both = result.columns["window_start"] == 0
    columns = result.keep(both).columns
    found = dict(zip(columns["area"].tolist(), columns["x"].tolist(), strict=True))
    assert found == {1: expected, 2: 0 if kind == "count" else None}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("sum", [NAN, NAN]), ("mean", [NAN, NAN]), ("min", [2.0, NAN]), ("max", [NAN, NAN])],
)
def test_nan_is_a_value_and_the_greatest(kind: Any, expected: Any) -> None:
    step = replace(
        COUNT,
        schema=COUNT.schema.remove(3).append(pa.field("x", pa.float64())),
        aggregates={"x": Aggregate(kind, "delay", None)},
        window=Window(10, 5),
    )
    batch = batch_of([1, 2, 6, 7], {"area": [1, 1, 1, 2], "delay": [NAN, 2.0, 4.0, NAN]})
    result = make_operator(step).work(read(batch, END_NS), now_ns=0).rows
    assert result is not None
    columns = result.keep(result.columns["window_start"] == 0).columns
    np.testing.assert_equal(columns["x"].tolist(), expected)


def test_whole_sums_skip_nulls_and_name_the_window_that_does_not_fit() -> None:
    step = replace(
        COUNT,
        schema=COUNT.schema.remove(3).append(pa.field("x", pa.int64())),
        aggregates={"x": Aggregate("sum", "delay", None)},
    )
    delays = [None, 2**62, None, 2**62, None]
    batch = batch_of([1, 2, 3, 4, 5], {"area": [1] * 5, "delay": delays})
    with pytest.raises(OperatorError, match=r"does not fit int64(.|\n)*of key {'area': 1}"):
        make_operator(step).work(read(batch, END_NS), now_ns=0)


def test_a_count_of_text_leaves_out_what_is_null() -> None:
    step = replace(COUNT, keys=(), schema=COUNT.schema.remove(0))
    step = replace(step, aggregates={"rows": Aggregate("count", "line")})
    batch = batch_of([1, 2, 3], {"line": pa.array(["20", None, "26"])})
    result = make_operator(step).work(read(batch, END_NS), now_ns=0).rows
    assert result is not None
    assert result.columns["rows"].tolist() == [2]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_least_and_most_keep_the_type_of_the_column(dtype: str) -> None:
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    step = replace(
        COUNT,
        schema=pa.schema([*list(COUNT.schema)[:3], ("least", kind), ("most", kind)]),
        aggregates={"least": Aggregate("min", "x"), "most": Aggregate("max", "x")},
    )
    limits = np.finfo(dtype) if "float" in dtype else np.iinfo(dtype)
    values = np.array([limits.max, limits.min, 3], dtype)
    result = (
        make_operator(step)
        .work(read(batch_of([1, 2, 3], {"area": [1, 1, 1], "x": values}), END_NS), now_ns=0)
        .rows
    )
    assert result is not None
    assert result.columns["least"].dtype == result.columns["most"].dtype == np.dtype(dtype)
    assert result.columns["least"].tolist() == [values[1]]
    assert result.columns["most"].tolist() == [values[0]]


@pytest.mark.parametrize("level", [0.0, 0.1, 0.5, 0.95, 1.0])
def test_quantile_is_that_of_numpy_to_the_bit(level: float) -> None:
    random = np.random.default_rng(seed=5)
    values, areas = random.normal(size=500), random.integers(0, 9, 500)
    step = replace(
        COUNT,
        schema=COUNT.schema.remove(3).append(pa.field("x", pa.float64())),
        aggregates={"x": Aggregate("quantile", "delay", level)},
    )
    batch = batch_of(np.zeros(500, np.int64), {"area": areas, "delay": values})
    result = make_operator(step).work(read(batch, END_NS), now_ns=0).rows
    assert result is not None
    for area, found in zip(result.columns["area"], result.columns["x"], strict=True):
        assert found == np.quantile(values[areas == area], level)


def test_aggregate_with_ever_new_keys_stays_small() -> None:
    step = replace(STEP, window=Window(10, 5))
    machine = make_operator(step)
    for number in range(400):
        areas = np.arange(50) + 50 * number
        columns = {"area": areas, "line": [f"line {area}" for area in areas]}
        numbers = {"delay": areas * 0.5, "n": areas}
        machine.work(read(batch_of([number] * 50, columns | numbers), number), now_ns=0)
    assert machine.rows_held < 50 * 20
    assert len(machine._keys) < 8_000
    assert len(machine._cells) < 4_000


def test_leaves_of_an_aggregate_have_the_columns_of_its_schema_in_order() -> None:
    values = {"area": [1], "line": ["20"], "delay": [0.5], "n": [3]}
    result = make_operator(STEP).work(read(batch_of([1], values), END_NS), now_ns=0).rows
    assert result is not None
    assert list(result.columns) == STEP.schema.names
    assert leaves_of([result])[0][2:5] == ("1", "'20'", "0")


MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("delays", "problem"),
    [
        ([MOST, 5, -5], None),  # another key; and back again within a batch
        ([MOST - 1, 0, 1], None),
        ([MOST, 0, 1], "9223372036854775808 does not fit int64"),
        ([-MOST, 0, -2], "-9223372036854775809 does not fit int64"),
        ([2**62, 3, 2**62], "does not fit"),
        ([1, 1, 2**63], "9223372036854775809 does not fit int64"),
    ],
)
@pytest.mark.parametrize("window", [Window(10, 10), Window(10, 2)])
def test_a_sum_is_exact_or_refused_by_step_column_and_window(
    delays: list[int], problem: str | None, window: Window
) -> None:
    step = replace(COUNT, aggregates={"rows": Aggregate("sum", "delay")}, window=window)
    dtype = np.uint64 if max(delays) > MOST else np.int64
    batch = batch_of([20, 21, 29], {"area": [1, 2, 1], "delay": np.array(delays, dtype)})
    machine = make_operator(step)
    if problem is None:
        result = machine.work(read(batch, END_NS), now_ns=0).rows
        assert result is not None
        whole = result.columns["window_start"] == 20
        assert result.columns["rows"][whole].tolist() == [delays[0] + delays[2], delays[1]]
        return
    who = "window that starts at 20, of key {'area': 1}"
    with pytest.raises(OperatorError, match=f"'delay'(.|\n)*{problem}(.|\n)*{who}"):
        machine.work(read(batch, END_NS), now_ns=0)


@pytest.mark.parametrize("cuts", [[0, 3], [0, 2, 3], [0, 1, 2, 3]])
def test_a_sum_may_leave_64_bits_on_its_way(cuts: list[int]) -> None:
    step = replace(COUNT, aggregates={"rows": Aggregate("sum", "delay")}, window=Window(10, 10))
    machine, delays = make_operator(step), [MOST, 1, -5]
    for begin, end in pairwise(cuts):
        rows = {"area": [1] * (end - begin), "delay": np.array(delays[begin:end])}
        machine.work(read(batch_of([20, 21, 22][begin:end], rows), 20), now_ns=0)
    result = machine.work(read(batch_of([], {"area": [], "delay": []}), END_NS), now_ns=0).rows
    assert result is not None
    assert result.columns["rows"].tolist() == [MOST - 4]


@pytest.mark.parametrize(
    ("values", "level", "expected"),
    [
        ([1.0, 2.0, INF], 0.5, 2.0),
        ([1.0, 2.0, INF], 1.0, INF),
        ([1.0, 2.0, INF], 0.75, INF),
        ([INF, INF], 0.5, INF),
        ([-INF, 1.0], 0.5, -INF),
        ([-INF, 1.0], 1.0, 1.0),
        ([-INF, INF], 0.25, -INF),
        ([-INF, INF], 0.75, INF),
        ([-1.7e308, 1.7e308], 0.5, 0.0),
        ([], 0.5, 0.0),
    ],
    ids=str,
)
def test_a_quantile_beside_infinity_is_no_null(
    values: list[float], level: float, expected: float
) -> None:
    results = SortedValues(np.array([9.0, *values]), np.array([0, 1]), np.array([1, len(values)]))
    found = quantile(results, level)
    assert found[0] == 9.0
    assert np.array_equal(found[1:], [expected], equal_nan=True)


WHOLE_EDGES = [0, -5, 3, 2**31, -(2**32), 2**32 + 1, 2**53 + 1, -(2**53) - 1, 2**61, -(2**61)]
MEAN = replace(
    COUNT,
    schema=pa.schema(
        {"area": pa.int64(), "window_start": TIMES, "window_end": TIMES, "m": pa.float64()}
    ),
    aggregates={"m": Aggregate("mean", "n")},
)


@given(
    st.lists(st.sampled_from([*WHOLE_EDGES, 2**63 - 1, -(2**63)]), min_size=1, max_size=12),
    st.integers(1, 12),
    st.sampled_from([Window(40, 40), Window(40, 10)]),
)
@example([2**53 + 1, 1, -(2**53) - 1], 2, Window(40, 40))
@example([2**61, -5, -5, -(2**61), 0], 1, Window(40, 10))
@example([2**63 - 1, 2**63 - 1, -5], 1, Window(40, 40))
def test_a_mean_of_whole_numbers_is_the_nearest_float(
    values: list[int], cut: int, window: Window
) -> None:
    for kind in (np.int64, np.uint64):
        numbers = [abs(value) for value in values] if kind is np.uint64 else values
        machine = make_operator(replace(MEAN, window=window))
        for start in range(0, len(numbers), cut):
            part = np.array(numbers[start : start + cut], kind)
            columns = {"area": np.ones(len(part), np.int64), "n": part}
            rows = batch_of(range(start, start + len(part)), columns)
            machine.work(gate_read([rows], [None], START_NS, 0, START_NS), 0)
        left = machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0).rows
        assert left is not None
        for start, found in zip(
            left.columns["window_start"].tolist(), left.columns["m"].tolist(), strict=True
        ):
            seen = numbers[max(start, 0) : start + 40]
            assert found == sum(seen) / len(seen)
