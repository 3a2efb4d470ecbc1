"""Aggregates without windows: beside one row at a time, and as users write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite, nan
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    OperatorError,
    SettingError,
    SlackwaterError,
)
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import READY_ONLY, Batch, GateRead, batch_of
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.row_marks import RETRACTED, REVISED
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.totals_machine import TotalsMachine
from slackwater.runtime.operators.aggregate.totals_step import TotalsStep
from slackwater.runtime.operators.aggregate.written import Aggregate
from tests.operators.literal import Row, Segment, any_row, leaves_of, reached, reads_of, streams
from tests.support.chance import chance
from tests.support.rows import bound
from tests.support.told import gate_read

ROWS = pa.schema({"k": pa.int64(), "x": pa.float64(), "n": pa.int64(), "sign": pa.int64()})
VALUES = any_row([1, 2], [0.1, -1.0, None, inf, 1e300, 5e-324], [3, -(2**40), 5], [1, 1, -1])
DYADIC = any_row([1, 2], [0.5, -1.0, None], [3, -(2**40), 5], [1])
N_OVER_4 = bound(col("n") > 4, pa.int64())
AGGREGATES = {
    "count": (pa.int64(), Aggregate("count")),
    "fives": (pa.int64(), Aggregate("count", "x", condition=N_OVER_4)),
    "sum": (pa.float64(), Aggregate("sum", "x")),
    "total": (pa.int64(), Aggregate("sum", "n")),
    "mean": (pa.float64(), Aggregate("mean", "n")),
    "least": (pa.float64(), Aggregate("min", "x")),
    "most": (pa.int64(), Aggregate("max", "n")),
    "distinct": (pa.int64(), Aggregate("count_distinct", "n", by="n")),
}
STEP = TotalsStep(
    name="totals",
    inputs=("rows",),
    schema=pa.schema({"k": pa.int64(), **{name: kind for name, (kind, _) in AGGREGATES.items()}}),
    keys=("k",),
    aggregates={name: aggregate for name, (_, aggregate) in AGGREGATES.items()},
    retracts=True,
    on_missing="count",
    release=READY_ONLY,
)
Change = tuple[int, int, tuple[Any, ...]]


class LiteralTotals:
    """A `TotalsStep`, a row at a time: each key has a list of its rows."""

    def __init__(self, step: TotalsStep) -> None:
        self.step = step
        self.newest: dict[int, int] = {}
        self.rows: dict[int, list[tuple[Any, ...]]] = {}
        self.missing = 0

    def run(self, segments: Sequence[Segment]) -> list[Change]:
        every_ns = self.step.every_ns
        parts: dict[int, list[Row]] = {}
        for number, row in enumerate(row for segment in segments for row in segment.rows):
            part = number if every_ns is None else row.time // every_ns
            parts.setdefault(part, []).append(row)
        changes: list[Change] = []
        for part, rows in parts.items():
            changes += self.forgotten(rows[0].time)
            before = {row.values[0]: self.result(row.values[0]) for row in rows}
            for row in rows:
                self.count(row)
            for key, old in before.items():
                time = rows[0].time if every_ns is None else (part + 1) * every_ns - 1
                new = self.result(key)
                update = REVISED.bit if old and new else 0
                changes += [(time, RETRACTED.bit | update, old)] if old else []
                changes += [(time, update, new)] if new else []
        return changes + self.forgotten(reached(segments))

    def forgotten(self, until: int) -> list[Change]:
        """Forget keys that got no row for long; those that go at one time have any order."""
        keep = self.step.keep_ns
        if keep is None:
            return []
        ends = {key: (time // keep + 2) * keep for key, time in self.newest.items()}
        old = sorted((end, key) for key, end in ends.items() if end <= until and self.result(key))
        made = [(end - 1, RETRACTED.bit, self.result(key)) for end, key in old]
        for key in [key for key, end in ends.items() if end <= until]:
            del self.newest[key]
            self.rows.pop(key, None)
        return made

    def count(self, row: Row) -> None:
        key, x, n, sign = row.values
        self.newest[key] = row.time
        rows = self.rows.setdefault(key, [])
        is_like = sign > 0 or (
            any(n == other[1] for other in rows)
            and (x is None or any(x == other[0] for other in rows))
        )
        if not is_like:
            self.missing += 1
            return
        if sign < 0:
            rows.remove((x, n) if (x, n) in rows else self._nearest(rows, x, n))
        else:
            rows.append((x, n))

    @staticmethod
    def _nearest(rows: list[tuple[Any, ...]], x: Any, n: int) -> tuple[Any, ...]:
        raise AssertionError(f"draw only rows that are there: {x}, {n} of {rows}")

    def result(self, key: int) -> tuple[Any, ...]:
        rows = self.rows.get(key, [])
        if not rows:
            return ()
        xs = [x for x, _ in rows if x is not None]
        ns = [n for _, n in rows]
        return (
            *(key, len(rows), sum(x is not None and n > 4 for x, n in rows)),
            *(fsum_of(xs) if xs else None, sum(ns), sum(ns) / len(ns)),
            *(min(xs, default=None), max(ns), len(set(ns))),
        )


def fsum_of(xs: Sequence[float]) -> float:
    finite = [x for x in xs if isfinite(x)]
    return inf if len(finite) < len(xs) else float(sum(map(Fraction, finite)))


def whole(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments in which only rows that are there are taken back."""
    known: list[tuple[Any, ...]] = []
    made = []
    for segment in segments:
        rows = []
        for row in segment.rows:
            *values, sign = row.values
            if sign > 0:
                known.append(tuple(values))
            elif tuple(values) in known:
                known.remove(tuple(values))
            else:
                known.append(tuple(values))
                sign = 1
            rows.append(replace(row, values=(*values, sign)))
        made.append(replace(segment, rows=rows))
    return made


def marked(reads: Iterator[GateRead]) -> Iterator[GateRead]:
    def own(rows: Batch | None) -> Batch | None:
        if rows is None:
            return None
        sign = rows.columns["sign"]
        return rows.with_(marks=np.where(np.asarray(sign) < 0, RETRACTED.bit, 0).astype(np.uint8))

    for read in reads:
        yield replace(read, ports=[own(rows) for rows in read.ports])


def changes_of(machine: TotalsMachine, reads: Iterator[GateRead]) -> list[Any]:
    changes: list[Any] = []
    for read in reads:
        rows = machine.work(read, 0).rows
        if rows is not None:
            marks = np.zeros(len(rows), np.uint8) if rows.marks is None else rows.marks
            leaves = leaves_of([rows])
            changes += [
                (row[0], repr(int(mark)), *row[2:]) for mark, row in zip(marks, leaves, strict=True)
            ]
    return changes


def as_text(changes: Sequence[Change]) -> list[Any]:
    return [tuple(map(repr, (time, mark, *values))) for time, mark, values in changes]


@pytest.mark.parametrize("every_ns", [None, 7])
@given(segments=streams([VALUES], late=False), cut=chance)
def test_changes_are_those_of_one_row_at_a_time(
    every_ns: int | None, segments: list[Segment], cut: Random
) -> None:
    step, segments = replace(STEP, every_ns=every_ns), whole(segments)
    machine, literal = TotalsMachine(step, most_kept_rows=10**6), LiteralTotals(step)
    made = changes_of(machine, marked(reads_of(segments, [ROWS], cut)))
    assert made == as_text(literal.run(segments))
    assert machine.missing_rows == literal.missing == 0


@pytest.mark.parametrize(("every_ns", "keep_ns"), [(None, 3), (None, 10), (7, 14)])
@given(segments=streams([DYADIC], late=False), cut=chance)
def test_keys_go_that_no_row_touches(
    every_ns: int | None, keep_ns: int, segments: list[Segment], cut: Random
) -> None:
    of_input = pa.schema([field for field in ROWS if field.name in ("x", "n")])
    for retracts in (True, False):
        step = replace(
            STEP, every_ns=every_ns, keep_ns=keep_ns, of_input=of_input, retracts=retracts
        )
        machine, literal = TotalsMachine(step, most_kept_rows=10**6), LiteralTotals(step)
        made = changes_of(machine, reads_of(segments, [ROWS], cut))
        assert sorted(made) == sorted(as_text(literal.run(segments)))
        again = TotalsMachine(step, most_kept_rows=10**6)
        assert changes_of(again, reads_of(segments, [ROWS])) == made
        assert machine.rows_held == 0


def test_changes_that_come_late_count_and_none_is_lost() -> None:
    machine = TotalsMachine(STEP, most_kept_rows=10)
    columns = {"k": [1, 1], "x": [0.5, 1.5], "n": [3, 4], "sign": [1, 1]}
    machine.work(gate_read([batch_of([5, 6], columns)], [None], 9, 0, 9), 0)
    late = batch_of([6, 6], {"k": [1, 1], "x": [1.5, 2.5], "n": [4, 5], "sign": [-1, 1]})
    halves = np.array([RETRACTED.bit | REVISED.bit, REVISED.bit], np.uint8)
    made = changes_of(machine, iter([gate_read([None], [late.with_(marks=halves)], 9, 0, 9)]))
    assert [row[0] for row in made] == ["9"] * 4
    assert made[-1][3:7] == ("2", "1", "3.0", "8")
    assert machine.late_dropped == 0


@given(segments=streams([VALUES], late=False), cut=chance, other=chance)
def test_rows_that_were_never_there_change_nothing_however_reads_are_cut(
    segments: list[Segment], cut: Random, other: Random
) -> None:
    first, second = (TotalsMachine(STEP, most_kept_rows=10**6) for _ in range(2))
    made = changes_of(first, marked(reads_of(segments, [ROWS], cut)))
    assert changes_of(second, marked(reads_of(segments, [ROWS], other))) == made
    assert first.missing_rows == second.missing_rows
    # What leaves sums up to what is there: each deletion and old half takes out an equal row.
    there: list[Any] = []
    for _, mark, *values in made:
        if int(mark) & RETRACTED.bit:
            there.remove(values)
        else:
            there.append(values)
    assert len({values[0] for values in there}) == len(there)


@given(segments=streams([DYADIC], late=False), cut=chance)
def test_inserts_alone_make_the_same_changes_without_counted_values(
    segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, retracts=False)
    machine, counted = (TotalsMachine(s, most_kept_rows=10**6) for s in (step, STEP))
    expected = changes_of(counted, reads_of(segments, [ROWS]))
    assert changes_of(machine, reads_of(segments, [ROWS], cut)) == expected


@pytest.mark.parametrize(
    ("xs", "sums"),
    [
        ([(1.0, 1), (nan, 1), (nan, -1), (2.0, 1)], [1.0, nan, 1.0, 3.0]),
        ([(1.0, 1), (inf, 1), (-inf, 1), (inf, -1), (-inf, -1)], [1.0, inf, nan, -inf, 1.0]),
        ([(1.0, 1), (1e300, 1), (1e300, -1)], [1.0, 1e300, 1.0]),
        ([(-1e308, 1), (-1e308, 1), (-1e308, -1)], [-1e308, -inf, -1e308]),
        ([(0.1, 1), (0.2, 1), (0.3, 1), (0.1, -1), (0.2, -1)], [0.1, 0.1 + 0.2, 0.6, 0.5, 0.3]),
    ],
)
def test_a_float_that_was_taken_back_leaves_nothing_in_sums(
    xs: list[tuple[float, int]], sums: list[float]
) -> None:
    first, second = (TotalsMachine(STEP, most_kept_rows=100) for _ in range(2))
    made = []
    for number, (x, sign) in enumerate(xs):
        rows = batch_of([number], {"k": [1], "n": [1], "sign": [sign]})
        rows.columns["x"] = np.array([x])
        (read,) = marked(iter([gate_read([rows], [None], number, 0, number)]))
        made.append(changes_of(first, iter([read]))[-1][5])
        restore(second, from_plain(to_plain(save(first))))
        first, second = second, TotalsMachine(STEP, most_kept_rows=100)
    assert made == list(map(repr, sums))


def test_a_key_begins_again_at_0_in_reads_without_nulls_too() -> None:
    machine = TotalsMachine(STEP, most_kept_rows=100)
    xs = [(0.5, 5, 1), (None, 5, -1), (-1.0, 3, 1), (0.5, 5, 1)]
    made: list[Any] = []
    for number, (x, n, sign) in enumerate(xs):
        rows = batch_of([number], {"k": [1], "n": [n], "sign": [sign]})
        rows.columns["x"] = Nullable(np.array([x or 0.0]), np.array([x is not None]))
        if x is not None:
            rows.columns["x"] = np.array([x])
        made += changes_of(machine, marked(iter([gate_read([rows], [None], number, 0, number)])))
    assert made[-1][2:5] == ("1", "2", "1")


def test_a_row_that_was_never_there_is_an_error() -> None:
    machine = TotalsMachine(replace(STEP, on_missing="error"), most_kept_rows=10)
    rows = batch_of([5, 6], {"k": [1, 2], "x": [0.5, 1.5], "n": [1, 1], "sign": [1, -1]})
    read = gate_read([rows.with_(marks=np.array([0, 4], np.uint8))], [None], 6, 0, 6)
    with pytest.raises(OperatorError, match="taken back that was never there") as problem:
        machine.work(read, 0)
    assert "'x': 1.5" in str(problem.value)
    assert "write on_missing='count'" in str(problem.value)


def test_a_sum_that_does_not_fit_names_its_row() -> None:
    rows = batch_of([5, 6], {"k": [1, 1], "x": [0.5, 1.5], "n": [2**62, 2**62]})
    read = gate_read([rows], [None], 6, 0, 6)
    with pytest.raises(OperatorError, match="step 'totals': sum of column 'n'") as problem:
        TotalsMachine(STEP, most_kept_rows=10).work(read, 0)
    assert "row with event_time_ns=6:\n  {'k': 1" in str(problem.value)


def test_keys_without_rows_are_forgotten_and_others_are_limited() -> None:
    machine = TotalsMachine(STEP, most_kept_rows=2_500)
    for start in range(0, 10_000, 500):
        keys = np.arange(start, start + 500)
        rows = batch_of([start] * 1_000, {"k": np.tile(keys, 2), "n": np.tile(keys, 2)})
        rows.columns["x"] = np.tile(keys / 2, 2)
        marks = np.repeat(np.array([0, RETRACTED.bit], np.uint8), 500)
        machine.work(gate_read([rows.with_(marks=marks)], [None], start, 0, start), 0)
    keys = np.arange(2_000)
    rows = batch_of([10_001] * 2_000, {"k": keys, "n": keys, "x": keys / 2})
    with pytest.raises(OperatorError, match="keys and values are kept, more than most_kept_rows"):
        machine.work(gate_read([rows], [None], 10_001, 0, 10_001), 0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"retracts": False}, ["give it a window=", "keep='30d'", "most_kept_rows=…"]),
        (
            {"retracts": False, "keep_ns": 5},
            ["give it a window=", "a shorter keep=", "most_kept_rows=…"],
        ),
        ({"retracts": False, "keys": ()}, ["give it a window=", "most_kept_rows=…"]),
        ({"retracts": True}, ["keep='30d'", "most_kept_rows=…"]),
        ({"retracts": True, "keys": ()}, ["most_kept_rows=…"]),
    ],
)
def test_too_many_keys_and_values_are_refused_with_ways_out_that_work(
    change: dict[str, Any], says: list[str]
) -> None:
    values = pa.schema({"n": pa.int64()})
    distinct = {"n": Aggregate("count_distinct", "n")}
    keys = change.get("keys", STEP.keys)
    schema = pa.schema(dict.fromkeys([*keys, "n"], pa.int64()))
    step = replace(STEP, schema=schema, aggregates=distinct, of_input=values, **change)
    numbers = np.arange(20)
    rows = batch_of([1] * 20, {"k": numbers, "n": numbers, "x": numbers / 2})
    with pytest.raises(OperatorError) as problem:
        TotalsMachine(step, most_kept_rows=10).work(gate_read([rows], [None], 1, 0, 1), 0)
    fact, detail, way_out = str(problem.value).splitlines()
    assert "keys and values are kept, more than most_kept_rows=10" in fact
    assert "to the end of the input" in detail
    ways = ["give it a window=", "keep='30d'", "a shorter keep=", "most_kept_rows=…"]
    assert [way for way in ways if way in way_out] == says


LOG = {
    "t": [1, 1, 2, 2, 3, 4],
    "op": ["+I", "+I", "-U", "+U", "+I", "-D"],
    "who": ["ann", "bob", "ann", "ann", "bob", "ann"],
    "amount": [5, 9, 5, 4, 1, 4],
}


def stream(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("orders", sw.table(LOG), event_time="t", time_unit="s")


def results(made: Any) -> list[tuple[Any, ...]]:
    flow = sw.Dataflow("orders")
    made(stream(flow)).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return [tuple(row.values()) for row in job.result("out").to_pylist()]


def test_results_change_with_each_row() -> None:
    made = results(lambda s: s.key_by("who").aggregate(n=sw.count(), last=sw.last("amount")))
    assert made == [
        ("ann", 1, 5, "insert"),
        ("bob", 1, 9, "insert"),
        ("ann", 2, 5, "update"),
        ("ann", 3, 4, "update"),
        ("bob", 2, 1, "update"),
        ("ann", 4, 4, "update"),
    ]


def test_totals_change_once_in_each_second_where_asked() -> None:
    made = results(lambda s: s.key_by("who").aggregate(total=sw.sum("amount"), every="2s"))
    assert made == [
        ("ann", 5, "insert"),
        ("bob", 9, "insert"),
        ("ann", 14, "update"),
        ("bob", 10, "update"),
        ("ann", 18, "update"),
    ]


def test_rows_are_taken_back_and_results_of_results_too() -> None:
    made = results(
        lambda s: s.changes("op").aggregate(by="who", total=sw.sum("amount"), most=sw.max("amount"))
    )
    assert made[-2:] == [("bob", 10, 9, "update"), ("ann", 4, 4, "delete")]
    made = results(lambda s: s.aggregate(by="who", n=sw.count()).aggregate(by="n", who=sw.count()))
    there: dict[int, int] = {}
    for n, who, change in made:
        there = (
            {**there, n: who} if change != "delete" else {m: w for m, w in there.items() if m != n}
        )
    assert there == {4: 1, 2: 1}


@pytest.mark.parametrize(
    ("made", "kind", "says"),
    [
        (lambda s: s.aggregate(by="who"), FlowError, "aggregate has no columns"),
        (lambda s: s.aggregate(by="whom", n=sw.count()), SlackwaterError, "nearest is 'who'"),
        (lambda s: s.aggregate(by="who", who=sw.count()), DuplicateName, "named 'who'"),
        (lambda s: s.aggregate(n=sw.count(), every="0s"), SettingError, "every='0s'"),
        (
            lambda s: s.aggregate(n=sw.count(), every="1s", window=sw.tumbling("1s")),
            SettingError,
            "every='1s' is for an aggregate without window=",
        ),
        (
            lambda s: s.aggregate(n=sw.count(), late="correct"),
            SettingError,
            "without window= there is none",
        ),
        (
            lambda s: s.aggregate(m=sw.median("amount")),
            FlowError,
            "give it a window=, such as sw.tumbling('1h'), or sw.everything() for one result at "
            "the end; or use all, any, count",
        ),
        (
            lambda s: s.changes("op").aggregate(m=sw.median("amount")),
            FlowError,
            "as the input takes rows back; aggregate before rows change, or use all, any, count",
        ),
        (
            lambda s: s.changes("op").aggregate(l=sw.last("amount")),
            FlowError,
            "would need all rows of its key, as the input takes rows back",
        ),
        (
            lambda s: s.aggregate(by="who", n=sw.count()).over(m=sw.sum("n")),
            FlowError,
            "whose rows change",
        ),
    ],
)
def test_what_has_no_totals_is_refused(made: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as problem:
        made(stream(sw.Dataflow("orders")))
    assert says in str(problem.value)
