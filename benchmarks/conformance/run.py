"""Suites that others wrote, as flows of ours: each verdict, beside what is pinned in code.

PAGE=<file> in the environment writes the page of the verdicts there. KSQLDB=<folder> names a
checkout of ksqlDB, whose cases are not here without it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.conformance.arroyo import ARROYO
from benchmarks.conformance.beam import BEAM
from benchmarks.conformance.cases import VERDICTS, Case, Suite, Verdict, read_cases
from benchmarks.conformance.duckdb import DUCKDB
from benchmarks.conformance.flink import FLINK
from benchmarks.conformance.kafka import KAFKA
from benchmarks.conformance.kills import REPLICAS, killed, replicas_problem
from benchmarks.conformance.ksql import KSQL, with_checkout
from benchmarks.conformance.nexmark import NEXMARK, QUERIES
from benchmarks.conformance.page import page
from benchmarks.conformance.polars import POLARS
from benchmarks.conformance.siddhi import SIDDHI
from benchmarks.conformance.spark import SPARK
from benchmarks.conformance.trino import TRINO
from benchmarks.frame import Claim, NotHereError, Options, Result, counted
from examples.real_data import NoRealData, foreign_cases

SUITES = {
    suite.name: suite
    for suite in (
        *(NEXMARK, ARROYO, KSQL, DUCKDB, BEAM, FLINK, KAFKA, SPARK, POLARS),
        *(SIDDHI, TRINO),
    )
}
ANSWERED: tuple[Verdict, ...] = ("equal", "detour", "different")
"""Verdicts of cases that built-in steps answer: equal, or different with a reason."""


def cases_here() -> list[Case]:
    """Return the foreign cases.

    Raises:
        NotHereError: there are none where data lies.
    """
    try:
        return with_checkout(read_cases(foreign_cases()))
    except NoRealData as problem:
        raise NotHereError(str(problem)) from None


def suite_of(case: Case) -> Suite:
    """Return the suite of a case."""
    return SUITES[case.suite]


def run(options: Options) -> Result:
    """Run the translations of the foreign cases, and compare their rows with the answers."""
    cases = cases_here()
    if page_file := os.environ.get("PAGE"):
        Path(page_file).write_text(page(cases, suite_of), encoding="utf-8")
    result = Result(
        f"{len(cases)} cases of other engines' authors", ["suite", "cases", *VERDICTS.values()]
    )
    for name in dict.fromkeys(case.suite for case in cases):
        of_suite = [case for case in cases if case.suite == name]
        counts = Counter(suite_of(case).verdict(case) for case in of_suite)
        result.rows.append([name, len(of_suite), *(counts[verdict] for verdict in VERDICTS)])
        result.figures[name] = {"cases": len(of_suite), **counts}
    if absent := sum(not case.is_here for case in cases):
        result.notes.append(f"{absent} cases of ksqlDB were not run: KSQLDB= names no checkout")
    translated = [
        case for case in cases if case.is_here and case.name in suite_of(case).translations
    ]
    problems = [
        suite_of(case).problem(case)
        for case in counted(translated, of=len(translated), what="translations")
    ]
    result.notes += filter(None, problems)
    result.claims += claims(cases)
    result.claims.append(Claim("unexplained differences", sum(map(bool, problems)), "<=", 0))
    if not options.quick:
        nexmark = [case for case in cases if case.name in QUERIES]
        _run_nexmark(nexmark, result)
    return result


def claims(cases: Sequence[Case]) -> list[Claim]:
    """Return the claims on pinned verdicts of the cases that are here, patterns apart."""
    others = [case for case in cases if case.is_here and not suite_of(case).is_pattern(case.name)]
    without = [case for case in others if case.suite != KSQL.name]
    wrong = sum(suite_of(case).verdict(case) == "wrong" for case in others)
    of_all = _shares(others, "") if len(others) > len(without) else []
    return [*of_all, *_shares(without, ", without ksqlDB"), Claim("wrong", wrong, "<=", 0)]


def _shares(cases: Sequence[Case], which: str) -> list[Claim]:
    answered = [case for case in cases if suite_of(case).verdict(case) in ANSWERED]
    bent = sum(suite_of(case).is_bent(case) for case in answered)
    share, bent_share = 100 * len(answered) / len(cases), 100 * bent / len(answered)
    return [
        Claim(f"% equal, or different with a reason{which}", share, ">=", 95),
        Claim(f"% of these by a detour{which}", bent_share, "<=", 5),
    ]


def _run_nexmark(cases: Sequence[Case], result: Result) -> None:
    """Run Nexmark on replicas, and with kills."""
    problems = [replicas_problem(case, n) for n in REPLICAS for case in cases]
    kills = [killed(case, n) for n in REPLICAS for case in cases]
    result.notes += _texts([*problems, *(each.problem for each in kills)])
    result.figures["kills"] = {
        "recoveries": sum(each.recoveries for each in kills),
        "rows that came again": sum(each.again for each in kills),
    }
    result.claims += [
        Claim(
            f"Nexmark: runs on {REPLICAS} replicas with other rows",
            sum(map(bool, problems)),
            "<=",
            0,
        ),
        Claim(
            "Nexmark: runs with a kill and other rows",
            sum(bool(each.problem) for each in kills),
            "<=",
            0,
        ),
        Claim(
            "Nexmark: runs that recovered",
            sum(each.recoveries > 0 for each in kills),
            ">=",
            len(kills),
        ),
    ]


def _texts(problems: Iterable[str]) -> list[str]:
    return [problem for problem in problems if problem]
