"""DuckDB's MATCH_RECOGNIZE: rows of a table that are neighbours by a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, results, rows_of

Row = dict[str, Any]
Pattern = Callable[[], Any]
event, seq, either, repeat = (
    sw.patterns.event,
    sw.patterns.seq,
    sw.patterns.either,
    sw.patterns.repeat,
)


@cache
def _read(path: Path) -> dict[str, list[Any]]:
    read: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return read


def _answer(case: Case) -> list[Any]:
    """Return the answer of a case, whose name is that of the file's with `_` for spaces."""
    named = _read(case.folder / "duckdb" / "expected.json")
    name = case.name.removeprefix("duckdb-")
    return next(rows for key, rows in named.items() if key.replace(" ", "_") == name)


DUCKDB = Suite("DuckDB MATCH_RECOGNIZE", answer=_answer, is_pattern=lambda _: True)
TABLES = {  # {table: columns; `t` is the order of its rows}
    "EVT": {"k": "int64", "t": "int64", "x": "string"},
    "TICKS": {"k": "string", "t": "int64", "x": "int64"},
    "SEQ": {"t": "int64", "x": "int64"},
    "TIERS": {"t": "int64", "x": "string", "amount": "int64"},
    "PERM": {"t": "int64", "x": "string"},
    "TEST": {"k": "int64", "t": "int64", "x": "float64", "y": "float64"},
    "NAV": {"t": "int64", "x": "int64"},
    "SIGN": {"k": "string", "t": "int64", "x": "string"},
    "PAGES": {"k": "string", "t": "int64", "x": "string", "items": "int64"},
}
X = sw.col("x")
NEXT: dict[str, Any] = {"selection": "first", "consumption": "zero"}
"""After a match: on to the next row."""


def _number(value: Any) -> Any:
    """Return a time of day in minutes, another value as it is."""
    if isinstance(value, str) and value[2:3] == ":":
        return int(value[:2]) * 60 + int(value[3:])
    return value


def matches(case: Case, table: str, make: Pattern, within: int | str, **options: Any) -> list[Row]:
    """Return the matches of a pattern among the rows of a table, with `events` as a list."""

    def pattern(flow: sw.Dataflow) -> sw.Stream:
        rows = [
            list(map(_number, row)) for row in _read(case.folder / "duckdb" / "rows.json")[table]
        ]
        stream = rows_of(flow, rows, TABLES[table], time_unit="s", out_of_order="sort")
        by = ["k"] if "k" in TABLES[table] else []
        return stream.pattern(make(), within=within, by=by, id="t", **options)

    return [{**row, "events": json.loads(row["events"])} for row in results(pattern)]


def a(name: str = "A") -> Any:
    """Return an event of a row whose x is 1."""
    return event(name, where=X == 1)


def b(name: str = "B") -> Any:
    """Return an event of a row whose x is 0."""
    return event(name, where=X == 0)


def last_of(
    *names: str, within: int, table: str = "SEQ", **options: Any
) -> Callable[[Pattern], Pattern]:
    """Register a pattern whose answer is the last row's number of each match."""

    def register(make: Pattern) -> Pattern:
        @DUCKDB.translation(*(f"duckdb-{name}" for name in names))
        def run(case: Case) -> Rows:
            rows = matches(case, table, make, within, **options)
            return [[row["events"][-1][1]] for row in rows]

        return make

    return register


for name, make, length in (
    ("(A)", lambda: seq(a()), 1),
    ("(A_A)", lambda: seq(a("A"), a("B")), 2),
    ("(A{3})", lambda: seq(repeat(a(), 3)), 3),
    ("(A_B)", lambda: seq(a(), b()), 2),
    ("(B_A)", lambda: seq(b(), a()), 2),
    ("(A_B_A)", lambda: seq(a(), b(), a("C")), 3),
    ("(A_|_B)", lambda: either(a(), b()), 1),
    ("(B_Z),_Z_undefined", lambda: seq(b(), event("Z")), 2),
):
    last_of(name, within=length)(make)


@last_of("((A_B)_|_(B_A))", within=2, table="PERM")
def either_order() -> Any:
    first, second = event("A", where=X == "a"), event("B", where=X == "b")
    return sw.patterns.all_of(first, second)


def of_any(count: int) -> Any:
    """Return a pattern of so many rows of any kind."""
    return seq(*(event(name) for name in "ABCD"[:count]))


@DUCKDB.translation("duckdb-skip_past_last_row_(A_A)", "duckdb-reluctant_plus_(A+?_B)")
def two_rows(case: Case) -> Rows:
    rows = matches(case, "EVT", lambda: of_any(2), 2)
    return [[row["k"], row["A_t"], 2] for row in rows]


@DUCKDB.translation("duckdb-skip_to_next_row_(A_A)")
def next_two_rows(case: Case) -> Rows:
    rows = matches(case, "EVT", lambda: of_any(2), 2, **NEXT)
    return [[row["k"], row["A_t"], 2] for row in rows]


@DUCKDB.translation("duckdb-reluctant_range_(A{1,3}?)")
def single_rows(case: Case) -> Rows:
    return [[row["k"], row["A_t"], 1] for row in matches(case, "EVT", lambda: of_any(1), 1)]


@DUCKDB.translation("duckdb-anchor_end_(A{2}_$)")
def last_two_rows(case: Case) -> Rows:
    def last() -> Any:
        return seq(event("A"), event("B"), sw.patterns.no(event("N")))

    rows = matches(case, "EVT", last, "1d", skip="next", consumption="zero", selection="last")
    return [[row["k"], row["A_t"], 2] for row in rows]


@DUCKDB.translation("duckdb-null_at_match_edge_(A_A),_true")
def two_ticks(case: Case) -> Rows:
    rows = matches(case, "TICKS", lambda: of_any(2), 2)
    return [[row["k"], row["A_t"], row["B_t"]] for row in rows]


@DUCKDB.translation("duckdb-first/last_with_offsets_(A{4})")
def four_ticks(case: Case) -> Rows:
    rows = matches(case, "TICKS", lambda: of_any(4), 4)
    return [[row["k"], *(row[f"{name}_x"] for name in "ABDC")] for row in rows]


def _permuted(case: Case, *letters: str) -> list[Row]:
    def make() -> Any:
        return sw.patterns.all_of(*(event(each.upper(), where=X == each) for each in letters))

    return matches(case, "EVT", make, len(letters))


@DUCKDB.translation("duckdb-permute_two")
def permuted_two(case: Case) -> Rows:
    return [[row["k"], row["events"][0][1], 2] for row in _permuted(case, "a", "b")]


@DUCKDB.translation("duckdb-permute_three")
def permuted_three(case: Case) -> Rows:
    rows = _permuted(case, "a", "b", "c")
    return [[row["k"], "".join(name for name, _ in row["events"])] for row in rows]


@DUCKDB.translation("duckdb-permute_preference_(both_fit)")
def permuted_either_way(case: Case) -> Rows:
    both = matches(case, "EVT", lambda: sw.patterns.all_of(event("X"), event("Y")), 2)
    return [[row["k"], row["events"][0][1], *(name for name, _ in row["events"])] for row in both]


@DUCKDB.translation("duckdb-(A_B_A_C_A),_FIRST_and_LAST_of_A")
def five_values(case: Case) -> Rows:
    def five() -> Any:
        return seq(*(event(f"E{n}") for n in range(5)))

    return [[row[f"E{n}_x"] for n in (0, 2, 4)] for row in matches(case, "NAV", five, 5)]


def _letter(name: str, letter: str) -> Any:
    return event(name, where=X == letter)


def bad_then_good() -> Any:
    return seq(repeat(_letter("BAD", "D"), at_least=5), _letter("GOOD", "G"))


@DUCKDB.translation("duckdb-(BAD{5,}_GOOD),_who")
def who(case: Case) -> Rows:
    rows = matches(case, "SIGN", bad_then_good, "1d", skip="next", selection="last")
    return sorted({(row["k"],) for row in rows})


@DUCKDB.translation("duckdb-(BAD{5,}_GOOD),_all_tries_counted")
def tries(case: Case) -> Rows:
    rows = matches(case, "SIGN", bad_then_good, "1d", selection="last")
    return [[row["k"], len(row["events"]) - 1] for row in rows]


LOOKS = repeat(_letter("LOOK", "P"), at_least=2)
BASKET = event("BASKET", where=(X == "C") & (sw.col("items") > 0))


@DUCKDB.translation("duckdb-(LOOK{2,}_BASKET)")
def baskets(case: Case) -> Rows:
    return [[row["k"]] for row in matches(case, "PAGES", lambda: seq(LOOKS, BASKET), "1d")]


@DUCKDB.translation("duckdb-(LOOK{2,}_BASKET_$)")
def last_baskets(case: Case) -> Rows:
    def last() -> Any:
        return seq(LOOKS, BASKET, sw.patterns.no(event("N")))

    return [[row["k"], row["BASKET_t"]] for row in matches(case, "PAGES", last, "1d")]


last_of("(A_B),_nothing_asked", within=2, table="TIERS")(lambda: of_any(2))
last_of("(A+)_greedy", within=6)(lambda: repeat(a(), at_least=1))
DUCKDB.differs(
    "duckdb-(A+)_greedy",
    "a match leaves with its earliest end, so a run of rows is a match for each; theirs is greedy",
    extra=["1", "4", "5"],
)
NEITHER = "a greedy end as two patterns: with the further row, or with a `no` for it"


@DUCKDB.translation("duckdb-bounded_(A{2,3})", way="detour", note=NEITHER)
def two_or_three(case: Case) -> Rows:
    def made() -> Any:
        two = seq(event("A"), event("B"), sw.patterns.no(event("N")))
        return either(seq(event("C"), event("D"), event("E")), two)

    rows = matches(case, "EVT", made, "2s", skip="next")
    return [[row["k"], row["events"][0][1], len(row["events"])] for row in rows]


@DUCKDB.translation("duckdb-optional_tail_(A_B?)", way="detour", note=NEITHER)
def optional_tail(case: Case) -> Rows:
    def made() -> Any:
        alone = seq(_letter("A", "a"), sw.patterns.no(_letter("N", "b")))
        return either(seq(_letter("C", "a"), _letter("B", "b")), alone)

    rows = matches(case, "EVT", made, "1s")
    return [[row["k"], row["events"][0][1], len(row["events"])] for row in rows]


Y = sw.col("y")


def _two_columns(case: Case, first: sw.Expr, second: sw.Expr, **options: Any) -> Rows:
    def made() -> Any:
        return seq(event("A", where=first), event("B", where=second))

    rows = matches(case, "TEST", made, 2, **options)
    return [[row["k"], row["A_x"], row["B_x"]] for row in rows]


@DUCKDB.translation("duckdb-(A_B),_skip_to_next_row")
def two_columns_next(case: Case) -> Rows:
    return _two_columns(case, X - 1 > 0.11, Y - 10 > 0.2, **NEXT)


@DUCKDB.translation("duckdb-(A_B),_skip_past_last_row")
def two_columns_past(case: Case) -> Rows:
    return _two_columns(case, X / 10 > 0.12, (Y - 10) / 10 > 0.22)


# What is next to the first row is the second one itself.
last_of("(P_Q),_Q_reads_NEXT(P)", within=2, table="TIERS")(
    lambda: seq(_letter("P", "lo"), _letter("Q", "mid"))
)
GREEDY = "greedy runs of neighbours, `PREV`, measures of a match"
DUCKDB.lacks(
    GREEDY,
    *(
        f"duckdb-{name}"
        for name in (
            "v_shape_(STRT_DOWN+_UP+)",
            "(DIP{3,}_RISE{3,})",
            "(OPEN_SAME*)_visits_by_gaps",
            "SUBSET,_AVG_over_a_match",
        )
    ),
)
DUCKDB.lacks(
    "a row for each row of a match, with its variable and the number of the match",
    *(
        f"duckdb-{name}"
        for name in (
            "MATCH_NUMBER_in_DEFINE_(A+_|_B+)",
            "all_rows_with_classifier",
            "exclusion_({-_STRT_-}_DOWN+_UP+)",
        )
    ),
)
DUCKDB.lacks(
    "a predicate that reads one event of a repetition, by its place",
    "duckdb-(BAD{5,}_GOOD)_within_1_h_of_the_first_BAD",
)
DUCKDB.lacks("a repetition from 0, and greedy runs", "duckdb-(A+_B*_C+)")
DUCKDB.lacks("the begin of the input as a part of a pattern", "duckdb-anchor_start_(^_A+)")
DUCKDB.lacks("matches of no rows", "duckdb-empty_matches_(Z*)")
