"""Siddhi's patterns and sequences: events of streams that follow each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, Way, heard, results, rows_of

SIDDHI = Suite("Siddhi patterns", is_pattern=lambda _: True)
COLUMNS = {"stream": "int64", "symbol": "string", "price": "float64", "volume": "int64"}
PRICE, SYMBOL = sw.col("price"), sw.col("symbol")
LONG = "1h"
"""Longer than all rows of these streams."""
event, seq, either, repeat, no = (
    sw.patterns.event,
    sw.patterns.seq,
    sw.patterns.either,
    sw.patterns.repeat,
    sw.patterns.no,
)
Pattern = Callable[[], Any]


def stream(flow: sw.Dataflow, case: Case) -> sw.Stream:
    """Return the events of a case: stream, symbol, price, volume, second."""
    rows = [[*row[:4], round(row[4] * 1000)] for row in case.input]
    return rows_of(flow, rows, {**COLUMNS, "t": "int64"}, time_unit="ms")


def pattern(
    *names: str,
    columns: Sequence[str] = (),
    names_alone: bool = False,
    within: str | int = LONG,
    way: Way = "straight",
    note: str = "",
    **options: Any,
) -> Callable[[Pattern], Pattern]:
    """Register a pattern as the translation of some cases; `columns` are those of its answer.

    Without `columns` the answer is the events of each match: their names, with their prices unless
    `names_alone`.
    """

    def register(make: Pattern) -> Pattern:
        def matches(flow: sw.Dataflow, case: Case) -> sw.Stream:
            rows = stream(flow, case).with_columns(text=PRICE.cast("string"))
            return rows.pattern(make(), type="stream", within=within, id="text", **options)

        @SIDDHI.translation(*(f"siddhi-{name}" for name in names), way=way, note=note)
        def run(case: Case) -> Rows:
            rows = results(lambda flow: matches(flow, case))
            if columns:
                return [[row[name] for name in columns] for row in rows]
            matched = [json.loads(row["events"]) for row in rows]
            if names_alone:
                return [[name for name, _ in each] for each in matched]
            return [[[name, float(text)] for name, text in each] for each in matched]

        return make

    return register


def first(name: str = "A", stream: int = 1, price: float = 20) -> Any:
    """Return an event of a stream with a price above another."""
    return event(name, of_type=stream, where=PRICE > price)


EACH: dict[str, Any] = {"selection": "each", "consumption": "zero"}


@pattern("every-3", columns=("A_symbol", "B_symbol"), **EACH)
@pattern("within-1", columns=("A_symbol", "B_symbol"), within="1s", **EACH)
def two() -> Any:
    a = first()
    return seq(a, event("B", of_type=2, where=PRICE > a["price"]))


@pattern("every-7", columns=("A_price", "B_price"))
def pairs() -> Any:
    return seq(first("A"), first("B"))


@pattern(
    "within-5", "within-6", "within-7", columns=("A_volume", "B_volume", "C_volume"), within="5s"
)
def three() -> Any:
    return seq(*(event(name, of_type=1) for name in "ABC"))


@pattern("count-4", columns=("B_price",))
def counted() -> Any:
    return seq(repeat(first(), 2, 5), first("B", 2))


@pattern("or-1", "or-3", names_alone=True)
def either_second() -> Any:
    a = first()
    dearer = event("B", of_type=2, where=PRICE > a["price"])
    return seq(a, either(dearer, event("C", of_type=2, where=SYMBOL == "IBM")))


@pattern("and-4", "and-5", way="detour", note="the events of an `all_of` by the column `events`")
def both_second() -> Any:
    a = first()
    dearer = event("B", of_type=2, where=PRICE > a["price"])
    return seq(a, sw.patterns.all_of(dearer, event("C", of_type=2, where=SYMBOL == "IBM")))


@pattern("and-7", way="detour", note="the events of an `all_of` by the column `events`")
def both_first() -> Any:
    both = sw.patterns.all_of(first(), first("B", 2, 30))
    return seq(both, event("C", of_type=2, where=SYMBOL == "IBM"))


@pattern("or-8", "or-9", "or-10", names_alone=True)
def either_first() -> Any:
    return seq(either(first(), first("B", 2, 30)), event("C", of_type=2, where=SYMBOL == "IBM"))


@pattern("sequence-7", "sequence-9", within=2, **EACH)
def neighbours() -> Any:
    x = event("X", of_type=2, where=PRICE > 20)
    dearer = event("U", of_type=2, where=PRICE > x["price"])
    return seq(x, either(dearer, event("I", of_type=2, where=SYMBOL == "IBM")))


@pattern("absent-2", "absent-3", "absent-4", columns=("A_symbol",), within="1s")
def absent_last() -> Any:
    a = first()
    return seq(a, no(event("B", of_type=2, where=PRICE > a["price"])))


@pattern("absent-9", "absent-10", columns=("A_symbol", "B_symbol"), within="1s")
def absent_third() -> Any:
    return seq(first("A", 1, 10), first("B", 2, 20), no(first("C", 3, 30)))


@pattern("absent-12", columns=("A_symbol", "C_symbol"))
def absent_between() -> Any:
    return seq(first("A", 1, 10), no(first("B", 2, 20)), first("C", 3, 30))


@pattern("every-10", columns=("A_volume", "A_symbol"), skip="any")
def failures() -> Any:
    a = event("A", of_type=1)
    more = event("M", of_type=1, where=SYMBOL == a["symbol"])
    return seq(a, repeat(more, at_least=2), event("S", of_type=2, where=SYMBOL == a["symbol"]))


PAIR_NOTE = "two patterns, one after the other: pairs, then what follows them"


@SIDDHI.translation("siddhi-every-4", "siddhi-every-5", way="detour", note=PAIR_NOTE)
def every_pair(case: Case) -> Rows:
    return _pairs_and_then(case, within_ms=3_600_000)


@SIDDHI.translation("siddhi-within-3", way="detour", note=PAIR_NOTE)
def every_pair_within(case: Case) -> Rows:
    return _pairs_and_then(case, within_ms=2_000)


def _pairs_and_then(case: Case, within_ms: int) -> Rows:
    def matches(flow: sw.Dataflow) -> sw.Stream:
        rows = stream(flow, case)
        both = rows.pattern(seq(first("A"), first("B")), type="stream", within=LONG)
        both = both.select(
            stream=sw.lit(1), begin="A_t", first="A_price", second="B_price", price="A_price"
        )
        others = rows.filter(sw.col("stream") == 2).select(
            stream=sw.lit(2), begin="t", first="price", second="price", price="price"
        )
        pair = event("P", of_type=1)
        dearer = event("C", of_type=2, where=PRICE > pair["first"])
        after = both.merge(others).pattern(seq(pair, dearer), type="stream", within=LONG, **EACH)
        in_time = sw.col("C_begin") - sw.col("P_begin") <= within_ms
        return after.filter(in_time).select("P_first", "P_second", "C_price")

    return results(matches)


SIDDHI.differs(
    "siddhi-and-5",
    "an `all_of` takes different events; theirs lets one event be both",
    extra=["[A, 55.6] [B, 72.7] [C, 75.7]"],
    lacking=[0],
)


@SIDDHI.translation("siddhi-length-batch")
def four_rows(case: Case) -> Rows:
    def sums(flow: sw.Dataflow) -> sw.Stream:
        rows = [[symbol, price, n] for n, (symbol, price) in enumerate(case.input)]
        columns = {"symbol": "string", "price": "int64", "t": "int64"}
        prices = heard(flow, rows, columns, goes_on=True, time_unit="s", disorder="1ms")
        return prices.aggregate(window=sw.rows(4), total=sw.sum("price")).select("total")

    # Their input goes on: the last rows wait for others.
    return results(sums, stop_s=len(case.input))


SIDDHI.lacks("`every` on a part in the middle of a pattern", "siddhi-every-6")
SIDDHI.lacks("a repetition from 0", "siddhi-count-7")
SIDDHI.lacks(
    "a greedy repetition from 0 whose events are read by place",
    *(f"siddhi-sequence-{n}" for n in (4, 5, 6)),
)
SIDDHI.lacks("a `no` in front of a pattern, for a time", *(f"siddhi-absent-{n}" for n in (5, 6, 8)))
SIDDHI.lacks("an outer join of windows of a number of rows", "siddhi-outer-length")
