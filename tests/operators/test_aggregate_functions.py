"""Each aggregate function equals a plain one in Python, a row at a time, however rows are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from math import copysign, inf, isnan, ldexp, nan, sqrt
from operator import and_, or_, xor
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import ColumnError, FlowError, SettingError, TypeMismatch
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import LiteralAggregate, Row, Segment, any_row, reads_of, run, streams
from tests.support.chance import chance
from tests.support.examples import twice
from tests.support.tables import result_of

ROWS = pa.schema(
    {
        "area": pa.int64(),
        "n": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.decimal128(5, 2),
        "at": pa.timestamp("ms"),
        "v": pa.list_(pa.int64()),
    }
)
VALUES = any_row(
    [1, 2],
    [3, -5, 2**55, None],
    [0.5, nan, -0.0, 0.0, inf, None],
    ["a", "b", "", None],
    [True, False, None],
    [Decimal("1.50"), Decimal("-2.25"), None],
    [7, None],
    [[1, 2], None],
)
WINDOWS = [sw.tumbling("10ns"), sw.sliding("12ns", "4ns"), sw.sliding("10ns", "5ns")]
Values = Sequence[Any]
Plain: TypeAlias = Callable[[list[dict[str, Any]]], Any]


def rank(value: Any) -> tuple[bool, Any]:
    """NaN is the greatest, and −0.0 is 0.0."""
    is_nan = isinstance(value, float) and isnan(value)
    return is_nan, 0 if is_nan else value


def distinct(values: Values) -> int:
    return len({rank(value) for value in values})


def top(k: int) -> Callable[[Values], Any]:
    def strict(value: Any) -> tuple[Any, ...]:
        return *rank(value), copysign(1, value) if isinstance(value, float) else 0

    return lambda values: sorted(values, key=strict, reverse=True)[:k] or None


def top_distinct(k: int) -> Callable[[Values], Any]:
    def greatest(values: Values) -> Any:
        best: list[Any] = []
        for value in top(len(values))(values) or ():
            if not best or rank(value) != rank(best[-1]):
                best.append(value)
        return best[:k] or None

    return greatest


def or_null(function: Callable[[Values], Any]) -> Callable[[Values], Any]:
    return lambda values: function(values) if values else None


# {name: (aggregate, its column, what Python makes of its values by time, then as they came)}
PLAIN: dict[str, tuple[sw.Aggregate, str, Callable[[Values], Any]]] = {
    **{
        f"{name}_{column}": (make(column), column, plain)
        for name, make, plain in (
            ("first", sw.first, or_null(lambda values: values[0])),
            ("last", sw.last, or_null(lambda values: values[-1])),
            ("collect", sw.collect, or_null(list)),
            ("count", sw.count, len),
        )
        for column in ROWS.names[1:]
        if (name, column) != ("collect", "at")  # in a list it is a datetime, as in the last test
    },
    **{
        f"{name}_{column}": (make(column), column, plain)
        for name, make, plain in (
            ("distinct", sw.count_distinct, distinct),
            ("top", lambda column: sw.top_k(column, 2), top(2)),
            ("differ", lambda column: sw.top_k(column, 2, distinct=True), top_distinct(2)),
        )
        for column in ("n", "x", "s", "b", "d")
    },
    "differs_1": (sw.top_k("x", 1, distinct=True), "x", top_distinct(1)),
    "distinct_at": (sw.count_distinct("at"), "at", distinct),
    **{
        f"{name}_bits": (make("n"), "n", or_null(partial(reduce, of_two)))
        for name, make, of_two in (
            ("and", sw.bit_and, and_),
            ("or", sw.bit_or, or_),
            ("xor", sw.bit_xor, xor),
        )
    },
    "any": (sw.any("b"), "b", or_null(any)),
    "all": (sw.all("b"), "b", or_null(all)),
}


class Literal(LiteralAggregate):
    """An aggregate of any function, by the lists above."""

    def __init__(
        self, step: AggregateStep, plain: dict[str, Callable[[list[dict[str, Any]]], Any]]
    ) -> None:
        super().__init__(step, ROWS)
        self._plain = plain

    def _aggregate(self, name: str, rows: Sequence[Row]) -> Any:
        by_time = sorted(rows, key=lambda row: row.time)  # stable: those of one time as they came
        return self._plain[name](
            [dict(zip(self.names, row.values, strict=True)) for row in by_time]
        )


def step_of(aggregates: dict[str, sw.Aggregate], window: Any, **options: Any) -> AggregateStep:
    empty = pa.table(
        {"t": pa.array([], pa.int64()), **{f.name: pa.array([], f.type) for f in ROWS}}
    )
    stream = sw.Dataflow("f").source("rows", sw.table(empty), event_time="t")
    made = stream.aggregate(aggregates, by="area", window=window, name="made", **options)
    step = made.flow.steps["made"]
    assert isinstance(step, AggregateStep)
    return step


def of_column(column: str, plain: Callable[[Values], Any]) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda rows: plain([row[column] for row in rows if row[column] is not None])


@twice
@given(window=st.sampled_from(WINDOWS), segments=streams([VALUES]), cut=chance)
def test_each_function_is_that_of_python(window: Any, segments: list[Segment], cut: Random) -> None:
    step = step_of({name: each for name, (each, _, _) in PLAIN.items()}, window)
    plain = {name: of_column(column, made) for name, (_, column, made) in PLAIN.items()}
    assert run(make_operator(step), reads_of(segments, [ROWS], cut)) == Literal(step, plain).run(
        segments
    )


BY = ("n", "x", "s", "b", "d", "at")


def chosen(column: str, by: str, *, greatest: bool) -> Callable[[list[dict[str, Any]]], Any]:
    def plain(rows: list[dict[str, Any]]) -> Any:
        there = [row for row in rows if row[column] is not None and row[by] is not None]
        if not there:
            return None
        best = (max if greatest else min)(rank(row[by]) for row in there)
        return next(row[column] for row in there if rank(row[by]) == best)

    return plain


@twice
@given(window=st.sampled_from(WINDOWS), segments=streams([VALUES]), cut=chance)
def test_a_value_where_another_is_greatest_is_that_of_the_first_such_row(
    window: Any, segments: list[Segment], cut: Random
) -> None:
    aggregates, plain = {}, {}
    for by in BY:
        for column in ("n", "v"):
            aggregates[f"max_{column}_{by}"] = sw.arg_max(column, by)
            aggregates[f"min_{column}_{by}"] = sw.arg_min(column, by)
            plain[f"max_{column}_{by}"] = chosen(column, by, greatest=True)
            plain[f"min_{column}_{by}"] = chosen(column, by, greatest=False)
    step = step_of(aggregates, window)
    assert run(make_operator(step), reads_of(segments, [ROWS], cut)) == Literal(step, plain).run(
        segments
    )


CONDITIONS: dict[str, tuple[Any, Callable[[dict[str, Any]], bool]]] = {
    "a": (sw.col("n") > 0, lambda row: row["n"] is not None and row["n"] > 0),
    "b": (sw.col("b"), lambda row: row["b"] is True),
    "c": (~sw.col("b"), lambda row: row["b"] is False),
    "d": (sw.col("area") > 9, lambda _: False),
    "e": (sw.lit(True), lambda _: True),
}
CONDITIONED: dict[
    str, tuple[Callable[..., sw.Aggregate], Callable[[list[dict[str, Any]]], Any]]
] = {
    "rows": (sw.count, len),
    "count": (lambda **w: sw.count("n", **w), of_column("n", len)),
    "sum": (lambda **w: sw.sum("n", **w), of_column("n", or_null(sum))),
    "mean": (lambda **w: sw.mean("n", **w), of_column("n", or_null(lambda v: sum(v) / len(v)))),
    "min": (lambda **w: sw.min("n", **w), of_column("n", or_null(min))),
    "max": (lambda **w: sw.max("at", **w), of_column("at", or_null(max))),
    "half": (
        lambda **w: sw.median("n", **w),
        of_column("n", or_null(lambda v: np.quantile(v, 0.5).item())),
    ),
    "any": (lambda **w: sw.any("b", **w), of_column("b", or_null(any))),
    "all": (lambda **w: sw.all("b", **w), of_column("b", or_null(all))),
    "first": (lambda **w: sw.first("s", **w), of_column("s", or_null(lambda v: v[0]))),
    "best": (lambda **w: sw.arg_max("s", "n", **w), chosen("s", "n", greatest=True)),
    "top": (lambda **w: sw.top_k("n", 3, **w), of_column("n", top(3))),
    "distinct": (lambda **w: sw.count_distinct("s", **w), of_column("s", distinct)),
    "list": (lambda **w: sw.collect("n", **w), of_column("n", or_null(list))),
    "bits": (lambda **w: sw.bit_xor("n", **w), of_column("n", or_null(partial(reduce, xor)))),
}


@given(window=st.sampled_from(WINDOWS[:2]), segments=streams([VALUES]), cut=chance)
def test_only_rows_count_for_which_where_is_true(
    window: Any, segments: list[Segment], cut: Random
) -> None:
    aggregates, plain = {}, {}
    for name, (condition, holds) in CONDITIONS.items():
        for kind, (make, of_rows) in CONDITIONED.items():
            aggregates[f"{kind}_{name}"] = make(where=condition)
            plain[f"{kind}_{name}"] = lambda rows, holds=holds, of_rows=of_rows: of_rows(
                [row for row in rows if holds(row)]
            )
    aggregates["all_rows"], plain["all_rows"] = sw.count(), len
    step = step_of(aggregates, window)
    assert run(make_operator(step), reads_of(segments, [ROWS], cut)) == Literal(step, plain).run(
        segments
    )


# -- variances ----------------------------------------------------------------------------


def exact_variance(values: Sequence[Any], ddof: int) -> float | None:
    if len(values) <= ddof:
        return None
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return float(sum((value - mean) ** 2 for value in exact) / (len(exact) - ddof))


def timed(values: pa.Array) -> pa.Table:
    """Return a table of one value at each nanosecond."""
    return pa.table({"ts": pa.array(range(len(values)), pa.timestamp("ns")), "x": values})


FAR = [0, 1, 2, -7, 10**15, 10**15 + 1, 10**15 + 3, 2**62, 2**62 + 5, -(2**62), 2**63 - 1]


@given(
    st.lists(st.sampled_from(FAR), min_size=1, max_size=20),
    st.integers(1, 20),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([sw.tumbling("40ns"), sw.sliding("40ns", "10ns")]),
    st.sampled_from(["int64", "uint64", "float64", "decimal128(20, 2)"]),
)
def test_a_variance_is_exact_but_for_last_digits(
    values: list[int], cut: int, ddof: int, window: Any, kind: str
) -> None:
    if kind == "uint64":
        values = [abs(value) for value in values]
    exact: list[Any] = values
    of = pa.decimal128(20, 2) if "decimal" in kind else getattr(pa, kind)()
    if kind == "float64":
        exact = [float(value) for value in values]
    if "decimal" in kind:
        exact = [Decimal(value) / 100 for value in values if abs(value) < 2**63]
    table = timed(pa.array(exact, of))
    made = result_of(
        lambda stream: stream.aggregate(
            window=window, v=sw.var("x", ddof=ddof), s=sw.std("x", ddof=ddof)
        ),
        table,
        batch_rows=cut,
    )
    for row in made.to_pylist():
        start, end = (row[name].value for name in ("window_start", "window_end"))
        expected = exact_variance(exact[max(start, 0) : end], ddof)
        assert row["v"] == (None if expected is None else pytest.approx(expected, rel=1e-12))
        assert row["s"] == (None if expected is None else pytest.approx(sqrt(expected), rel=1e-12))


def exact_line(pairs: list[tuple[int, int]]) -> dict[str, float | None]:
    """Return aggregates of pairs (y, x)."""
    made: dict[str, float | None] = dict.fromkeys(["covar", "all", "corr", "slope", "intercept"])
    count = len(pairs)
    if not count:
        return made
    mean_y, mean_x = (Fraction(sum(values), count) for values in zip(*pairs, strict=True))
    product = sum((y - mean_y) * (x - mean_x) for y, x in pairs)
    square_y, square_x = (
        sum((y - mean_y) ** 2 for y, _ in pairs),
        sum((x - mean_x) ** 2 for _, x in pairs),
    )
    made["all"] = float(product / count)
    if count > 1:
        made["covar"] = float(product / (count - 1))
    if square_x:
        made["slope"] = float(product / square_x)
        made["intercept"] = float(mean_y - product / square_x * mean_x)
        if square_y:
            made["corr"] = float(product) / sqrt(square_y) / sqrt(square_x)
    return made


LINES = {
    "covar": sw.covar("y", "x"),
    "all": sw.covar("y", "x", ddof=0),
    "corr": sw.corr("y", "x"),
    "slope": sw.slope("y", "x"),
    "intercept": sw.intercept("y", "x"),
}


@given(
    st.lists(st.tuples(*[st.sampled_from([None, 0, 1, 2, -7, 400])] * 2), min_size=1, max_size=20),
    st.sampled_from([0, 10**6, 2**52]),
    st.integers(1, 20),
    st.sampled_from([sw.tumbling("40ns"), sw.sliding("40ns", "10ns")]),
    st.sampled_from([pa.int64(), pa.float64(), pa.decimal128(20, 2)]),
)
def test_lines_are_exact_but_for_last_digits(
    pairs: list[tuple[int | None, int | None]], far: int, cut: int, window: Any, kind: pa.DataType
) -> None:
    far = far if kind != pa.decimal128(20, 2) else 0
    moved = [tuple(None if v is None else v + far for v in pair) for pair in pairs]
    table = timed(pa.array([x for _, x in moved], kind))
    table = table.append_column("y", pa.array([y for y, _ in moved], kind))
    made = result_of(lambda s: s.aggregate(LINES, window=window), table, batch_rows=cut)
    for row in made.to_pylist():
        start, end = (row[name].value for name in ("window_start", "window_end"))
        there: list[Any] = [pair for pair in moved[max(start, 0) : end] if None not in pair]
        expected = exact_line(there)
        assert {name: row[name] is None for name in expected} == {
            name: value is None for name, value in expected.items()
        }
        for name, value in expected.items():
            if value is not None:
                scale = 1e-9 * (far + 1) if name == "intercept" else 1e-9
                assert row[name] == pytest.approx(value, rel=1e-9, abs=scale), name


def times_power(value: float, power: int) -> float:
    """Return value · 2^power, infinite if it is beyond all floats."""
    try:
        return ldexp(value, power)
    except OverflowError:
        return copysign(inf, value)


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 1, 2, -7, 400])] * 2), min_size=1, max_size=20),
    st.tuples(*[st.sampled_from([0, 1010, -1050])] * 2),
    st.integers(1, 20),
    st.sampled_from([sw.tumbling("40ns"), sw.sliding("40ns", "10ns")]),
)
def test_lines_of_the_greatest_and_least_numbers_are_those_of_others_times_a_power(
    pairs: list[tuple[int, int]], powers: tuple[int, int], cut: int, window: Any
) -> None:
    of_y, of_x = powers
    table = timed(pa.array([ldexp(x, of_x) for _, x in pairs]))
    table = table.append_column("y", pa.array([ldexp(y, of_y) for y, _ in pairs]))
    made = result_of(lambda s: s.aggregate(LINES, window=window), table, batch_rows=cut)
    of = {"covar": of_y + of_x, "all": of_y + of_x, "slope": of_y - of_x, "intercept": of_y}
    for row in made.to_pylist():
        start, end = (row[name].value for name in ("window_start", "window_end"))
        for name, value in exact_line(pairs[max(start, 0) : end]).items():
            if value is None:
                assert row[name] is None, name
                continue
            power = of.get(name, 0)
            least = 2 * ldexp(1, -1074) + min(times_power(1e-9, power), 1e300)
            assert row[name] == pytest.approx(times_power(value, power), rel=1e-9, abs=least), name


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, 1.5, -2.0, -3e200, 7e-200, 1e-310, 2.5e307, inf])] * 2),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 5),
)
def test_lines_of_any_numbers_do_not_depend_on_the_cut(
    pairs: list[tuple[float, float]], cut: int
) -> None:
    table = timed(pa.array([x for _, x in pairs]))
    table = table.append_column("y", pa.array([y for y, _ in pairs]))
    window = sw.sliding("10ns", "5ns")
    whole, parts = (
        result_of(lambda s: s.aggregate(LINES, window=window), table, batch_rows=rows)
        for rows in (len(pairs), cut)
    )
    np.testing.assert_equal(parts.to_pylist(), whole.to_pylist())


@pytest.mark.parametrize(
    ("values", "variance"),
    [
        ([1.0, nan, 2.0], nan),
        ([1.0, inf, 2.0], nan),
        ([inf, 1.0], nan),
        ([1e200, -1e200], inf),
        ([0.1] * 30, 0.0),
        ([1e9 + 0.5, 1e9 + 1.5, 1e9 + 2.5], 1.0),
    ],
    ids=str,
)
def test_variances_at_the_ends_of_floats(values: list[float], variance: float) -> None:
    table = timed(pa.array(values))
    for window in (sw.tumbling("1s"), sw.sliding("40ns", "1ns")):
        made = result_of(
            lambda stream, window=window: stream.aggregate(
                window=window, v=sw.var("x"), n=sw.count()
            ),
            table,
            batch_rows=9,
        )
        whole = [row["v"] for row in made.to_pylist() if row["n"] == len(values)]
        np.testing.assert_equal(whole, [variance] * len(whole))
        assert whole


# -- state, and what is refused -----------------------------------------------------------


def test_chosen_rows_are_few_and_gone_with_their_windows() -> None:
    step = step_of(
        {"f": sw.first("n"), "t": sw.top_k("n", 3), "d": sw.count_distinct("n")}, WINDOWS[0]
    )
    machine: Any = make_operator(step)
    rng = Random(5)  # noqa: S311 - a draw
    rows = [
        Row(0, 5, 0, (rng.randint(1, 3), rng.randint(1, 4), 0.5, "a", True, None, 7, None))
        for _ in range(500)
    ]
    reads = list(reads_of([Segment([], rows, 5, 5)], [ROWS], rng))
    for read in reads[:-1]:
        machine.work(read, 0)
    held = [sum(map(len, own._parts)) for own in machine._states.all]
    assert all(count <= 2 * most for count, most in zip(held, (3, 9, 12), strict=True))
    machine.work(reads[-1], 0)
    assert machine.rows_held == 0
    assert reads[-1].watermark_ns == END_NS


@pytest.mark.parametrize(
    ("aggregate", "error", "text"),
    [
        (lambda: sw.any("n"), TypeMismatch, r"takes true/false, and 'n' is int64; compare it"),
        (lambda: sw.std("s"), TypeMismatch, "takes numbers, and 's' is string; cast it"),
        (lambda: sw.count_distinct("v"), TypeMismatch, "any column but lists.*take a part"),
        (lambda: sw.top_k("v", 1), TypeMismatch, "any column but lists"),
        (lambda: sw.arg_max("n", "v"), TypeMismatch, "chooses by 'v'.*has no order"),
        (lambda: sw.arg_max("n", "w"), ColumnError, "'w'"),
        (lambda: sw.first("w"), ColumnError, "'w'"),
        (lambda: sw.bit_and("x"), TypeMismatch, "takes whole numbers.*cast it"),
        (lambda: sw.corr("n", "s"), TypeMismatch, "takes numbers, and 's' is string"),
        (lambda: sw.slope("s", "n"), TypeMismatch, "takes numbers, and 's' is string"),
        (lambda: sw.covar("n", "x", ddof=-1), SettingError, "ddof must be from 0"),
        (lambda: sw.top_k("n", 0), SettingError, "k must be a whole number, 1 or more"),
        (lambda: sw.std("n", ddof=-1), SettingError, "ddof must be from 0 to"),
        (lambda: sw.std("n", ddof=10**30), SettingError, "ddof must be from 0 to"),
        (lambda: sw.median("s"), TypeMismatch, r"made=median\('s'\) takes numbers"),
        (lambda: sw.max("s"), TypeMismatch, r"write sw.arg_max\('s', 's'\)"),
        (lambda: sw.max("v"), TypeMismatch, "take a part of it before"),
        (lambda: sw.first(sw.col("n")), TypeMismatch, "takes a column's name"),
        (lambda: sw.arg_max("n", sw.col("n")), TypeMismatch, "takes a column's name"),
        (lambda: sw.sum("n", where=sw.col("n")), TypeMismatch, "where= of 'made'.*true or false"),
        (lambda: sw.sum("n", where=sw.col("w") > 1), ColumnError, "'w'"),
        (lambda: sw.sum("n", where="n > 1"), TypeMismatch, "write it in Python"),
        (
            lambda: sw.sum("n", where=sw.col("n").map_elements(bool, "bool")),
            FlowError,
            "calls a function",
        ),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_written(
    aggregate: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=f"(?s){text}"):
        step_of({"made": aggregate()}, WINDOWS[0])


@pytest.mark.parametrize("aggregate", [sw.any("b"), sw.first("s"), sw.collect("n")])
def test_drift_takes_aggregates_that_are_numbers(aggregate: sw.Aggregate) -> None:
    with pytest.raises(TypeMismatch, match=r"drift= has a mean beside each.*; (count|cast)"):
        step_of({"made": aggregate}, WINDOWS[0], drift="2ns")


@pytest.mark.parametrize("aggregate", [sw.first("n"), sw.std("x"), sw.count(where=sw.col("b"))])
def test_partial_results_of_such_aggregates_are_refused(aggregate: sw.Aggregate) -> None:
    with pytest.raises(SettingError, match=r"made = .* needs each row; omit one of the two"):
        step_of({"made": aggregate}, WINDOWS[0], combine="anywhere", replicas=2)


def test_texts_of_a_dictionary_are_texts_in_a_list() -> None:
    texts = pa.array(["b", None, "a"]).dictionary_encode()
    made = result_of(
        lambda stream: stream.aggregate(
            window=sw.tumbling("1s"), all=sw.collect("x"), top=sw.top_k("x", 1), first=sw.first("x")
        ),
        timed(texts),
        batch_rows=2,
    )
    assert made.schema.field("all").type == pa.list_(pa.string())
    assert made.schema.field("first").type == pa.dictionary(pa.int32(), pa.string())
    assert made.select(["all", "top", "first"]).to_pylist() == [
        {"all": ["b", "a"], "top": ["b"], "first": "b"}
    ]


def test_times_in_lists_are_those_of_the_column() -> None:
    times = pa.array([3, 1, None, 2], pa.timestamp("ms", "UTC"))
    made = result_of(
        lambda stream: stream.aggregate(
            window=sw.tumbling("1s"), all=sw.collect("x"), top=sw.top_k("x", 2)
        ),
        timed(times),
        batch_rows=2,
    )
    assert made.schema.field("all").type == pa.list_(times.type)
    assert made["all"].combine_chunks().flatten().equals(times.take(pa.array([0, 1, 3])))
    assert made["top"].combine_chunks().flatten().equals(times.take(pa.array([0, 3])))


# -- corrections ----------------------------------------------------------------------------

EVERY: dict[str, tuple[sw.Aggregate, Plain]] = {
    **{name: (each, of_column(column, made)) for name, (each, column, made) in PLAIN.items()},
    "most": (sw.arg_max("s", "n"), chosen("s", "n", greatest=True)),
    "some": (
        sw.top_k("n", 3, where=sw.col("b")),
        lambda rows: top(3)([r["n"] for r in rows if r["b"] and r["n"] is not None]),
    ),
    "custom": (
        sw.custom(
            list,
            lambda state, row: [*state, row["n"]],
            lambda state, other: state + other,
            lambda state: str(sorted(state, key=str)),
            "string",
            columns=["n"],
        ),
        lambda rows: str(sorted((row["n"] for row in rows), key=str)),
    ),
}


@given(window=st.sampled_from(WINDOWS[:2]), segments=streams([VALUES]), cut=chance)
def test_a_corrected_window_has_in_the_end_what_all_its_rows_give(
    window: Any, segments: list[Segment], cut: Random
) -> None:
    segments = [replace(segment, frontier=-1_000) for segment in segments]
    made = {name: each for name, (each, _) in EVERY.items()}
    corrected = step_of(made, window, late="correct")
    leaves = run(make_operator(corrected), reads_of(segments, [ROWS], cut))
    last = {row[2:4]: row[4:-1] for row in leaves}  # {(area, start): end, values}, without revision
    rows = [row for segment in segments for row in (*segment.late, *segment.rows)]
    plain = {name: each for name, (_, each) in EVERY.items()}
    at_once = Literal(step_of(made, window), plain).run([Segment([], rows, START_NS, START_NS)])
    assert last == {row[2:4]: row[4:] for row in at_once}


@pytest.mark.parametrize("bound", ["0ns", "3ns"])
@given(segments=streams([VALUES], late=False))
def test_the_middle_of_three_windows_is_the_window(bound: str, segments: list[Segment]) -> None:
    numbers = {
        "first": sw.first("n"),
        "last": sw.last("x"),
        "most": sw.arg_max("n", "s"),
        "differ": sw.count_distinct("d"),
        "spread": sw.std("n"),
        "some": sw.count(where=sw.col("b")),
    }
    three, plain = (
        {
            (row["area"], row["window_start"]): row
            for row in rows_of(step_of(numbers, WINDOWS[0], **options), segments)
        }
        for options in ({"drift": bound}, {})
    )
    for key, row in plain.items():
        assert str({name: three[key][name] for name in row}) == str(row)
    if bound == "0ns":
        assert three.keys() == plain.keys()


def rows_of(step: AggregateStep, segments: list[Segment]) -> list[dict[str, Any]]:
    machine = make_operator(step)
    made = [machine.work(read, 0).rows for read in reads_of(segments, [ROWS])]
    return [
        dict(zip(batch.columns, row, strict=True))
        for batch in made
        if batch is not None
        for row in zip(*(column.tolist() for column in batch.columns.values()), strict=True)
    ]
