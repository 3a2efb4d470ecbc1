"""Trino's row pattern matching: rows of one table, by their number."""

from __future__ import annotations

import json

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, results, rows_of

TRINO = Suite("Trino MATCH_RECOGNIZE", is_pattern=lambda _: True)
VALUE = sw.col("value")


@TRINO.translation("trino-concat")
def concat(case: Case) -> Rows:
    def falling_then_level(flow: sw.Dataflow) -> sw.Stream:
        first = sw.patterns.event("A")
        lower = sw.patterns.event("B", where=VALUE < first["value"])
        level = sw.patterns.event("C", where=VALUE == lower["value"])
        rows = rows_of(flow, case.input, {"t": "int64", "value": "int64"}, time_unit="s")
        return rows.pattern(
            sw.patterns.seq(first, lower, level), within=3, selection="last", id="t"
        )

    return [[json.loads(row["events"])] for row in results(falling_then_level)]


EACH_ROW = "a row for each row of a match, with its variable and the number of the match"
TRINO.lacks(
    EACH_ROW,
    *(
        f"trino-{name}"
        for name in (
            "simple",
            "alternation",
            "quantifier-B+",
            "quantifier-B+?",
            "quantifier-B{2,}",
            "quantifier-B{2,}?",
            "exclusion",
            "backref",
        )
    ),
)
TRINO.lacks("matches of no rows", "trino-empty", "trino-quantifier-B?")
TRINO.lacks("rows that are in no match, beside the matches", "trino-unmatched")
